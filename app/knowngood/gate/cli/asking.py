"""The question to the gate, from options or from the inputs of the Action, and who answers it.

This imports the standard library alone, and whoever answers when it is known who that is: the Action asks a server with
a Python that has nothing installed, and with `--server` an answer comes ready in its form.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from knowngood.cli.exit_codes import Exit
from knowngood.cli.loading import load
from knowngood.domain.errors import BadRequest
from knowngood.gate.cli.result import SUMMARY, Answer, deliver, end, has_summary

_HERE = "knowngood.gate.cli"
_FROM_SERVER = f"{_HERE}.from_server:ask_server"
_IN_PROCESS = f"{_HERE}.in_process:rule_here"
_FREEZE = "knowngood.environments.installed:freeze"

_PLAIN = ("build", "python", "platform", "severity", "base", "only_new")
NAMES = ("groups", "issues", "component", "package", "watch", "hardware", "applied")
_ENVIRONMENTS = ("build", "requirements", "lock", "here", "stdin")
_FLAGS = {"requirements": "-r", "stdin": "-"}
_POLICY_TABLE = re.compile(r"^[ \t]*\[tool\.knowngood[\].]", re.MULTILINE)


def finish(answer: Answer, asked: Mapping[str, Any]) -> Exit:
    try:
        deliver(answer, form=asked["form"], output=asked["output"])
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.UNUSABLE
    return end(answer, is_advisory=asked["advisory"])


def answer_in(forms: Sequence[str], asked: Mapping[str, Any]) -> Answer:
    """In GitHub's jobs the summary comes with the form for GitHub."""
    fields = _fields(asked)
    more = [SUMMARY] if "github" in forms and has_summary() else []
    how: dict[str, Any] = {"forms": [*forms, *more], "advisory": asked["advisory"]}
    if (server := server_of(asked)) and not asked["snapshot"]:
        return cast("Answer", load(_FROM_SERVER)(server, fields, **how))
    return cast("Answer", load(_IN_PROCESS)(fields, snapshot=asked["snapshot"], keys=asked["public_keys"], **how))


def server_of(asked: Mapping[str, Any]) -> str:
    return asked["server"] or os.environ.get("KNOWNGOOD_SERVER", "")


def _fields(asked: Mapping[str, Any]) -> dict[str, object]:
    """The question as the API takes it; what was not said is left out."""
    _refuse_two(asked, ("server", "snapshot"))
    fields: dict[str, object] = {name: asked[name] for name in _PLAIN}
    fields |= {name: list(asked[name]) for name in NAMES}
    fields |= {"policy": _policy(asked["policy"]), **environment_of(asked)}
    return {name: value for name, value in fields.items() if value}


def _refuse_two(asked: Mapping[str, Any], names: Sequence[str]) -> None:
    given = [_FLAGS.get(name, f"--{name}") for name in names if asked.get(name)]
    if given[1:]:
        raise BadRequest(f"{' and '.join(given)} exclude each other; name one of them")


def is_stated(asked: Mapping[str, Any]) -> bool:
    return any(asked.get(name) for name in _ENVIRONMENTS)


def environment_of(asked: Mapping[str, Any]) -> dict[str, object]:
    """The environment that the options name, as the API takes it, but for the name of a build."""
    _refuse_two(asked, _ENVIRONMENTS)
    file = asked["requirements"] or asked["lock"]
    if asked.get("stdin") or file == "-":
        return {"environment": {"name": "", "content": _text(sys.stdin.buffer.read(), "standard input")}}
    if file:
        return {"environment": {"name": _shown(Path(file)), "content": _read(Path(file))}}
    if asked["here"]:
        found: dict[str, object] = load(_FREEZE)(asked["python"])
        return found
    if not asked["build"]:
        raise BadRequest("say which environment: --build, -r, --lock, --here, or - for standard input")
    return {}


def _shown(path: Path) -> str:
    """As seen from here, where annotations point; the name alone of what lies elsewhere."""
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
