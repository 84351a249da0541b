"""The policy file: `knowngood.toml`, or the table `[tool.knowngood]` of a `pyproject.toml`, as a domain Policy.

It is strict: an unknown key is refused, because a misspelt rule that is passed over lets through what it should stop.
Names of issues, components and builds are looked up when the gate decides, not here. The JSON Schema for editors and
tools of others stands beside this module: `python -m knowngood.gate.policy_file` writes it. It says what each key may
hold; what names mean, only the gate knows.
"""

import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields
from datetime import date
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, get_origin, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from knowngood.domain.errors import BadPolicy
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.gate.policy import Accept, Effect, Ignore, Policy, RemedyFilter, Variants
from knowngood.serialization.by_type import read_value
from knowngood.serialization.toml_models import Finding, read_document, schema_of, schema_text
from knowngood.serialization.toml_positions import KeyPath, LineMap, line_of_long_key, map_lines, outline_of

PUBLISHED = Path(__file__).with_name("policy.schema.json")
POLICY_CHARACTERS = 1 << 17
_KEY_PARTS = 32
_LONGEST_LINE = 500
_SHOWN_PROBLEMS = 5


def _one_line(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be blank")
    if len(text) > _LONGEST_LINE or not text.isprintable():
        raise ValueError(f"must be one line of at most {_LONGEST_LINE} printable characters")
    return text.strip()


def _iso_date(value: object) -> object:
    """JSON has no dates; what TOML and JSON mean alike is taken alike."""
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            return date.fromisoformat(value)
        except ValueError:
            return value
    return value


_Line = Annotated[str, AfterValidator(_one_line), Field(json_schema_extra={"minLength": 1, "maxLength": _LONGEST_LINE})]
_Lines = list[_Line]
_Days = Annotated[int, Field(ge=1, le=36_500)]
_Day = Annotated[date, BeforeValidator(_iso_date)]

_WRITTEN: dict[object, Any] = {
    str: _Line,
    tuple[str, ...]: _Lines,
    Mapping[str, tuple[str, ...]]: dict[_Line, _Lines],
    int: _Days,
    int | None: _Days | None,
    date: _Day,
    Severity | None: Annotated[Severity, Field(strict=False)] | None,
    # Tables are strict; an enum is the one thing TOML cannot hold, so that its word is taken for it.
    **{enum: Annotated[enum, Field(strict=False)] for enum in (Severity, Effect, Accept, RemedyFilter, Variants)},
}
"""How the types of a policy are written in TOML; a type that is not here is written as it is."""


def _model_of(kind: type[Any], name: str, meaning: str, descriptions: Mapping[str, str]) -> type[BaseModel]:
    """The table of a policy file that says what a domain value does: the same keys with the same defaults."""
    keys: dict[str, Any] = {}
    for field in fields(kind):
        written = _WRITTEN.get(get_type_hints(kind)[field.name], get_type_hints(kind)[field.name])
        given: dict[str, Any] = {"default": field.default}
        if field.default is MISSING and field.default_factory is MISSING:
            given = {}
        elif field.default == "":
            written, given = written | None, {"default": None}
        elif isinstance(written, type) and issubclass(written, BaseModel):
            given = {"default_factory": written}
        elif get_origin(written) in {list, dict}:
            given = {"default": get_origin(written)()}
        keys[_KEYS.get(field.name, field.name)] = (written, Field(**given, description=descriptions.get(field.name)))
    model: type[BaseModel] = create_model(name, __config__=_STRICT, __doc__=meaning, **keys)
    return model


_KEYS = {"ignores": "ignore"}
_STRICT = ConfigDict(extra="forbid", strict=True, frozen=True)
_WRITTEN[Watch] = _model_of(
    Watch,
    "WatchTable",
    "What is looked at. Everything named here counts, not only what all of it names.",
    {
        "issues": 'Ids such as "xla-8464"; also "pytorch/xla#8464" or the thread\'s address; "all" for every issue.',
        "components": 'Parts of the stack as the matrix groups them, such as "Inductor C++".',
        "packages": 'Packages you use besides torch, such as "torch_xla": issues that need them are watched.',
        "severity": "Every issue of this severity or worse.",
        "lists": "Watch lists by name, kept by the server.",
    },
)
_WRITTEN[tuple[Ignore, ...]] = GenericAlias(
    list,
    _model_of(
        Ignore,
        "IgnoreTable",
        "An issue that is accepted for a while. One that ran out counts no more, and the gate says so.",
        {
            "reason": "Why it may pass.",
            "author": "Who says so.",
            "expires": "The last day on which it holds, as a date such as 2027-03-31.",
            "workaround": "What you do about it instead; for readers, nothing is measured against it.",
        },
    ),
)
PolicyFile = _model_of(
    Policy,
    "PolicyFile",
    "What a team lets pass. Every key may be left out.",
    {
        "hardware": 'Hardware classes that count, such as "cpu-x86_64" or "cuda-sm_90", or GPUs such as "H100"; none '
        "means every measured one.",
        "python": 'The Python of your environment, such as "3.12", where neither a lock file nor the command says it.',
        "platform": 'The platform of your environment, such as "linux-x86_64" or "macos-arm64", where the command does '
        "not say it. A file that states another is answered with both.",
        "affected": "What an issue that fails does.",
        "flaky": "What an issue does that fails at times.",
        "different_failure": "What a failure without the issue's own signature does.",
        "bigger": "What an issue does that takes more memory, and gives the right answer.",
        "more_work": "What an issue does that takes more compilations, kernels or copies, and gives the right answer.",
        "slower": "What an issue does that takes longer, and gives the right answer.",
        "unknown": (
            "What is done where nobody measured, or evidence cannot say. Without any answer at all nothing ever passes."
        ),
        "stale": "What evidence does at least that is older than the days below.",
        "remedy": (
            "Block on any failing issue, only on those with a fixed release or an effective workaround, or only on "
            "others."
        ),
        "minimum": "Failing issues that are less severe only warn.",
        "silent_always": "Silent wrong results count whatever their severity.",
        "release_days": "After so many days evidence of a release is stale.",
        "nightly_days": "After so many days evidence of a nightly is stale.",
        "snapshot_days": (
            "A snapshot older than this is not used: 30 days unless said, and of what comes with a release any."
        ),
        "only_new": "An issue that fails on the base build too only warns.",
        "base": (
            'The build that `only_new` compares with, such as "torch-2.5.1+cu124"; a command may name it instead.'
        ),
        "unknown_on_base": "What an issue that fails does at most where nothing is known of it on the base build.",
        "applied": (
            "Workarounds you have in place: issue = [ids]. One that is effective on the very build lets the issue pass."
        ),
        "refuse_assumed": "Refuse to take an environment for a build that it only may be.",
        "refuse_unstated": "Refuse to take an environment for Linux x86-64 that states no platform.",
        "accept": (
            'Which answers count: "measured" on the very build, Python and hardware class, or "inferred" ones too.'
        ),
        "accept_variant": (
            "Take the same release's tested wheel for one that is not tested, such as +cpu, as inferred on the CPU. "
            "Never for wheels of ROCm or XPU, nightlies, or what a vendor built."
        ),
        "variants": (
            'Which variants of an issue count: "all", or "reported": one that passes as reported and fails in another '
            "variant then passes."
        ),
    },
)


def parse_policy(text: str, where: str = "knowngood.toml") -> Policy:
    """Read a policy file's text. `where` is its name, which refusals begin with.

    Raises BadPolicy, with the line and key of each problem.
    """
    if len(text) > POLICY_CHARACTERS:
        raise BadPolicy(f"{where}: has {len(text)} characters; a policy has at most {POLICY_CHARACTERS}")
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


def policy_of(document: BaseModel) -> Policy:
    """The policy that a valid document states."""
    tables = document.model_dump(mode="json", exclude_none=True)
    policy: Policy = read_value(Policy, {**tables, "ignores": tables["ignore"]})
    return policy


def _read_toml(text: str, where: str) -> tuple[Any, LineMap]:
    plain = text.replace("\r\n", "\n")
    if line_of_long_key(outline_of(plain), _KEY_PARTS):  # what reads TOML takes time by the square of a key's parts
        raise BadPolicy(f"{where}: has a key of more than {_KEY_PARTS} parts")
    try:
        return tomllib.loads(plain), map_lines(plain)
    except tomllib.TOMLDecodeError as error:
        raise BadPolicy(f"{where}: is not TOML: {error}") from None
    except (ValueError, RecursionError) as error:  # a number of 5000 digits, a thousand brackets
        raise BadPolicy(f"{where}: is not TOML we can read: {error}") from None


def _all_in_words(findings: list[Finding], lines: LineMap, where: str, inside: KeyPath) -> str:
    problems = sorted((lines.line_of((*inside, *path)), f"{_table(path)}{words}") for path, words in findings)
    first = [f"{where}:{line}: {words}" for line, words in problems[:_SHOWN_PROBLEMS]]
    more = len(problems) - _SHOWN_PROBLEMS
    return "; ".join([*first, *([f"and {more} more"] if more > 0 else [])])


def _table(path: KeyPath) -> str:
    """`[watch] ` before what is wrong with one of its keys: two tables have a key of the same name."""
    return f"[{path[0]}] " if sum(isinstance(part, str) for part in path) > 1 else ""


def policy_schema() -> str:
    """The schema of `knowngood.toml`, as the text of its file."""
    return schema_text(schema_of(PolicyFile, "A policy of the Known Good gate (knowngood.toml)"))


if __name__ == "__main__":
    PUBLISHED.write_text(policy_schema(), encoding="utf-8")
    sys.stdout.write(f"wrote {PUBLISHED.name}\n")
