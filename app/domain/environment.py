"""An environment as somebody states it, and the tested build that it is: exactly, or not at all.

No neighbour ever stands in for what was asked. Where an environment leaves open what a build fixes, the build is
`is_assumed` and the note says what was assumed; where too little is stated even for that, there is no build.
Source: design 1, 6 and 9.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import InvalidVersion, Version

from app.domain.build import DEFAULT_PYTHON, Build, BuildId, parse_build_id

# Hosts of the wheels that the builds of the catalogue are made of.
PYPI = ("pypi.org", "files.pythonhosted.org", "pypi.python.org")
PYTORCH = ("download.pytorch.org", "download-r2.pytorch.org")
CONDA = "conda:"

_TORCH, _TRITON = "torch", ("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-windows")
_VARIANT = re.compile(r"cu\d{2,3}|cpu|rocm\d+(?:\.\d+)*|xpu")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d+)?")
_FAMILY = re.compile(r"[a-z]*")
_FOREIGN = re.compile(r"win32|win_|macosx|aarch64|arm64|armv|ppc64|s390x|i686|riscv|musllinux|ios_|android")
_FOREIGN_CHANNEL = re.compile(r"/(?:osx|win|emscripten|linux-(?!64/))[^/]*/[^/]*$")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@?#]*@)?(?P<host>[^/:?#]*)(?::\d*)?(?P<path>[^?#]*)", re.IGNORECASE)
_NAMED = 3


@dataclass(frozen=True)
class Pin:
    """One package of a stated environment.

    `name` is canonical (PEP 503), `version` as it is stated (empty where none is), `origin` what stands in place of a
    version from an index: a git address, a path, a URL (empty for an index, and for a wheel of the default index or of
    PyTorch's own). `index` is the index it is locked from, where the file says so (`conda:CHANNEL` for conda's
    packages); `line` where it stands (1 is the first; 0 where lines mean nothing).
    """

    name: str
    version: str = ""
    origin: str = ""
    index: str = ""
    line: int = 0


@dataclass(frozen=True)
class Stated:
    """What was read from one source. `kind` names it (`pip freeze`, `uv.lock`); `python` is `3.12`, or empty.

    A name stands more than once where a file locks several versions of it (markers); `indexes` are those that hold for
    the whole file.
    """

    kind: str
    pins: tuple[Pin, ...]
    python: str = ""
    indexes: tuple[str, ...] = ()

    def all_of(self, name: str) -> tuple[Pin, ...]:
        return tuple(pin for pin in self.pins if pin.name == name)


@dataclass(frozen=True)
class Resolved:
    """The tested build that an environment is.

    `build` is its id (None: not tested), `asked` the environment in a few words ("torch 2.6.0 from PyPI, Triton 3.2.0,
    Python 3.12"), `note` why it is none or what was assumed. `is_assumed` says that the environment leaves open what
    the build fixes, such as the CUDA variant of a bare `torch==2.6.0`. `nearest` are tested builds beside it, the
    nearest first: they are named to people and never used.
    """

    build: str | None
    asked: str
    note: str = ""
    is_assumed: bool = False
    nearest: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    pythons: tuple[str, ...] = ()
    variant: str = ""


@dataclass(frozen=True)
class _Question:
    """What is looked for. `torch` has the local part wherever one is known; `triton` and `python` may be open."""

    torch: Version
    triton: Version | None
    python: str | None
    asked: str
    assumed: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Catalogue:
    builds: Mapping[str, Build]
    tested: Collection[str]

    def default_of(self, version: Version) -> Version | None:
        """The default index's torch of a release, as it is imported: 2.6.0 -> 2.6.0+cu124."""
        found = {
            Version(build.torch)
            for build in self.builds.values()
            if build.origin == "default" and not build.is_mismatched and build.build_id.public_version == version
        }
        return found.pop() if len(found) == 1 else None

    def cuda_of(self, torch: Version) -> str | None:
        return next((one.cuda for one in self.builds.values() if one.build_id.version == torch), None)


class _Unclear(Exception):
    """The environment names no one build; the text says why and what to state."""


def resolve(stated: Stated, builds: Mapping[str, Build], tested: Collection[str]) -> Resolved:
    """The tested build that `stated` is. `builds` are the catalogue's by id, `tested` the ids with a measured cell.

    Total: whatever cannot be one build is a Resolved without one, whose note says why.
    """
    catalogue = _Catalogue(builds, tested)
    packages = _packages(stated)
    asked = _asked(stated)
    try:
        torch = _the_torch(stated)
        question = _question(stated, torch, asked, catalogue)
    except _Unclear as unclear:
        nearest = _nearest_to_stated(stated, catalogue)
        return Resolved(None, asked, str(unclear), nearest=nearest, packages=packages)
    return replace(_settle(question, catalogue), packages=packages)


def resolve_build(text: str, builds: Mapping[str, Build], tested: Collection[str]) -> Resolved:
    """The tested build of a build id. A bare `torch-2.6.0` is the default index's, assumed.

    Raises UnknownBuild where `text` is no build id at all; a well-formed one that nobody measured is a Resolved without
    a build.
    """
    id_ = parse_build_id(text)
    catalogue = _Catalogue(builds, tested)
    torch, assumed = id_.version, tuple[str, ...]()
    known = any(build.build_id.version == torch for build in builds.values())
    default = catalogue.default_of(torch) if not known and torch.local is None else None
    if default is not None:
        assumed = (f'"{text.strip()}" names no CUDA variant; taken as that of the default index, {default}',)
        torch = default
    triton = Version(id_.triton) if id_.triton else None
    return _settle(_Question(torch, triton, id_.python, str(id_), assumed), catalogue)


def _packages(stated: Stated) -> dict[str, str]:
    """Versions of all but torch and Triton, by name; empty where a package has none or more than one."""
    versions: dict[str, set[str]] = {}
    for pin in stated.pins:
        if pin.name != _TORCH and pin.name not in _TRITON:
            versions.setdefault(pin.name, set()).add(pin.version)
    return {name: found.pop() if len(found) == 1 else "" for name, found in sorted(versions.items())}


def _asked(stated: Stated) -> str:
    torches = _distinct(stated.all_of(_TORCH))
    if not torches:
        return f"no torch ({stated.kind})"
    parts = [" and ".join(f"torch {_words_of(pin, stated)}" for pin in torches)]
    parts += [f"Triton {version}" for version in _versions(_tritons(stated))]
    if stated.python:
        parts.append(f"Python {stated.python}")
    return ", ".join(parts)


def _words_of(pin: Pin, stated: Stated) -> str:
    if pin.origin:
        return f"{pin.version} from {pin.origin}".strip()
    indexes = (pin.index,) if pin.index else stated.indexes
    source = _source_words(indexes[0]) if len(indexes) == 1 else ""
    return f"{pin.version or 'of no stated version'}{source}"


def _source_words(index: str) -> str:
    if index.startswith(CONDA):
        return f" from conda's channel {index.removeprefix(CONDA)}" if index != CONDA else " from conda"
    if _is_pypi(index):
        return " from PyPI"
    return f" from {host_of(index) or index}"


def _distinct(pins: Sequence[Pin]) -> tuple[Pin, ...]:
    """Pins that say different things; one without a version says nothing beside one that has it."""
    stated = [pin for pin in pins if pin.version or pin.origin] or list(pins)[:1]
    return tuple({(_plain(pin.version), pin.origin, pin.index.startswith(CONDA)): pin for pin in stated}.values())


def _plain(version: str) -> str:
    try:
        return str(Version(version))
    except InvalidVersion:
        return version


def _the_torch(stated: Stated) -> Pin:
    torches = _distinct(stated.all_of(_TORCH))
    if not torches:
        raise _Unclear(f"This {stated.kind} names no torch; state the environment that torch is in")
    if len(torches) > 1:
        each = " and ".join(_words_of(pin, stated) + (f" (line {pin.line})" if pin.line else "") for pin in torches)
        raise _Unclear(
            f"This {stated.kind} holds {len(torches)} torches: {each}; "
            "state the Python, or export the one environment that is used (uv export, pip freeze)"
        )
    (pin,) = torches
    if pin.origin:
        _refuse_what_is_no_wheel(pin)
    if not pin.version:
        raise _Unclear(
            f"torch is named{_at(pin)} without an exact version; state torch==VERSION, a lock file, or pip freeze"
        )
    return pin


def _at(pin: Pin) -> str:
    return f" in line {pin.line}" if pin.line else ""


def _refuse_what_is_no_wheel(pin: Pin) -> None:
    if "git+" in pin.origin or pin.origin.startswith(("git:", "git@", "ssh:", "hg+", "svn+", "bzr+")):
        raise _Unclear(f"torch is built from source{_at(pin)} ({pin.origin}); only released wheels are tested")
    if _FOREIGN.search(_file_of(pin.origin)) or _FOREIGN_CHANNEL.search(pin.origin):
        raise _Unclear(
            f"torch{_at(pin)} is for another platform ({_file_of(pin.origin)}); builds are tested on Linux x86_64"
        )
    if not pin.origin.startswith(("http://", "https://")):
        raise _Unclear(
            f"torch comes from the local path {pin.origin}{_at(pin)}, and what is in it cannot be known; "
            "if it is a released wheel, name its build instead (torch-2.6.0+cu124)"
        )
    if not _file_of(pin.origin).endswith(".whl"):
        raise _Unclear(f"torch comes from {pin.origin}{_at(pin)}, which is no wheel; only released wheels are tested")


def _file_of(address: str) -> str:
    return path_of(address).rpartition("/")[2]


def host_of(address: str) -> str:
    """The host of an address in small letters; empty for a path."""
    found = _ADDRESS.match(address)
    return found["host"].lower() if found else ""


def path_of(address: str) -> str:
    """The path of an address, without query and fragment; a path is its own."""
    found = _ADDRESS.match(address)
    return found["path"] if found else address


def _question(stated: Stated, pin: Pin, asked: str, catalogue: _Catalogue) -> _Question:
    try:
        version = Version(pin.version)
    except InvalidVersion:
        raise _Unclear(f'"{pin.version}" is no version of torch{_at(pin)} (PEP 440); write torch==2.6.0') from None
    triton = _the_triton(stated)
    torch, assumed = _variant(stated, pin, version, catalogue)
    if pin.origin and host_of(pin.origin) not in PYPI + PYTORCH:
        assumed += (f"the wheel comes from {host_of(pin.origin)}, not from PyPI or download.pytorch.org",)
    return _Question(torch, triton, stated.python or None, asked, assumed)


def _the_triton(stated: Stated) -> Version | None:
    """None where none is stated: then it is torch's own pin."""
    tritons = _tritons(stated)
    foreign = next((pin.origin for pin in tritons if pin.origin), "")
    if foreign:
        raise _Unclear(f"Triton comes from {foreign}; only released versions are tested")
    versions = _versions(tritons)
    if len(versions) > 1:
        raise _Unclear(f"This {stated.kind} holds Triton {' and '.join(versions)}; state the one that is used")
    try:
        return Version(versions[0]) if versions else None
    except InvalidVersion:
        raise _Unclear(f'"{versions[0]}" is no version of Triton (PEP 440)') from None


def _tritons(stated: Stated) -> tuple[Pin, ...]:
    return next((found for name in _TRITON if (found := stated.all_of(name))), ())


def _versions(pins: Sequence[Pin]) -> list[str]:
    return sorted({_plain(pin.version) for pin in pins if pin.version})


def _variant(stated: Stated, pin: Pin, version: Version, catalogue: _Catalogue) -> tuple[Version, tuple[str, ...]]:
    """The torch with its local part, and what had to be assumed for it."""
    if pin.index.startswith(CONDA):
        return _conda_variant(stated, version, catalogue)
    cuda = _stated_cuda(stated)
    if version.local is not None:
        return version, _beside(version, cuda, catalogue)
    variant = _index_variant(stated, pin)
    if variant:
        torch = Version(f"{version}+{variant}")
        _refuse_other_cuda(torch, cuda, catalogue.cuda_of(torch), f"the index's torch {torch}")
        return torch, ()
    default = catalogue.default_of(version)
    if default is None:
        return version, ()
    wanted = catalogue.cuda_of(default)
    _refuse_other_cuda(version, cuda, wanted, f"the default index's torch {version}")
    indexes = (pin.index,) if pin.index else stated.indexes
    if cuda or (indexes and all(map(_is_pypi, indexes))):
        return default, ()
    other = next((index for index in indexes if not _is_pypi(index)), "")
    place = f" and {other} may hold other wheels" if other else ""
    return default, (
        (
            f"torch {version} is stated without its CUDA variant{place}; taken as the default index's {default} "
            f"(write torch=={default}, or give pip freeze or a lock file, which pin it)"
        ),
    )


def _conda_variant(stated: Stated, version: Version, catalogue: _Catalogue) -> tuple[Version, tuple[str, ...]]:
    """conda's torch has no local part: `pytorch-cuda` or the build string says what it is built for.

    It is compiled apart from the wheel that was measured, so that it is never more than assumed.
    """
    cuda = next((pin.version for name in ("pytorch-cuda", "cuda-version") for pin in stated.all_of(name)), "")
    is_cpu = bool(stated.all_of("cpuonly"))
    if is_cpu == bool(cuda):
        raise _Unclear(
            f"conda's pytorch {version} leaves open what it is built for; "
            "state pytorch-cuda=12.4 or cpuonly, or give conda list --explicit"
        )
    local = "cpu" if is_cpu else f"cu{''.join(cuda.split('.')[:2])}"
    torch = version if version.local else Version(f"{version}+{local}")
    known = catalogue.cuda_of(torch) is not None
    return torch, (f"conda's package is compiled apart from the wheel {torch} that was measured",) if known else ()


def _stated_cuda(stated: Stated) -> tuple[str, ...]:
    """`("12.4", "nvidia-cuda-runtime-cu12 12.4.127")` of what is pinned beside torch; empty where none is."""
    runtime = [pin for pin in stated.pins if _RUNTIME.fullmatch(pin.name) and pin.version]
    found = runtime or [pin for pin in stated.all_of("cuda-toolkit") if pin.version]
    minors = {".".join(pin.version.split(".")[:2]) for pin in found}
    return (*sorted(minors), " and ".join(f"{pin.name} {pin.version}" for pin in found)) if found else ()


def _refuse_other_cuda(version: Version, cuda: tuple[str, ...], wanted: str | None, what: str) -> None:
    if cuda and wanted is not None and cuda[:-1] != (wanted,):
        raise _Unclear(
            f"torch {version} stands beside {cuda[-1]}, and {what} is built for CUDA {wanted}: "
            "the file does not say which build it is; state torch with its local part (torch==2.6.0+cu124)"
        )


def _beside(torch: Version, cuda: tuple[str, ...], catalogue: _Catalogue) -> tuple[str, ...]:
    wanted = catalogue.cuda_of(torch)
    if not cuda or wanted is None or cuda[:-1] == (wanted,):
        return ()
    return (f"{cuda[-1]} stands beside torch {torch}, which was tested with CUDA {wanted}",)


def _index_variant(stated: Stated, pin: Pin) -> str:
    """The variant that the index of a bare version decides; empty where it decides none."""
    indexes = (pin.index,) if pin.index else stated.indexes
    variants = sorted({variant for index in indexes if (variant := variant_of(index))})
    if len(variants) > 1:
        raise _Unclear(f"indexes of {' and '.join(variants)} are stated, and torch {pin.version} may come from either")
    if variants:
        return variants[0]
    every = next((index for index in indexes if host_of(index) in PYTORCH), "")
    if every:
        raise _Unclear(
            f"{every} holds every variant of torch {pin.version}; state which (torch=={pin.version}+cu124, say)"
        )
    return ""


def variant_of(index: str) -> str:
    """`cu126` of an index or folder of one variant (https://download.pytorch.org/whl/cu126); else empty."""
    return next((part for part in reversed(path_of(index).split("/")) if _VARIANT.fullmatch(part)), "")


def index_of_variant(variant: str) -> str:
    """PyTorch's own index of one variant's wheels: what `variant_of` reads."""
    return f"https://{PYTORCH[0]}/whl/{variant}"


def _is_pypi(index: str) -> bool:
    return host_of(index) in PYPI


def _settle(question: _Question, catalogue: _Catalogue) -> Resolved:
    same = {id_: build for id_, build in catalogue.builds.items() if _is_asked(build, question)}
    tested = sorted((id_ for id_ in same if id_ in catalogue.tested), key=lambda id_: same[id_].build_id)
    if not tested:
        why = (
            f"{min(same, key=lambda id_: same[id_].build_id)} is in the catalogue and was never measured"
            if same
            else f"No such build is in the catalogue: {_name(question)}"
        )
        note = "; ".join((why, *question.assumed))
        return Resolved(None, question.asked, note, nearest=_nearest(question, catalogue))
    exact = [id_ for id_ in tested if question.python in (None, same[id_].python)]
    if exact:
        return Resolved(exact[0], question.asked, "; ".join(question.assumed), is_assumed=bool(question.assumed))
    chosen = min(tested, key=lambda id_: (_apart(same[id_].python, question.python), id_))
    python = f"{_name(question)} was measured on Python {same[chosen].python}, not on {question.python}"
    return Resolved(chosen, question.asked, "; ".join((python, *question.assumed)), is_assumed=True)


def _is_asked(build: Build, question: _Question) -> bool:
    if build.build_id.version != question.torch:
        return False
    if question.triton is None:
        return not build.is_mismatched
    return build.triton is not None and Version(build.triton) == question.triton


def _name(question: _Question) -> str:
    triton = f" with Triton {question.triton}" if question.triton else ""
    return f"torch {question.torch}{triton}"


def _apart(one: str, other: str | None) -> int:
    def minor(python: str) -> int:
        found = re.fullmatch(r"\d+\.(\d{1,3})", python)
        return int(found[1]) if found else 0

    return abs(minor(one) - minor(other or DEFAULT_PYTHON))


def _nearest_to_stated(stated: Stated, catalogue: _Catalogue) -> tuple[str, ...]:
    """Of an environment that is no one build: those near the first version of torch that it states."""
    for pin in stated.all_of(_TORCH):
        try:
            version = Version(pin.version)
        except InvalidVersion:
            continue
        variant = variant_of(pin.index) if version.local is None else ""
        torch = Version(f"{version}+{variant}") if variant else version
        return _nearest(_Question(torch, None, stated.python or None, ""), catalogue)
    return ()


def _nearest(question: _Question, catalogue: _Catalogue) -> tuple[str, ...]:
    """At most three tested builds, one for each torch and Triton: the same release first, then by distance."""
    by_column: dict[BuildId, list[Build]] = {}
    for id_, build in catalogue.builds.items():
        if id_ in catalogue.tested:
            by_column.setdefault(build.build_id.apart_from_python, []).append(build)
    columns = [min(column, key=lambda one: _apart(one.python, question.python)) for column in by_column.values()]
    line = sorted({_public(build.build_id.version) for build in columns} | {_public(question.torch)})
    here = line.index(_public(question.torch))

    def distance(build: Build) -> tuple[object, ...]:
        version = build.build_id.version
        return (
            version.base_version != question.torch.base_version,
            version.release[:2] != question.torch.release[:2],
            abs(line.index(_public(version)) - here),
            _family(version) != _family(question.torch),
            not _is_same_triton(build, question),
            _variant_distance(build, question.torch),
            build.id,
        )

    return tuple(build.id for build in sorted(columns, key=distance)[:_NAMED])


def _is_same_triton(build: Build, question: _Question) -> bool:
    if question.triton is None:
        return not build.is_mismatched
    return build.triton is not None and Version(build.triton) == question.triton


def _public(version: Version) -> Version:
    return Version(version.public)


def _family(version: Version) -> str:
    """`cu` of +cu124, `rocm` of +rocm6.3; a bare version is taken for CUDA, which is what the default index has."""
    found = _FAMILY.match(version.local or "cu")
    return found[0] if found else ""


def _variant_distance(build: Build, asked: Version) -> int:
    """How far apart two CUDA variants are; of a version without one, from the default index's."""
    if not _VARIANT.fullmatch(asked.local or ""):
        return int(build.origin != "default")
    return abs(_number(build.build_id.version) - _number(asked))


def _number(version: Version) -> int:
    digits = re.sub(r"\D", "", version.local or "")[:6]
    return int(digits) if digits else 0
