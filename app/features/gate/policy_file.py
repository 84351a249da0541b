"""The policy file: `knowngood.toml`, or the table `[tool.knowngood]` of a `pyproject.toml`, as a domain Policy.

It is strict: an unknown key is refused, because a misspelt rule that is passed over lets through what it should stop.
Names of issues, components and builds are looked up when the gate decides, not here. The JSON Schema stands beside
this module: `python -m knowngood.app.features.gate.policy_schema` writes it.
"""

import re
import tomllib
from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from knowngood.app.domain.errors import BadPolicy
from knowngood.app.domain.issue import Severity
from knowngood.app.domain.issue_selectors import Watch
from knowngood.app.features.gate.policy import Accept, Effect, Ignore, Policy, RemedyFilter
from knowngood.app.serialization.toml_models import STRICT, Finding, read_document
from knowngood.app.serialization.toml_positions import KeyPath, LineMap, map_lines

POLICY_CHARACTERS = 1 << 17
_KEY_PARTS = 32
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_KEY_PARTS}}}""")
_LINE_SIGNS = 500
_SHOWN_PROBLEMS = 5

_DEFAULT = Policy()


def _one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    if len(text) > _LINE_SIGNS or not text.isprintable():
        raise ValueError(f"must be one line of at most {_LINE_SIGNS} printable signs")
    return text.strip()


def _iso_date(value: object) -> object:
    """JSON has no dates; what TOML and JSON mean alike is taken alike."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value


_Line = Annotated[str, AfterValidator(_one_line), Field(json_schema_extra={"minLength": 1, "maxLength": _LINE_SIGNS})]
_Lines = list[_Line]
_Days = Annotated[int, Field(ge=1, le=36_500)]
_Day = Annotated[date, BeforeValidator(_iso_date)]

# The models are strict; an enum is the one thing TOML cannot hold, so that its word is taken for it.
_EffectWord = Annotated[Effect, Field(strict=False)]
_AcceptWord = Annotated[Accept, Field(strict=False)]
_RemedyWord = Annotated[RemedyFilter, Field(strict=False)]
_SeverityWord = Annotated[Severity, Field(strict=False)]


class _Table(BaseModel):
    model_config = STRICT


class WatchTable(_Table):
    """What is looked at. Everything named here counts, not only what all of it names."""

    issues: _Lines = []
    """Ids such as "xla-8464"; also "pytorch/xla#8464" or the thread's address; "all" for every issue."""
    components: _Lines = []
    """Parts of the stack as the matrix groups them, such as "Inductor C++"."""
    packages: _Lines = []
    """Packages you use beside torch, such as "torch_xla": issues that need them are watched."""
    severity: _SeverityWord | None = None
    """Every issue of this severity or worse."""
    lists: _Lines = []
    """Watch lists by name, kept by the server."""


class IgnoreTable(_Table):
    """An issue that is accepted for a while. One that ran out counts no more, and the gate says so."""

    issue: _Line
    reason: _Line
    """Why it may pass."""
    author: _Line
    """Who says so."""
    expires: _Day
    """The last day on which it holds, as a date such as 2027-03-31."""
    workaround: _Line | None = None
    """What you do about it instead; for readers, nothing is measured against it."""


class PolicyFile(_Table):
    """What a team lets pass. Every key may be left out."""

    watch: WatchTable = Field(default_factory=WatchTable)
    hardware: _Lines = []
    """Hardware classes that count, such as "cpu-x86_64" or "cuda-sm_90"; none means every measured one."""
    python: _Line | None = None
    """The Python of your environment, such as "3.12", where neither a lock file nor the command says it."""
    affected: _EffectWord = _DEFAULT.affected
    """What an issue that fails does."""
    flaky: _EffectWord = _DEFAULT.flaky
    """What an issue does that fails at times."""
    different_failure: _EffectWord = _DEFAULT.different_failure
    """What a failure without the issue's own signature does."""
    unknown: _EffectWord = _DEFAULT.unknown
    """What is done where nobody measured, or evidence cannot say. Without any answer at all nothing ever passes."""
    stale: _EffectWord = _DEFAULT.stale
    """What evidence does at least that is older than the days below."""
    remedy: _RemedyWord = _DEFAULT.remedy
    """Block on any failing issue, only on those with a fixed release or an effective workaround, or only on others."""
    minimum: _SeverityWord = _DEFAULT.minimum
    """Failing issues that are less severe only warn."""
    silent_always: bool = _DEFAULT.silent_always
    """Silent wrong results count whatever their severity."""
    release_days: _Days = _DEFAULT.release_days
    """After so many days evidence of a release is stale."""
    nightly_days: _Days = _DEFAULT.nightly_days
    """After so many days evidence of a nightly is stale."""
    snapshot_days: _Days = _DEFAULT.snapshot_days
    """A snapshot older than this is not used."""
    only_new: bool = _DEFAULT.only_new
    """An issue that fails on the base build too only warns."""
    base: _Line | None = None
    """The build that `only_new` compares with, such as "torch-2.5.1+cu124"; a command may name it instead."""
    applied: dict[_Line, _Lines] = {}
    """Workarounds you have in place: issue = [ids]. One that is effective on the very build lets the issue pass."""
    ignore: list[IgnoreTable] = []
    refuse_assumed: bool = _DEFAULT.refuse_assumed
    """Refuse to take an environment for a build that it only may be."""
    accept: _AcceptWord = _DEFAULT.accept
    """Which answers count: "measured" on the very build, Python and hardware class, or "inferred" ones too."""
    accept_variant: bool = _DEFAULT.accept_variant
    """Take the same release's tested wheel for one that is not tested, such as +cpu, as inferred on the CPU."""


def parse_policy(text: str, where: str = "knowngood.toml") -> Policy:
    """Read a policy file's text. `where` is its name, which refusals begin with.

    Raises BadPolicy, with the line and key of each problem.
    """
    if len(text) > POLICY_CHARACTERS:
        raise BadPolicy(f"{where}: has {len(text)} signs; a policy has at most {POLICY_CHARACTERS}")
    data, lines = _read_toml(text, where)
    inside: KeyPath = ("tool", "knowngood") if where.endswith("pyproject.toml") else ()
    for key in inside:
        data = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping):
        raise BadPolicy(f"{where}: has no table [tool.knowngood], where a policy stands in a pyproject.toml")
    document, findings = read_document(PolicyFile, data)
    if document is None:
        raise BadPolicy(_all_in_words(findings, lines, where, inside))
    return policy_of(document)


def policy_of(document: PolicyFile) -> Policy:
    """What a valid document means."""
    watch = document.watch
    return Policy(
        watch=Watch(
            issues=tuple(watch.issues),
            components=tuple(watch.components),
            packages=tuple(watch.packages),
            severity=watch.severity,
            lists=tuple(watch.lists),
        ),
        hardware=tuple(document.hardware),
        python=document.python or "",
        affected=document.affected,
        flaky=document.flaky,
        different_failure=document.different_failure,
        unknown=document.unknown,
        stale=document.stale,
        remedy=document.remedy,
        minimum=document.minimum,
        silent_always=document.silent_always,
        release_days=document.release_days,
        nightly_days=document.nightly_days,
        only_new=document.only_new,
        base=document.base or "",
        applied={issue: tuple(ids) for issue, ids in document.applied.items()},
        ignores=tuple(_ignore(table) for table in document.ignore),
        refuse_assumed=document.refuse_assumed,
        accept=document.accept,
        accept_variant=document.accept_variant,
        snapshot_days=document.snapshot_days,
    )


def _ignore(table: IgnoreTable) -> Ignore:
    return Ignore(table.issue, table.reason, table.author, table.expires, table.workaround or "")


def _read_toml(text: str, where: str) -> tuple[Any, LineMap]:
    plain = text.replace("\r\n", "\n")
    if _LONG_KEY.search(plain):  # what reads TOML takes time by the square of a key's parts
        raise BadPolicy(f"{where}: has a key of more than {_KEY_PARTS} parts")
    try:
        return tomllib.loads(plain), map_lines(plain)
    except tomllib.TOMLDecodeError as error:
        raise BadPolicy(f"{where}: is not TOML: {error}") from None
    except (ValueError, RecursionError) as error:  # a number of 5000 digits, a thousand brackets
        raise BadPolicy(f"{where}: is not TOML we can read: {error}") from None


def _all_in_words(findings: list[Finding], lines: LineMap, where: str, inside: KeyPath) -> str:
    told = sorted((lines.line_of((*inside, *path)), f"{_table(path)}{words}") for path, words in findings)
    first = [f"{where}:{line}: {words}" for line, words in told[:_SHOWN_PROBLEMS]]
    more = len(told) - _SHOWN_PROBLEMS
    return "; ".join([*first, *([f"and {more} more"] if more > 0 else [])])


def _table(path: KeyPath) -> str:
    """`[watch] ` before what is wrong with one of its keys: two tables have a key of the same name."""
    return f"[{path[0]}] " if sum(isinstance(part, str) for part in path) > 1 else ""
