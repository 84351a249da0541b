"""`knowngood gate` and the Action (ci/gate.sh): the question, from options or from the Action's inputs, who answers it,
and what is done with the answer.

This imports the standard library alone. What answers is imported when the question says which it is: the Action asks a
server with a Python that has nothing installed, and with `--server` an answer comes ready in its form.
"""

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knowngood.cli.encoding import defused, one_printable_line, write_what_can_be_read
from knowngood.cli.exit_codes import Exit, exit_of
from knowngood.cli.trust import UNSIGNED
from knowngood.domain.errors import BadRequest, KnownGoodError

CODES = {"pass": Exit.OK, "block": Exit.FINDING, "insufficient_evidence": Exit.INSUFFICIENT}
Answer = tuple[str, Mapping[str, str]]
"""The decision, a key of CODES, and the answer in each form that was asked for."""

_PLAIN = ("build", "python", "platform", "severity", "base", "only_new")
NAMES = ("groups", "issues", "component", "package", "watch", "hardware", "applied")
_ENVIRONMENTS = ("build", "requirements", "lock", "here", "stdin")
_FLAGS = {"requirements": "-r", "stdin": "-"}
_INCLUDED = re.compile(r"^[ \t]*(?:-r|--requirement)[ \t=]*([^\s#=][^\s#]*)[^\n]*$", re.MULTILINE)
_ADDED_BY_FREEZE = "## The following requirements were added by pip freeze:"
_MOST_INCLUDED = 50
_POLICY_TABLE = re.compile(r"^[ \t]*\[tool\.knowngood[\].]", re.MULTILINE)

_WATCHING = ("issues", "component", "package", "severity", "watch")
_BUILD_NAME = re.compile(r"torch\b|v?\d+\.\d")
_SUMMARY, _SUMMARY_FILE = "summary", "GITHUB_STEP_SUMMARY"


def answer_in(forms: Sequence[str], options: Mapping[str, Any]) -> Answer:
    """In GitHub's jobs the summary comes with the form for GitHub."""
    question = _question(options)
    more = [_SUMMARY] if "github" in forms and has_summary() else []
    how: dict[str, Any] = {"forms": [*forms, *more], "advisory": options["advisory"]}
    if (server := server_of(options)) and not options["snapshot"]:
        from knowngood.gate.from_server import ask_server

        return ask_server(server, question, **how)
    from knowngood.gate.request import rule_here

    return rule_here(question, snapshot=options["snapshot"], keys=options["public_keys"], **how)


def finish(answer: Answer, options: Mapping[str, Any]) -> Exit:
    """Print the answer or write it to its file, and say how to end."""
    decision, texts = answer
    try:
        _deliver(decision, texts, form=options["form"], output=options["output"])
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.UNUSABLE
    code = CODES[decision]
    if options["advisory"] and code is not Exit.OK:
        say(f"advisory: without --advisory this ends {code.value} ({decision})")
        return Exit.OK
    return code


def server_of(options: Mapping[str, Any]) -> str:
    return options["server"] or os.environ.get("KNOWNGOOD_SERVER", "")


# -- the question ------------------------------------------------------------------------------------------------------


def _question(options: Mapping[str, Any]) -> dict[str, object]:
    """The question as the API takes it; what was not said is left out."""
    _refuse_two(options, ("server", "snapshot"))
    fields: dict[str, object] = {name: options[name] for name in _PLAIN}
    fields |= {name: list(options[name]) for name in NAMES}
    fields |= {"policy": _policy(options["policy"]), **environment_of(options)}
    if (base := options["base"]) and not _BUILD_NAME.match(base):
        fields |= {"base": "", "base_environment": _file_on_base(base, options["requirements"] or options["lock"])}
    return {name: value for name, value in fields.items() if value}


def _refuse_two(options: Mapping[str, Any], names: Sequence[str]) -> None:
    given = [_FLAGS.get(name, f"--{name}") for name in names if options.get(name)]
    if given[1:]:
        raise BadRequest(f"{' and '.join(given)} exclude each other; name one of them")


def is_stated(options: Mapping[str, Any]) -> bool:
    return any(options.get(name) for name in _ENVIRONMENTS)


def environment_of(options: Mapping[str, Any]) -> dict[str, object]:
    """The environment that the options name, as the API takes it, but for the name of a build."""
    _refuse_two(options, _ENVIRONMENTS)
    file = options["requirements"] or options["lock"]
    if options.get("stdin") or file == "-":
        return {"environment": {"name": "", "content": _text(sys.stdin.buffer.read(), "standard input")}}
    if file:
        return {"environment": {"name": _shown(Path(file)), "content": _with_included(Path(file), set())}}
    if options["here"]:
        from knowngood.environments.installed import freeze

        return freeze(options["python"])
    if not options["build"]:
        raise BadRequest("say which environment: --build, -r, --lock, --here, or - for standard input")
    return {}


def _with_included(path: Path, seen: set[Path]) -> str:
    """The text of a requirements file, and behind a form feed each that it includes (`-r other.txt`) and that is there:
    such a line is then a comment. `seen` are the files so far.
    """
    text, others = _read(path), list[str]()
    seen.add(path.resolve())

    def take(match: re.Match[str]) -> str:
        other = path.parent / match[1]
        if not other.is_file() or len(seen) == _MOST_INCLUDED:
            return match[0]
        if other.resolve() not in seen:
            others.append(_with_included(other, seen))
        return f"# {match[0]}"

    is_list = path.suffix in {".txt", ".in"} and _ADDED_BY_FREEZE not in text
    return "\n\f\n".join([_INCLUDED.sub(take, text) if is_list else text, *others])


def _file_on_base(revision: str, file: str) -> dict[str, str]:
    """The environment's file as it is at a git revision; without content where that has none."""
    if not file or file == "-":
        raise BadRequest(
            f'--base "{revision}" is no build such as torch-2.5.1+cu124, and a git revision needs a file: -r or --lock'
        )
    from knowngood.git_files import file_at

    name = f"{revision}:./{Path(file).name}"
    return {"name": name, "content": _text(file_at(revision, Path(file), "--base") or b"", name)}


def _shown(path: Path) -> str:
    """The path as seen from here, where annotations point; the name alone of what lies elsewhere."""
    here = Path.cwd()
    full = path if path.is_absolute() else here / path
    return full.relative_to(here).as_posix() if full.is_relative_to(here) else path.name


def _policy(named: str) -> dict[str, str] | None:
    if named:
        return {"name": Path(named).name, "content": _read(Path(named))}
    own, project = Path("knowngood.toml"), Path("pyproject.toml")
    if own.is_file():
        return {"name": own.name, "content": _read(own)}
    if project.is_file() and has_policy(text := _read(project)):
        return {"name": project.name, "content": text}
    return None


def has_policy(project: str) -> bool:
    """Whether the text of a pyproject.toml has a policy, be it a wrong one."""
    return _POLICY_TABLE.search(project) is not None


def _read(path: Path) -> str:
    try:
        return _text(path.read_bytes(), str(path))
    except OSError as error:
        raise BadRequest(f"{path} cannot be read: {error.strerror}") from None


def _text(data: bytes, name: str) -> str:
    """PowerShell's `pip freeze > requirements.txt` writes UTF-16 with its mark."""
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise BadRequest(f"{name} is no text in UTF-8") from None


# -- the answer --------------------------------------------------------------------------------------------------------


def _deliver(decision: str, texts: Mapping[str, str], *, form: str, output: str) -> None:
    text = texts[form]
    if form == "github":
        _append(_SUMMARY_FILE, texts.get(_SUMMARY, ""))
        _append("GITHUB_OUTPUT", f"decision={decision}\n")
    if not output:
        sys.stdout.buffer.write((text if form == "github" else defused(text)).encode())
        sys.stdout.buffer.flush()
        return
    try:
        Path(output).write_bytes(text.encode())
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror}") from None
    say(f"{decision}; {output} says why")


def has_summary() -> bool:
    return bool(os.environ.get(_SUMMARY_FILE))


def _append(variable: str, text: str) -> None:
    """Append text to the file that GitHub names in this variable; outside of its jobs there is none."""
    if text and (path := os.environ.get(variable, "")):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def say(text: str) -> None:
    sys.stderr.write(f"knowngood: {one_printable_line(text)}\n")


# -- the Action --------------------------------------------------------------------------------------------------------

TEXTS = ("build", "requirements", "lock", "platform", "severity", "policy", "base", "server", "snapshot", "public_key")


def main() -> int:
    """Ask what the Action's inputs say, which come as GATE_... in the environment. Where the gate does not pass, the
    job's summary ends with the note on which build to move to; what the comment says stands there where it cannot be
    written.
    """
    write_what_can_be_read()
    try:
        options = _inputs()
        answer = answer_in(
            [*options["forms"], "json"] if options["forms"][1:] or has_summary() else ["github"], options
        )
        code = finish(answer, options)
    except KnownGoodError as error:
        say(str(error))
        return exit_of(error)
    decision, texts = answer
    if "json" not in texts:
        return code
    document = json.loads(texts["json"])
    if options["comment"]:
        _comment(document, texts["markdown"], options)
    elif decision != "pass" and has_summary():
        _append(_SUMMARY_FILE, f"\n{_note(document, options)}")
    return code


def _inputs() -> dict[str, Any]:
    """The inputs as the options that the command has. Raises BadRequest."""
    inputs: dict[str, Any] = {name: os.environ.get(f"GATE_{name.upper()}", "").strip() for name in (*TEXTS, *NAMES)}
    names = {name: [part.strip() for part in re.split(r"[,\r\n]", inputs.pop(name)) if part.strip()] for name in NAMES}
    for name, text in (*inputs.items(), *((name, part) for name, parts in names.items() for part in parts)):
        if not text.isprintable():
            raise BadRequest(f'the input {name.replace("_", "-")} is not one line of printable text: "{text}"')
    unsigned = UNSIGNED if os.environ.get("GATE_UNSIGNED", "") == "true" else ""
    keys = [key for key in (inputs.pop("public_key"), unsigned) if key]
    if keys[1:]:
        raise BadRequest("public-key and unsigned exclude each other; leave one of them out")
    is_advice, has_comment = os.environ.get("GATE_ENFORCE", "") != "true", os.environ.get("GATE_COMMENT", "") == "true"
    if has_comment and not inputs["base"]:
        raise BadRequest("comment needs base, such as origin/main: only a pull request that moves torch is commented")
    unsaid = {"here": False, "stdin": "", "python": "", "only_new": False, "output": ""}
    return {
        **inputs,
        **names,
        **unsaid,
        "public_keys": keys,
        "form": "github",
        "forms": ["github", *(["markdown"] if has_comment else [])],
        "comment": has_comment,
        "advisory": is_advice,
    }


def _note(document: Mapping[str, Any], options: Mapping[str, Any], to: str = "") -> str:
    """Where to go from the build, or with `to` what the move to that one brings; empty where nobody can say it. The
    decision stands without it: what fails here is told, and changes no exit code.
    """
    start = document.get("base") if to else document["build"]
    if not start:
        return ""
    is_watched = not to or any(options[name] for name in _WATCHING) or document["counts"]["pass"]
    issues = list(dict.fromkeys(reason["issue"] for reason in document["reasons"])) if is_watched else []
    try:
        if options["snapshot"] or not server_of(options):
            from knowngood.move.upgrade.cli import note_here

            return note_here(start, to, issues, document["hardware"], options["snapshot"], options["public_keys"])
        from knowngood.gate.from_server import note_from_server

        return note_from_server(server_of(options), start, to, issues, document["hardware"])
    except KnownGoodError as error:
        say(f"no note on an upgrade: {error}")
        return ""


def _comment(document: Mapping[str, Any], answer: str, options: Mapping[str, Any]) -> None:
    """Where the file states another torch than that of `base`: the verdict, then the note on the move; the whole answer
    where no note can be made.
    """
    from knowngood.gate.comment import comment, fitting

    build, base = document["build"], document.get("base")
    is_moved = build != base or build is None
    note = _note(document, options, build) if build and base and is_moved else ""
    verdict = answer.partition("\n\n")[0]
    told = (f"{verdict}\n\n{note}" if note else answer) if is_moved else f"torch stays at {base}.\n"
    shown = fitting(told)
    try:
        comment(shown, begins=is_moved)
    except KnownGoodError as error:
        say(f"no comment: {error}")
        shown = ""
    if shown != told:
        _append(_SUMMARY_FILE, f"\n{note}")
