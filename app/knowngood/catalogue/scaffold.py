"""A new issue's folder: all that can be written before anybody has thought, and a mark at each place where one must.

`knowngood check` refuses every mark, so that nobody ships a stub, and warns of nothing once they are filled in.
"""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from knowngood.catalogue.field_types import TITLE_CHARACTERS
from knowngood.catalogue.issue_loader import is_issue_id
from knowngood.catalogue.json_schema import ISSUE_SCHEMA as SCHEMA
from knowngood.catalogue.json_schema import published
from knowngood.catalogue.script_analysis import OPENING, STANDALONE, TAIL, standalone
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import BOUNDS, SignatureKind

_TRACKERS = {
    "pytorch": "pytorch/pytorch",
    "xla": "pytorch/xla",
    "ao": "pytorch/ao",
    "triton": "triton-lang/triton",
    "fla": "fla-org/flash-linear-attention",
    "deepmd-kit": "deepmodeling/deepmd-kit",
}


_SILENT = "silent = false  # FILL IN: true where numbers are wrong without an error"
_KIND = 'kind = "message"  # FILL IN: message, wrong_result, signal or hang'
_SIGNALS = '\nsignals = ["{signal}"]  # FILL IN: what kills the process, such as SIGSEGV or SIGABRT'
_PATTERN = "pattern = '''{words}'''  # the words that a later release will still say, no shapes, no paths"
_UNKNOWN = {
    "words": "FILL IN: the words of the failure",
    "signal": "SIGSEGV",
    "claims": """\
[[claim]]
text = "FILL IN: what is said of affected and fixed versions, or of a workaround; remove the table where nothing is"
source = "FILL IN: who says so, such as pytorch/pytorch#1, comment of 2025-01-31"

""",
}
_AT_MOST = """
[observed.amount]  # FILL IN: what is counted, as the arms return it; of time, a name for the percentage
compare = "at_most"
reason = "FILL IN: why it is equal from run to run, and how much more compiled code may take"
"""
_HANG = "HANG_S = 60  # FILL IN: after how many seconds a standalone run is called a hang\n"


def new_issue(folder: Path, id_: str, title: str, kind: SignatureKind | None = None, **known: str) -> Path:
    """Write `folder/id_/issue.toml` and `repro.py` with marked places to fill in; the answer is the new folder. Beside
    it stand the schema, for editors, and what runs a script by itself, as this release has them. With a `kind` the
    scaffold is one of such a failure. `known` may be its words, its signal, and claims as tables of TOML.

    Raises BadRequest where the id or the title cannot be one, or where the folder is there already.
    """
    if not is_issue_id(id_) or id_.isdigit():
        raise BadRequest(f'"{id_}" is no id of an issue; write PROJECT-NUMBER in lower case, such as pytorch-151589')
    if not title.strip() or not title.isprintable() or len(title) > TITLE_CHARACTERS:
        raise BadRequest(f"the title must be one line of 1 to {TITLE_CHARACTERS} printable characters")
    place = folder / id_
    try:
        place.mkdir(parents=True)
    except FileExistsError:
        raise BadRequest(f"{place} is there already; edit it, or choose another id") from None
    (place / "issue.toml").write_text(_document(id_, title, kind, {**_UNKNOWN, **known}), encoding="utf-8")
    (place / "repro.py").write_text(_script(id_, title, kind), encoding="utf-8")
    _leave_beside(folder, SCHEMA, published()[SCHEMA])
    _leave_beside(folder, STANDALONE.name, standalone())
    return place


def _leave_beside(folder: Path, name: str, text: str) -> None:
    file = folder / name
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def _document(id_: str, title: str, kind: SignatureKind | None, known: Mapping[str, str]) -> str:
    url, link = _report(id_)
    text = _template("template_issue.txt").substitute(
        title=quoted(title),
        url=quoted(url),
        link=quoted(link),
        silent="silent = true" if kind is SignatureKind.WRONG_RESULT else _SILENT,
        claims=known["claims"],
        pattern=_AT_MOST.rstrip() if kind in BOUNDS else _PATTERN.format(**known),
        kind=f'kind = "{kind}"{_SIGNALS.format(**known) if kind is SignatureKind.SIGNAL else ""}' if kind else _KIND,
    )
    return f"#:schema ../{SCHEMA}\n{text}"


def _report(id_: str) -> tuple[str, str]:
    project, _, number = id_.rpartition("-")
    if project in _TRACKERS and number.isdigit():
        return f"https://github.com/{_TRACKERS[project]}/issues/{number}", f"{_TRACKERS[project]}#{number}"
    return "https://example.org/FILL-IN-the-thread", "FILL IN: the thread in which it was reported"


def _script(id_: str, title: str, kind: SignatureKind | None) -> str:
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return _template("template_repro.txt").substitute(
        id=id_,
        title=escaped,
        opening=OPENING,
        standalone=TAIL.rstrip("\n"),
        signature="" if kind in BOUNDS else _UNKNOWN["words"],
        amount=', "amount": size' if kind in BOUNDS else "",
        hang=_HANG if kind is SignatureKind.HANG else "",
    )


def _template(name: str) -> Template:
    return Template((files("knowngood.catalogue") / name).read_text(encoding="utf-8"))


def quoted(text: str) -> str:
    """A basic string of TOML, which for printable text is what JSON writes."""
    return json.dumps(text, ensure_ascii=False)
