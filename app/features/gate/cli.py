"""`knowngood gate`: may this environment be used? Read by CI jobs, so it starts in a tenth of a second.

At its top this imports the standard library alone, and argparse in place of typer: typer and rich take 150 ms to
import where argparse takes 25, and everything else waits until it is needed (2026-11-21, 2 cores under load). With
`--server` the answer comes ready in its form, and nothing of the product is imported but a few words.
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from knowngood.app.cli.exit_codes import Exit, exit_of
from knowngood.app.domain.errors import BadRequest, KnownGoodError

FORMATS = ("text", "json", "junit", "sarif", "github", "markdown")
CODES = {"pass": Exit.OK, "block": Exit.FINDING, "insufficient_evidence": Exit.INSUFFICIENT}

_SUMMARY = "summary"
_POLICY_TABLE = re.compile(r"^\s*\[tool\.knowngood[\].]", re.MULTILINE)

_ENDS = """\
exit codes:
  0  pass: nothing that you watch speaks against this environment
  1  block: the policy forbids it, and the answer says why
  2  usage: the question cannot be understood
  3  not enough evidence: nobody has measured enough to say
  4  unusable: the server, the snapshot or the store cannot be used

--advisory ends 0 in place of 1 and 3. Settings: KNOWNGOOD_SERVER (as --server), KNOWNGOOD_TOKEN (sent to it).
"""


class Answer:
    """`decision` is a key of CODES; `text` the answer in the form asked for. `summary` is Markdown, where asked for.

    No dataclass: that module takes 15 ms to import.
    """

    def __init__(self, decision: str, text: str, summary: str = "", remarks: Sequence[str] = ()) -> None:
        self.decision = decision
        self.text = text
        self.summary = summary
        self.remarks = tuple(remarks)


def main(arguments: Sequence[str]) -> int:
    """Ask, print, and say how to end. Our own errors end in one sentence."""
    asked = _parser().parse_args(arguments)
    try:
        answer = _answer(asked)
        _deliver(answer, asked)
    except KnownGoodError as error:
        _say(str(error))
        return exit_of(error)
    except BrokenPipeError:
        sys.stderr.close()
        return Exit.UNUSABLE
    return _end(answer, is_advisory=asked.advisory)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="knowngood gate",
        description="Say whether an environment may be used, for the issues you watch, and why.",
        epilog=_ENDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    environment = parser.add_argument_group("the environment (one of these)")
    _add_environment(environment.add_mutually_exclusive_group())
    environment.add_argument(
        "--python", default="", metavar="VERSION", help="its Python, such as 3.12, where neither file nor build says it"
    )
    watch = parser.add_argument_group("what to look at (in place of what the policy watches)")
    _add_names(watch, "--issues", "ids, repeated or comma-separated; `all` for every issue")
    _add_names(watch, "--component", "every issue of these components")
    _add_names(watch, "--package", "every issue that needs these packages")
    watch.add_argument("--severity", default="", help="every issue of this severity or a higher one")
    _add_names(watch, "--watch", "names of watch lists")
    rules = parser.add_argument_group("the rules")
    rules.add_argument(
        "--policy", metavar="FILE", help="./knowngood.toml, or [tool.knowngood] of ./pyproject.toml, unless said"
    )
    _add_names(rules, "--hardware", "classes such as cpu-x86_64; every measured one unless said, the worst counts")
    _add_names(rules, "--applied", "workarounds in place, as ISSUE=WORKAROUND")
    rules.add_argument("--base", default="", metavar="BUILD", help="the build that --only-new compares with")
    rules.add_argument("--only-new", action="store_true", help="let pass what fails on the base build too")
    rules.add_argument("--advisory", action="store_true", help="tell all the same, and end 0 in place of 1 and 3")
    out = parser.add_argument_group("the answer")
    out.add_argument("--format", choices=FORMATS, default="text")
    out.add_argument("-o", "--output", metavar="FILE", help="where it goes; printed unless said")
    source = parser.add_argument_group("who answers (the local store unless said)")
    either = source.add_mutually_exclusive_group()
    either.add_argument("--server", default=os.environ.get("KNOWNGOOD_SERVER", ""), metavar="URL")
    either.add_argument("--snapshot", metavar="FILE", help="made by `knowngood snapshot`")
    source.add_argument(
        "--public-key", action="append", default=[], metavar="KEY", help="who must have signed the snapshot"
    )
    return parser


def _add_environment(group: "argparse._MutuallyExclusiveGroup") -> None:
    group.add_argument("--build", default="", metavar="BUILD", help="such as torch-2.6.0+cu124, or 2.6.0")
    group.add_argument("-r", "--requirements", metavar="FILE", help="requirements.txt, or what `pip freeze` prints")
    group.add_argument(
        "--lock", metavar="FILE", help="uv.lock, pylock.toml, poetry.lock, pdm.lock, Pipfile.lock, conda's"
    )
    group.add_argument("--here", action="store_true", help="the Python environment that this runs in")
    group.add_argument("stdin", nargs="?", choices=["-"], metavar="-", help="one of these files from standard input")


def _add_names(group: "argparse._ArgumentGroup", flag: str, help_: str) -> None:
    group.add_argument(flag, action="append", default=[], metavar="NAMES", help=help_)


def _answer(asked: argparse.Namespace) -> Answer:
    fields = _fields(asked)
    forms = [asked.format]
    if asked.format == "github" and os.environ.get("GITHUB_STEP_SUMMARY"):
        forms.append(_SUMMARY)
    if asked.server and not asked.snapshot:
        from knowngood.app.features.gate.cli_remote import ask_server

        return ask_server(asked.server, fields, forms, advisory=asked.advisory)
    from knowngood.app.features.gate.cli_local import OutputOptions, rule_from_snapshot, rule_here

    manner = OutputOptions(tuple(forms), asked.advisory)
    if asked.snapshot:
        return rule_from_snapshot(Path(asked.snapshot), [_key(text) for text in asked.public_key], fields, manner)
    return rule_here(fields, manner)


def _fields(asked: argparse.Namespace) -> dict[str, object]:
    """The question as the API takes it; what was not said is left out."""
    fields: dict[str, object] = {name: getattr(asked, name) for name in ("build", "python", "severity", "base")}
    for name in ("issues", "component", "package", "watch", "hardware", "applied"):
        fields[name] = [part.strip() for text in getattr(asked, name) for part in text.split(",") if part.strip()]
    fields |= {"only_new": asked.only_new, "policy": _policy(asked.policy), **_environment(asked)}
    return {name: value for name, value in fields.items() if value}


def _environment(asked: argparse.Namespace) -> dict[str, object]:
    file = asked.requirements or asked.lock
    if asked.stdin or file == "-":
        return {"environment": {"name": "", "content": _text(sys.stdin.buffer.read(), "standard input")}}
    if file:
        return {"environment": {"name": _shown(Path(file)), "content": _read(Path(file))}}
    if asked.here:
        from knowngood.app.features.environments.installed import freeze

        return freeze(asked.python)
    if not asked.build:
        raise BadRequest("say which environment: --build, -r, --lock, --here, or - for standard input")
    return {}


def _shown(path: Path) -> str:
    """As seen from here, where annotations point; the name alone of what lies elsewhere."""
    here = Path.cwd()
    full = path if path.is_absolute() else here / path
    return full.relative_to(here).as_posix() if full.is_relative_to(here) else path.name


def _policy(named: str | None) -> dict[str, str] | None:
    if named:
        return {"name": Path(named).name, "content": _read(Path(named))}
    own, project = Path("knowngood.toml"), Path("pyproject.toml")
    if own.is_file():
        return {"name": own.name, "content": _read(own)}
    if project.is_file() and _POLICY_TABLE.search(text := _read(project)):
        return {"name": project.name, "content": text}
    return None


def _key(text: str) -> str:
    """A public key, or the file that holds one."""
    return text if text.startswith("ed25519:") else _read(Path(text)).strip()


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


def _deliver(answer: Answer, asked: argparse.Namespace) -> None:
    for remark in answer.remarks:
        _say(remark)
    if answer.summary:
        _append("GITHUB_STEP_SUMMARY", answer.summary)
    if asked.format == "github":
        _append("GITHUB_OUTPUT", f"decision={answer.decision}\n")
    if not asked.output:
        sys.stdout.buffer.write(answer.text.encode())
        sys.stdout.buffer.flush()
        return
    try:
        Path(asked.output).write_bytes(answer.text.encode())
    except OSError as error:
        raise BadRequest(f"{asked.output} cannot be written: {error.strerror}") from None
    _say(f"{answer.decision}; {asked.output} says why")


def _append(variable: str, text: str) -> None:
    """To the file that GitHub names in this variable; outside of its jobs there is none."""
    if path := os.environ.get(variable, ""):
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


def _end(answer: Answer, *, is_advisory: bool) -> int:
    code = CODES[answer.decision]
    if is_advisory and code is not Exit.OK:
        _say(f"advisory: without --advisory this ends {code.value} ({answer.decision})")
        return Exit.OK
    return code


def _say(text: str) -> None:
    sys.stderr.write(f"knowngood: {text}\n")
