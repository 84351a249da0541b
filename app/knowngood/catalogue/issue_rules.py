"""Rules that join several keys of an `issue.toml`, and the outline of one that they read, leniently.

A document with one bad key still has its other rules checked: what has not the expected form is left out here, and
refused by its model. The values that a single key may hold are in `field_types.py`.
"""

import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import regex
from packaging.utils import canonicalize_name

from knowngood.domain.issue import BASELINE, BOUNDS, CONTROL, Comparison, Device, SignatureKind
from knowngood.domain.timed_search import search
from knowngood.serialization.toml_models import Finding
from knowngood.serialization.toml_positions import KeyPath


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


# What a compiler makes is made for one device: what it does on another does not follow.
_DEVICES_OWN = ("inductor_", "triton_", "xla_")


@cache
def host_failures() -> tuple[str, ...]:
    """Failures of a host as they are really printed: a signature that fits one would call a full disk the issue."""
    return tuple(
        (files("knowngood.catalogue") / "host_failures.txt").read_text(encoding="utf-8").strip().split("\n---\n")
    )


def document_findings(data: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    """Findings between the keys of a document."""
    yield from _signature(outline)
    yield from _links(data)
    yield from _ids(data, outline)
    yield from _variants(outline)
    yield from _left(data, outline)
    yield from _cures(data, outline)
    yield from _observed(data, outline)
    yield from _packages(outline)
    requires = as_table(data.get("requires"))
    yield from _device(requires, outline)
    yield from _package(requires, outline)
    yield from _smoke(data)
    yield from _unstorable(data, ())


def _signature(outline: Outline) -> Iterator[Finding]:
    if outline.kind is SignatureKind.SIGNAL and not outline.signals:
        yield ("signature",), '"signals" is missing: kind "signal" names what ends the process, such as ["SIGABRT"]'
    if outline.kind not in {SignatureKind.SIGNAL, None} and outline.signals:
        yield ("signature", "signals"), f'"signals" has no meaning with kind "{outline.kind}"'
    if outline.searches_log and outline.kind not in {SignatureKind.MESSAGE, None}:
        yield ("signature", "log"), f'"log" has no meaning with kind "{outline.kind}"; leave it out'
    if outline.pattern is None:
        return
    path = ("signature", "pattern")
    if not outline.pattern:
        if outline.kind not in {SignatureKind.WRONG_RESULT, *BOUNDS, None}:
            yield path, f'"pattern" is empty: kind "{outline.kind}" is told from other failures by its text'
        return
    if outline.kind in BOUNDS:
        yield path, f'"pattern" has no meaning with kind "{outline.kind}": amounts tell it'
    yield from ((path, message) for message in _pattern_problems(outline.pattern))


def _pattern_problems(pattern: str) -> Iterator[str]:
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        yield f'"pattern" is no regular expression: {error}'
        return
    if compiled.search(""):
        yield '"pattern" matches the empty text, and so everything'
        return
    try:
        hit = next((text for text in host_failures() if search(pattern, (text,)).line is not None), None)
    except regex.error as error:
        yield f'"pattern" is no regular expression to the library that verdicts are made with: {error}'
        return
    if hit is not None:
        yield f'"pattern" also matches a failure of the host: "{" ".join(hit.split())[:100]}"; make it narrower'


def _links(data: Mapping[str, Any]) -> Iterator[Finding]:
    links = data.get("link")
    if not isinstance(links, list) or not links:
        return
    if not any(link.get("kind") == "report" for _, link in tables(links)):
        yield ("link", 0, "kind"), 'no link is the "report"; link the thread in which the issue was reported'
    for at, url in _repeated(links, "url"):
        yield ("link", at, "url"), f'"{url}" is linked twice'


def _repeated(value: object, key: str) -> Iterator[tuple[int, str]]:
    """Each text under this key that an earlier table of the list has too, with its place."""
    seen: set[str] = set()
    for at, table in tables(value):
        text = table.get(key)
        if isinstance(text, str):
            if text in seen:
                yield at, text
            seen.add(text)


def _ids(data: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    for list_name in ("workaround", "variant"):
        for at, id_ in _repeated(data.get(list_name), "id"):
            yield (list_name, at, "id"), f'{list_name} "{id_}" is there twice'
    for id_, at in outline.workarounds.items():
        if id_ in {CONTROL, BASELINE}:
            yield ("workaround", at, "id"), f'"{id_}" is an arm of every issue; give the workaround another name'
    for variant in outline.variants:
        for place, arm in enumerate(variant.arms):
            if arm not in outline.arms:
                yield (
                    ("variant", variant.at, "arms", place),
                    f'no arm is called "{arm}"; known: {", ".join(outline.arms)}',
                )


def _variants(outline: Outline) -> Iterator[Finding]:
    reported = ""
    for variant in outline.variants:
        yield from _left_out(variant, outline)
        if variant.is_reported and reported:
            words = f'variant "{reported}" is the report\'s own already; at most one is'
            yield ("variant", variant.at, "reported"), words
        elif variant.is_reported:
            reported = variant.id


def _left_out(variant: VariantOutline, outline: Outline) -> Iterator[Finding]:
    """A workaround that is not tried with a variant cannot be called effective where that variant fails."""
    missing = [id_ for id_ in outline.workarounds if variant.arms and id_ not in variant.arms]
    if missing and not variant.says_why:
        words = f'"arms" leaves out {", ".join(missing)}; say in "why_not" why it cannot be tried with this variant'
        yield ("variant", variant.at, "arms"), words
    if variant.says_why and not missing:
        yield ("variant", variant.at, "why_not"), '"why_not" has no meaning: no workaround is left out of this variant'


def _left(data: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    """Each thing that is left wrong is measured by a variant of the issue's own, or the row says why not."""
    known = [variant.id for variant in outline.variants]
    for at, table in tables(data.get("left")):
        variant = table.get("variant", "")
        if bool(variant) == bool(str(table.get("why_not", "")).strip()):
            yield ("left", at), 'either "variant" measures it, or "why_not" says why none does; write one of the two'
        elif variant and variant not in known:
            yield ("left", at, "variant"), f'no variant is called "{variant}"; known: {", ".join(known) or "none"}'


def _cures(data: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    """A claim that names a workaround names one of the issue's own."""
    for at, claim in tables(data.get("claim")):
        cure = claim.get("workaround")
        if isinstance(cure, str) and cure and cure not in outline.workarounds:
            known = ", ".join(outline.workarounds) or "none"
            yield ("claim", at, "workaround"), f'no workaround is called "{cure}"; known: {known}'


def _observed(data: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    amounts = [
        key
        for key, table in as_table(data.get("observed")).items()
        if as_table(table).get("compare") == Comparison.AT_MOST
    ]
    if outline.kind in BOUNDS and not amounts:
        words = f'kind "{outline.kind}" is told by amounts; write [observed.KEY] with compare = "at_most" for each'
        yield ("signature", "kind"), words
    if outline.kind in BOUNDS and data.get("silent") is True:
        yield ("silent",), f'"silent" is for wrong numbers, and those of an issue of kind "{outline.kind}" are right'
    if outline.kind not in {*BOUNDS, None}:
        words = f'compare = "at_most" is for issues of kind {" or ".join(BOUNDS)}, and this is one of "{outline.kind}"'
        yield from ((("observed", key, "compare"), words) for key in amounts)
    for key, table in as_table(data.get("observed")).items():
        if not isinstance(table, dict):
            continue
        for name in ("rtol", "atol"):
            if name in table and table.get("compare", Comparison.CLOSE) not in {Comparison.CLOSE, Comparison.AT_MOST}:
                yield ("observed", key, name), f'"{name}" has no meaning with compare = "{table["compare"]}"'
        arms = table.get("arms")
        for place, arm in enumerate(arms if isinstance(arms, list) else []):
            if arm not in outline.arms or arm == CONTROL:
                others = ", ".join(known for known in outline.arms if known != CONTROL)
                words = f'"{arm}" is no arm to compare with the control; known: {others}'
                yield ("observed", key, "arms", place), words


def _packages(outline: Outline) -> Iterator[Finding]:
    for path, texts in outline.requirements.items():
        for place, text in enumerate(texts):
            if re.split(r"[=<>!~ ]", text)[0].lower() in {"torch", "triton"}:
                yield (*path, "requires", place), f'"{text}": torch and Triton come from the build'
    required = {text.partition("==")[0].strip() for text in _requirements(outline)}
    for place, name in enumerate(outline.no_deps):
        if name not in required:
            yield (
                ("packages", "no_deps", place),
                f'"{name}" is not among the packages required; write it as it stands there',
            )


def _requirements(outline: Outline) -> Iterator[str]:
    return (text for texts in outline.requirements.values() for text in texts)


def _device(requires: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    device = requires.get("device", "cpu")
    if "compute_capability" in requires and device != "cuda":
        yield ("requires", "compute_capability"), '"compute_capability" has no meaning without device = "cuda"'
    if requires.get("vector_isas") and device != Device.CPU:
        yield ("requires", "vector_isas"), '"vector_isas" has no meaning without device = "cpu"'
    own = next((probe for probe in outline.exercises if probe.startswith(_DEVICES_OWN)), None)
    if device == Device.ANY and own:
        words = f'device = "any" is refused: the baseline exercises "{own}", which is another path on each device'
        yield ("requires", "device"), f'{words}; write "cpu" or "cuda"'


def _package(requires: Mapping[str, Any], outline: Outline) -> Iterator[Finding]:
    known = sorted({canonicalize_name(re.split(r"[=<>!~ ]", text)[0]) for text in _requirements(outline)})
    package = requires.get("package")
    if known and isinstance(package, str) and package and package not in known:
        yield ("requires", "package"), f'"{package}" is none of the issue\'s packages; known: {", ".join(known)}'


def _smoke(data: Mapping[str, Any]) -> Iterator[Finding]:
    """A smoke row has to be asked of every Python, in the bare environment of the build."""
    if data.get("smoke") is not True:
        return
    for key in ("python", "package"):
        if as_table(data.get("requires")).get(key):
            yield ("requires", key), f'a smoke row is asked of every build and Python; leave "{key}" out'
    if as_table(data.get("packages")):
        yield ("packages",), "a smoke row is asked of the build alone; leave its packages out"


def _unstorable(value: object, path: KeyPath) -> Iterator[Finding]:
    """PostgreSQL keeps no NUL in a text."""
    if isinstance(value, str) and "\0" in value:
        yield path, "holds a NUL character, which no database keeps"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _unstorable(key, (*path, key))
            yield from _unstorable(inner, (*path, key))
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _unstorable(inner, (*path, at))
