"""A new issue's folder: all that can be written before anybody has thought, and a mark at each place where one must.

`knowngood check` refuses every mark, so that nobody ships a stub, and warns of nothing once they are filled in.
"""

import json
from importlib.resources import files
from pathlib import Path
from string import Template

from knowngood.app.catalogue.field_types import TITLE_CHARACTERS
from knowngood.app.catalogue.issue_loader import is_issue_id
from knowngood.app.catalogue.script_analysis import opening, standalone
from knowngood.app.domain.errors import BadRequest

_TRACKERS = {
    "pytorch": "pytorch/pytorch",
    "xla": "pytorch/xla",
    "ao": "pytorch/ao",
    "triton": "triton-lang/triton",
    "fla": "fla-org/flash-linear-attention",
    "deepmd-kit": "deepmodeling/deepmd-kit",
}


def new_issue(folder: Path, id_: str, title: str) -> Path:
    """Write `folder/id_/issue.toml` and `repro.py` with marked places to fill in; the answer is the new folder.

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
    (place / "issue.toml").write_text(_document(folder, id_, title), encoding="utf-8")
    (place / "repro.py").write_text(_script(id_, title), encoding="utf-8")
    return place


def _document(folder: Path, id_: str, title: str) -> str:
    url, link = _report(id_)
    text = _template("template_issue.txt").substitute(title=_quoted(title), url=_quoted(url), link=_quoted(link))
    # Editors that know TOML check against the schema while the author types.
    schema = "#:schema ../issue.schema.json\n" if (folder / "issue.schema.json").exists() else ""
    return schema + text


def _report(id_: str) -> tuple[str, str]:
    project, _, number = id_.rpartition("-")
    if project in _TRACKERS and number.isdigit():
        return f"https://github.com/{_TRACKERS[project]}/issues/{number}", f"{_TRACKERS[project]}#{number}"
    return "https://example.org/FILL-IN-the-thread", "FILL IN: the thread in which it was reported"


def _script(id_: str, title: str) -> str:
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')
    return _template("template_repro.txt").substitute(
        id=id_, title=escaped, opening=opening(), standalone=standalone().rstrip("\n")
    )


def _template(name: str) -> Template:
    return Template((files("knowngood.app.catalogue") / name).read_text(encoding="utf-8"))


def _quoted(text: str) -> str:
    """A basic string of TOML, which for printable text is what JSON writes."""
    return json.dumps(text, ensure_ascii=False)
