"""The parts of an `issue.toml` that the rules need, read leniently.

A document with one bad key still has its other rules checked: what has not the expected form is left out here, and
refused by its model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from knowngood.domain.issue import BASELINE, CONTROL, SignatureKind


@dataclass(frozen=True)
class VariantOutline:
    """A variant; `at` is its place in the list, and `says_why` whether there is a `why_not`."""

    at: int
    id: str
    params: tuple[str, ...]
    arms: tuple[str, ...]
    says_why: bool
    is_reported: bool


@dataclass(frozen=True)
class Outline:
    """`workarounds` maps ids to their places; `requirements` maps where a list of packages stands to its texts.

    `kind` and `pattern` are None where the document does not say them rightly, so that nothing is concluded from them.
    `exercises` are the baseline's, `suspect` the functions that must run compiled, and `backends` what
    must have compiled them.
    """

    exercises: tuple[str, ...] = ()
    suspect: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    workarounds: Mapping[str, int] = field(default_factory=dict)
    variants: tuple[VariantOutline, ...] = ()
    kind: SignatureKind | None = None
    pattern: str | None = None
    signals: tuple[str, ...] = ()
    searches_log: bool = False
    requirements: Mapping[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)
    no_deps: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    @property
    def arms(self) -> tuple[str, ...]:
        return (CONTROL, BASELINE, *self.workarounds)


def outline_of(data: Mapping[str, Any]) -> Outline:
    """The outline of a document as `tomllib` gives it, right or wrong."""
    signature, packages = as_table(data.get("signature")), as_table(data.get("packages"))
    kind = signature.get("kind")
    pattern = signature.get("pattern", "")
    lists: dict[tuple[str, ...], dict[str, Any]] = {("packages",): packages}
    lists |= {("packages", key): value for key, value in packages.items() if isinstance(value, dict)}
    return Outline(
        exercises=_texts(data.get("exercises")),
        suspect=_texts(as_table(data.get("proof")).get("suspect")),
        backends=_texts(as_table(data.get("proof")).get("backends")),
        workarounds={
            table["id"]: at for at, table in tables(data.get("workaround")) if isinstance(table.get("id"), str)
        },
        variants=tuple(
            VariantOutline(
                at,
                table["id"],
                tuple(as_table(table.get("params"))),
                _texts(table.get("arms")),
                says_why=bool(str(table.get("why_not", "")).strip()),
                is_reported=table.get("reported") is True,
            )
            for at, table in tables(data.get("variant"))
            if isinstance(table.get("id"), str)
        ),
        kind=next((known for known in SignatureKind if known == kind), None),
        pattern=pattern if isinstance(pattern, str) and signature else None,
        signals=_texts(signature.get("signals")),
        searches_log=signature.get("log") is True,
        requirements={path: _texts(table.get("requires")) for path, table in lists.items()},
        no_deps=_texts(packages.get("no_deps")),
        imports=_texts(packages.get("imports")),
    )


def as_table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def tables(value: object) -> list[tuple[int, dict[str, Any]]]:
    return [(at, item) for at, item in enumerate(value) if isinstance(item, dict)] if isinstance(value, list) else []


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()
