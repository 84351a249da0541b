"""Builds as people write them, and which build of the catalogue is meant: one rule for every door.

`2.5.1`, `v2.5.1`, `torch 2.5.1`, `torch==2.5.1`, `2.5.1+cu124`, `torch-2.5.1 cu124` and every build id, each with
`~triton-3.2.0` and `~py312` behind it. Ids that we wrote ourselves are read by `build.parse_build_id`.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.build import DEFAULT_PYTHON, Build, BuildId, parse_build_id
from knowngood.domain.builds.platforms import are_alike
from knowngood.domain.errors import BadRequest, UnknownBuild
from knowngood.domain.grouping import gathered, grouped
from knowngood.domain.message import Message

_LONGEST, _NEAREST = 200, 3
_NAME = re.compile(
    r"(?:(?P<torch>(?:py)?torch)(?P<sign>\s*={1,3}\s*|\s*-\s*|\s+|(?=[v\d])))?(?P<version>[^\s~][^~]*?)"
    r"(?P<parts>~.*)?",
    re.IGNORECASE | re.DOTALL,
)
_PLUS = re.compile(r"\s*\+\s*|\s+")
_SOME_VERSION = re.compile(r"[0-9]{1,4}(?:\.[0-9]{1,4}){1,2}")
_MINOR_PYTHON = re.compile(r"([0-9]{1,2}\.[0-9]{1,3})(?:\.[0-9A-Za-z.+]*)?")
_PYTHON_PART = re.compile(r"~py\d", re.IGNORECASE)
_LETTERS = re.compile(r"[a-z]*")

_Family = tuple[Version, Version | None]


@dataclass(frozen=True)
class BuildName:
    """A build's name as somebody wrote it. `triton` is None for torch's own pin, `python` where it is left open: a
    build id without `~py` means 3.11, a version of torch alone means none.
    """

    text: str
    torch: Version
    triton: Version | None = None
    python: str | None = None

    def id_on(self, python: str) -> BuildId:
        return BuildId(str(self.torch), str(self.triton) if self.triton else None, python)


def read_build_name(text: str) -> BuildName:
    """Raises UnknownBuild, and nothing else, for what names no build."""
    written = text.strip()
    match = _NAME.fullmatch(written) if len(written) <= _LONGEST else None
    try:
        torch = Version(_PLUS.sub("+", match["version"].strip())) if match else None
    except InvalidVersion:
        torch = None
    if match is None or torch is None:
        raise UnknownBuild(
            f'"{shown(written)}" names no build; write a version of torch (2.6.0, 2.6.0+cu124) or the id of a build '
            "(torch-2.6.0+cu124~py312)"
        )
    parts = match["parts"] or ""
    id_ = parse_build_id(f"torch-{torch}{parts.casefold()}")
    is_id = (match["torch"] or "").casefold() == "torch" and match["sign"].strip() == "-"
    python = id_.python if is_id or _PYTHON_PART.search(parts) else None
    return BuildName(written, torch, Version(id_.triton) if id_.triton else None, python)


def minor_python(text: str) -> str:
    """`3.12` of `3.12.4`; empty stays empty. Raises BadRequest for a text that is no Python."""
    match = _MINOR_PYTHON.fullmatch(text.strip())
    if match is None and text.strip():
        raise BadRequest(f'Python "{shown(text)}" is none; write for example 3.12')
    return match[1] if match else ""


def find_build(text: str, builds: Mapping[str, Build], *, python: str = "") -> Build:
    """The build of the catalogue that `text` means; of many names, make one `BuildNames` of the catalogue."""
    return BuildNames(builds).find(text, python=python)


def find_build_or_wheel(text: str, builds: Mapping[str, Build]) -> Build:
    """Find the build that `text` means, or the wheel where it names no Python."""
    return BuildNames(builds).find_or_wheel(text)


@dataclass(frozen=True)
class BuildNames:
    """A catalogue's builds by what may be written for them."""

    builds: Mapping[str, Build]

    def find(self, text: str, *, python: str = "") -> Build:
        """The build that `text` means. Where the CUDA variant is left out, the default index's, or the only one there
        is; where the Python is, the default one, or the lowest there is. `python` outweighs what the text says.

        Raises UnknownBuild, with what may be meant.
        """
        if text in self.builds and not python:
            return self.builds[text]
        try:
            name = read_build_name(text)
        except UnknownBuild as error:
            raise UnknownBuild(error.problem, self._near_some_version(text)) from None
        torch, _ = self.torch_of(name)
        family = self.family(torch, name.triton)
        wanted = python or name.python
        build = next((member for member in family if member.python == wanted), None) if wanted else preferred(family)
        if build is None:
            raise self._unknown(name, torch, wanted, family)
        return build

    def find_or_wheel(self, text: str) -> Build:
        """Find the same build; the wheel where the Python is left out."""
        build = self.find(text)
        return build if text in self.builds or read_build_name(text).python else build.wheel

    def _unknown(self, name: BuildName, torch: Version, python: str | None, family: Collection[Build]) -> UnknownBuild:
        written = shown(name.text)
        if family:
            return UnknownBuild(
                f'no build is called "{written}" here: {without_python(family)} is there for '
                f"{pythons_in_words([build.python for build in family])}, not for Python {python}",
                [build.id for build in family],
            )
        variants = self.variants(torch, name.triton) if torch.local is None else []
        if variants:
            return UnknownBuild(
                f'"{written}" names no CUDA variant, and none of those here is the default index\'s',
                [variant.id for variant in variants],
                what="candidates",
            )
        near = self.nearest(torch, triton=name.triton, python=python)
        others = self._of_other_kinds(torch)
        either = "name one, or " if near else ""
        why = (
            f": of torch {torch.public} there are {others} wheels, whose answers are not this one's; {either}"
            f"declare torch-{torch} in a builds.toml of your own"
        )
        return UnknownBuild(f'no build is called "{written}" here{why if others else ""}', near)

    def _of_other_kinds(self, torch: Version) -> str:
        """`+cu121, +cu124`: the local variants of a release, where all are of other kinds than the one asked for
        (+cpu); else empty.
        """
        variants = [build.build_id.version.local or "" for build in self.variants(_public(torch), None)]
        if torch.local is None or any(_kind(local) == _kind(torch.local) for local in variants):
            return ""
        return ", ".join(f"+{local}" for local in variants)

    def torch_of(self, name: BuildName) -> tuple[Version, Message | None]:
        """The torch that is meant, with its local part, and what was taken for granted (None: nothing)."""
        torch = name.torch
        if torch.local is not None or self.family(torch, name.triton):
            return torch, None
        default = self.default_of(torch)
        if default is not None:
            return default, Message("default_variant", build=name.text, found=str(default))
        variants = self.variants(torch, name.triton)
        if len(variants) == 1:
            only = variants[0].build_id.version
            return only, Message("only_variant", build=name.text, found=str(only))
        return torch, None

    def family(self, torch: Version, triton: Version | None) -> tuple[Build, ...]:
        """The builds of one torch, with its local part, and one Triton (None: torch's own), by ascending Python."""
        return self._families.get((torch, triton), ())

    def default_of(self, release: Version) -> Version | None:
        """The default index's torch of a release, as it is imported: 2.6.0 -> 2.6.0+cu124."""
        versions = self._defaults.get(release, frozenset())
        return next(iter(versions)) if len(versions) == 1 else None

    def variants(self, release: Version, triton: Version | None) -> list[Build]:
        """One build of each local variant of a release, in their order."""
        torches = sorted({torch for torch, _ in self._families if Version(torch.public) == release})
        builds = [preferred(self.family(torch, triton)) for torch in torches]
        return [build for build in builds if build is not None]

    def nearest(
        self,
        torch: Version,
        *,
        triton: Version | None = None,
        python: str | None = None,
        among: Collection[str] | None = None,
    ) -> tuple[str, ...]:
        """At most three builds (of `among`) of the same backend, one for each torch and Triton, by the order of
        versions: the same release first, then the same minor one, then by how many releases lie between.
        """
        allowed = (
            build for id_, build in self.builds.items() if (among is None or id_ in among) and _is_alike(build, torch)
        )
        by_column = grouped(allowed, lambda build: build.build_id.apart_from_python)
        columns = [min(column, key=lambda build: apart(build.python, python)) for column in by_column.values()]
        line = sorted({_public(torch), *(build.build_id.public_version for build in columns)})

        def distance(build: Build) -> tuple[object, ...]:
            version = build.build_id.version
            is_of_other_kind, between = variant_distance(build, torch)
            return (
                version.base_version != torch.base_version,
                version.release[:2] != torch.release[:2],
                abs(line.index(build.build_id.public_version) - line.index(_public(torch))),
                is_of_other_kind,
                not is_of_triton(build, triton),
                between,
                build.id,
            )

        return tuple(build.id for build in sorted(columns, key=distance)[:_NEAREST])

    def _near_some_version(self, text: str) -> tuple[str, ...]:
        match = _SOME_VERSION.search(text[:_LONGEST])
        return self.nearest(Version(match[0])) if match else ()

    @cached_property
    def _families(self) -> Mapping[_Family, tuple[Build, ...]]:
        families = gathered(
            ((build.build_id.version, triton), build)
            for build in self.builds.values()
            for triton in (
                *([] if build.is_mismatched else [None]),
                *([] if build.triton is None else [Version(build.triton)]),
            )
        )
        return {key: tuple(sorted(family, key=lambda member: member.build_id)) for key, family in families.items()}

    @cached_property
    def _defaults(self) -> Mapping[Version, frozenset[Version]]:
        builds = (
            build.build_id for build in self.builds.values() if build.origin == "default" and not build.is_mismatched
        )
        by_release = grouped(builds, lambda build_id: build_id.public_version)
        return {
            release: frozenset(build_id.version for build_id in build_ids) for release, build_ids in by_release.items()
        }


def _is_alike(build: Build, torch: Version) -> bool:
    """Whether a build is like `torch`; a bare version may mean the default index's wheel, whatever its mark."""
    own = build.build_id
    return are_alike(own.version, torch) or (build.origin == "default" and are_alike(own.public_version, torch))


def preferred(family: Iterable[Build]) -> Build | None:
    """Of builds that differ in Python alone, the default Python's, else the lowest one's; None where there are none."""
    return min(family, key=lambda build: (build.python != DEFAULT_PYTHON, build.build_id), default=None)


def without_python(family: Collection[Build]) -> str:
    return str(next(iter(family)).build_id.apart_from_python)


def pythons_in_words(pythons: Collection[str]) -> str:
    """`Python 3.10, 3.11 and 3.12`."""
    *most, last = pythons
    return f"Python {', '.join(most)} and {last}" if most else f"Python {last}"


def is_of_triton(build: Build, triton: Version | None) -> bool:
    if triton is None:
        return not build.is_mismatched
    return build.triton is not None and Version(build.triton) == triton


def apart(first: str, second: str | None) -> int:
    """How many minor releases lie between two Pythons; one that is left open counts as the default one."""

    def minor(python: str) -> int:
        match = re.fullmatch(r"[0-9]+\.([0-9]{1,3})", python)
        return int(match[1]) if match else 0

    return abs(minor(first) - minor(second or DEFAULT_PYTHON))


def variant_distance(build: Build, torch: Version) -> tuple[bool, int]:
    """How far apart two local variants are: whether they are of different kinds, then by their numbers. For a version
    without one, or of another kind (+cpu), the default index's is the nearest.
    """
    own, wanted = build.build_id.version.local or "", torch.local or ""
    is_of_other_kind = _kind(own) != _kind(wanted or "cu")  # a bare version is the default index's, which has CUDA
    if is_of_other_kind or not wanted:
        return is_of_other_kind, int(build.origin != "default")
    return False, abs(_number(own) - _number(wanted))


def _kind(local: str) -> str:
    """`cu` of cu124, `rocm` of rocm6.3."""
    match = _LETTERS.match(local)
    return match[0] if match else ""


def _number(local: str) -> int:
    digits = re.sub(r"\D", "", local)[:6]
    return int(digits) if digits else 0


def _public(version: Version) -> Version:
    return Version(version.public)


def shown(text: str, most: int = 80) -> str:
    """A stranger's words that are fit for any terminal, log and page."""
    plain = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text.strip()[: most + 1])
    return plain if len(plain) <= most else f"{plain[:most]}\N{HORIZONTAL ELLIPSIS}"
