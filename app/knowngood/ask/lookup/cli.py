"""`knowngood issue`, `find` and `env`."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from shlex import quote
from typing import Any

from knowngood.ask.lookup.service import IssueAnswer, answer_environment, answer_issue
from knowngood.ask.lookup.text import environment_text, issue_text, query_of, search_text
from knowngood.ask.reading import HitKind
from knowngood.ask.search.service import SearchAnswer, SearchIndex, search
from knowngood.cli.choice import issues_of, select
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import knowledge_here, known_here
from knowngood.cli.lazy import command
from knowngood.cli.options import (
    ANY_SIGNER,
    AS_JSON,
    ENVIRONMENT,
    HARDWARE,
    PUBLIC_KEY,
    RESOLVE,
    SNAPSHOT_FILE,
    argument,
    flag,
)
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import BadRequest, UnknownIssue
from knowngood.domain.issue import Issue
from knowngood.domain.issue_selectors import find_issue
from knowngood.domain.verdicts.known import Known
from knowngood.environments.installed import hardware_here, state_here
from knowngood.gate.asking import environment_of, is_stated
from knowngood.gate.renderers.json import dumped
from knowngood.gate.request import GateRequest, read_request
from knowngood.query.cli import read_query_option
from knowngood.store.knowledge.model import Knowledge

_UNSEEN_GPUS = (
    "knowngood: this machine has an NVIDIA driver, and which GPUs it has cannot be asked without nvidia-ml-py; every "
    "measured class counts unless --hardware names one\n"
)


@command(
    "Say what an issue is, where it fails, where it is fixed, and what helps in your environment.\n\n"
    "Without --build, -r, --lock or --here, it answers for the environment it runs in, if that has torch; "
    "otherwise for the newest affected build. Ends with 3 if the environment you name is not a tested build.",
    argument("issue", "The issue: its id or number, owner/repo#NUMBER, or the address of its report."),
    *ENVIRONMENT,
    HARDWARE,
    AS_JSON,
    flag("--all", "in_full", help_="Print everything, on all hardware, not only what fits on a screen."),
    flag("--script", "as_script", help_="Print only its script, as one file: knowngood issue ID --script > repro.py."),
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="issue pytorch-151290 --build 2.7.1",
)
def issue(
    *,
    issue: str,
    in_full: bool,
    as_json: bool,
    as_script: bool,
    snapshot: str,
    public_keys: Sequence[str],
    **environment: Any,  # noqa: ANN401 - the options of an environment by their names
) -> Exit:
    now, knowledge = datetime.now(UTC), knowledge_here(snapshot, public_keys)
    try:
        entry = find_issue(issue, knowledge.known.issues)
    except UnknownIssue as error:
        raise UnknownIssue(f"{error}; search for it: knowngood find {quote(issue)}") from None
    if as_script:
        from knowngood.catalogue.script_analysis import script_of

        sys.stdout.write(script_of(entry))
        return Exit.OK
    is_named = is_stated(environment)
    is_asked = is_named or any(pin.name == "torch" for pin in state_here().pins)
    answer = answer_issue(entry, _request(environment) if is_asked else None, knowledge, now)
    text = dumped(_issue_json(answer, knowledge.known, now)) if as_json else issue_text(answer, in_full=in_full)
    sys.stdout.write(text)
    return Exit.OK if answer.ruling.build or not is_named else Exit.INSUFFICIENT


@command(
    "Say which tested build an environment is, and what fails there, worst first.\n\n"
    "Without --build, -r, --lock or --here, it answers for the environment it runs in, on this machine's "
    "hardware. Ends with 3 if that is not a tested build. With several files each gets a line, the worst first, "
    "and the worst decides the exit code.",
    argument("files", "Files, as for -r or --lock.", nargs=-1, metavar="[FILE]..."),
    *ENVIRONMENT,
    HARDWARE,
    flag("--all", "in_full", help_="Print every issue with its workaround, not only what fits on a screen."),
    RESOLVE,
    AS_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="env requirements.txt",
)
def env(
    *,
    files: Sequence[str],
    in_full: bool,
    resolve: bool,
    as_json: bool,
    snapshot: str,
    public_keys: Sequence[str],
    **environment: Any,  # noqa: ANN401 - the options of an environment by their names
) -> Exit:
    if files and is_stated(environment):
        raise BadRequest("files and --build, -r, --lock or --here exclude each other; name one of them")
    knowledge = knowledge_here(snapshot, public_keys)
    if files[1:]:
        return _several(files, knowledge, environment, as_json=as_json)
    environment["requirements"] = files[0] if files else environment["requirements"]
    answer = answer_environment(_request(environment), knowledge, datetime.now(UTC))
    if resolve:
        from knowngood.environments.wheels.resolution import torch_beside

        resolved, build = answer.resolved, answer.ruling.build
        python = knowledge.known.builds[build].python if build else resolved.python or DEFAULT_PYTHON
        found = torch_beside(resolved.packages, python, next(iter(resolved.platforms), LINUX))
        answer = replace(answer, resolution=found)
    sys.stdout.write(dumped(answer.document) if as_json else environment_text(answer, in_full=in_full))
    return Exit.OK if answer.ruling.build else Exit.INSUFFICIENT


def _several(files: Sequence[str], knowledge: Knowledge, environment: dict[str, Any], *, as_json: bool) -> Exit:
    """Answer for each file; one that cannot be read takes nothing from the others."""
    from knowngood.ask.lookup.several import Row, row_of, several_text, worst_first

    now, found = datetime.now(UTC), list[Row]()
    for file in dict.fromkeys(files):
        try:
            answer = answer_environment(_request({**environment, "requirements": file}), knowledge, now)
            found.append(row_of(file, answer, knowledge, environment["hardware"]))
        except BadRequest as error:
            found.append({"file": file, "problem": getattr(error, "message", str(error))})
    rows = worst_first(found)
    sys.stdout.write(dumped(rows) if as_json else several_text(rows))
    if any("problem" in row for row in rows):
        return Exit.USAGE
    return Exit.OK if all(row["build"] for row in rows) else Exit.INSUFFICIENT


@command(
    "Find issues, builds and hardware by any of their names, like the search box on every page.\n\n"
    "An issue in any notation (#151290, pytorch/pytorch#151290, an address), a version, hardware by its name (H100), "
    "words of a title or a message, also misspelt, or a query.",
    argument(
        "words", "An issue, a version, hardware, words, or conditions such as status:affected.", nargs=-1, required=True
    ),
    AS_JSON,
    SNAPSHOT_FILE,
    PUBLIC_KEY,
    ANY_SIGNER,
    example="find 2.5.1 H100 flex_attention",
)
def find(*, words: Sequence[str], as_json: bool, snapshot: str, public_keys: Sequence[str]) -> Exit:
    text, known = " ".join(words), known_here(snapshot, public_keys)
    answer = search(text, known, SearchIndex(known.issues))
    issues = _issues_of(text, answer, known)
    if as_json:
        from knowngood.matrix.schemas import issues_body

        sys.stdout.write(dumped({**issues_body(issues).model_dump(mode="json"), "search": answer}))
    else:
        sys.stdout.write(search_text(answer, issues, known, text))
    return Exit.USAGE if answer.note.key == "unreadable_query" else Exit.OK


def _issues_of(text: str, answer: SearchAnswer, known: Known) -> Sequence[Issue]:
    """The issues of the answer; where it is a query, those that the query selects, as the matrix has them. Raises
    BadRequest for a query with a word that is misspelt: where nobody can choose, nothing is guessed.
    """
    selected = query_of(answer.hits[0]) if answer.hits else ""
    if not selected:
        return tuple(known.issues[hit.name] for hit in answer.hits if hit.kind is HitKind.ISSUE)
    query = text if answer.read_as.get(answer.asked) else selected
    hardware = (answer.hardware,) if answer.hardware else known.hardware
    option = read_query_option(query, "the words")
    return select(known, option, issues_of(known.issues, ()), (), hardware, datetime.now(UTC)).issues


def _request(environment: dict[str, Any]) -> GateRequest:
    """The named environment; where none is named, the one that this runs in, with the hardware of this machine."""
    is_here = environment["here"] or not is_stated(environment)
    options = {**environment, "here": is_here, "hardware": list(environment["hardware"])}
    if is_here and not options["hardware"]:
        options["hardware"] = _classes_here()
    fields = {**options, "groups": list(environment["groups"]), **environment_of(options)}
    names = ("build", "python", "platform", "groups", "hardware", "environment")
    return read_request({name: fields[name] for name in names if fields.get(name)})


def _classes_here() -> list[str]:
    """The hardware classes of this machine; none where a package is needed to tell."""
    classes = hardware_here()
    sys.stderr.write("" if classes else _UNSEEN_GPUS)
    return list(classes)


# -- JSON --------------------------------------------------------------------------------------------------------------


def _issue_json(answer: IssueAnswer, known: Known, now: datetime) -> dict[str, Any]:
    """The JSON of `GET /api/v1/issues/ID`, and under `here` as `POST /api/v1/gate` does about this issue alone."""
    from knowngood.matrix.schemas import issue_detail

    cells = known.stored(answer.issue.id)
    return {
        **issue_detail(answer.issue, answer.histories, cells, known, now).model_dump(mode="json"),
        "here": answer.ruling,
        "is_example": answer.is_example,
        "elsewhere": [
            {"hardware": reason.hardware, "build": reason.works_on, "workaround": reason.elsewhere}
            for reason in answer.ruling.reasons
            if reason.elsewhere
        ],
    }
