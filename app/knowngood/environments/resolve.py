"""An environment as somebody states it, and the tested build that it is: exactly, or not at all.

No neighbour ever stands in for what was asked; whether one may is decided where claims are made. Where an environment
leaves its CUDA variant open, the build is `is_assumed` and the note says what was assumed; where it leaves its Python
open, all that it may have are named; where too little is stated even for that, there is no build.
Source: design 1, 6, 9 and 10 (rule 3).
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import (
    BuildName,
    BuildNames,
    preferred,
    pythons_in_words,
    read_build_name,
    variant_distance,
    without_python,
)
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.builds.platforms import (
    BACKENDS,
    LINUX,
    TAKEN,
    WINDOWS,
    backend_of,
    may_stand_in,
    why_not_tested,
)
from knowngood.domain.errors import OtherPython
from knowngood.domain.grouping import gathered, grouped
from knowngood.domain.message import NOTHING, Message, Quoted, Value, aside, clauses, english, joined, quoted
from knowngood.environments.wheels.refusals import no_wheel, refused_pairs
from knowngood.environments.wheels.table import WheelTable

# Hosts of the wheels that the builds of the catalogue are made of.
PYPI = ("pypi.org", "files.pythonhosted.org", "pypi.python.org")
PYTORCH = ("download.pytorch.org", "download-r2.pytorch.org")
CONDA = "conda:"

_TORCH, _TRITON = "torch", ("triton", "pytorch-triton", "pytorch-triton-rocm", "pytorch-triton-xpu", "triton-windows")
_SHOWN_PYTHONS, _SHOWN_PINS = 3, 5
_VARIANT = re.compile(r"cu[0-9]{2,3}|cpu|rocm[0-9]+(?:\.[0-9]+)*|xpu")
_CUDA = re.compile(r"([0-9]{1,2})\.([0-9]{1,2})(?:[.a-z*].*)?")
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu[0-9]+)?")
_FOREIGN = re.compile(r"win32|win_|macosx|aarch64|arm64|armv|ppc64|s390x|i686|riscv|musllinux|ios_|android")
_FOREIGN_CHANNEL = re.compile(r"/(?:osx|win|emscripten|linux-(?!64/))[^/]*/[^/]*$")
_Cuda = tuple[set[str], Message]
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@?#]*@)?(?P<host>[^/:?#]*)(?::\d*)?(?P<path>[^?#]*)", re.IGNORECASE)


@dataclass(frozen=True)
class PinnedPackage:
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


INTERPRETER = "interpreter"
"""The kind of an environment that was read where its Python runs."""


@dataclass(frozen=True)
class StatedEnvironment:
    """An environment as one source states it. `kind` names it (`pip freeze`, `uv.lock`); `python` is `3.12`, or empty;
    then `pythons` are those that it may be (none: nothing is said of it).

    A name stands more than once where a file locks several versions of it (markers); `indexes` are those that hold for
    the whole file. It `is_whole` where every package of the environment is stated, and not only what is asked for.
    `gpus` are the names of those that it tells of (`H100`), each once; `driver` is NVIDIA's (`550.54.15`), empty where
    none is stated, or torch was seen to run with it. `platforms` and `backends` (`rocm`; empty for
    anything but CUDA) are those that it states, each with the words that do. `unread` are files that it includes and
    that did not come along, with their lines.
    """

    kind: str
    pins: tuple[PinnedPackage, ...]
    python: str = ""
    indexes: tuple[str, ...] = ()
    pythons: tuple[str, ...] = ()
    is_whole: bool = True
    gpus: tuple[str, ...] = ()
    driver: str = ""
    platforms: Mapping[str, str] = field(default_factory=dict)
    backends: Mapping[str, str] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)

    def all_of(self, name: str) -> tuple[PinnedPackage, ...]:
        return tuple(pin for pin in self.pins if pin.name == name)


@dataclass(frozen=True)
class ResolvedBuild:
    """The tested build that an environment is.

    `build` is its id, with the Python where that is known (None: no such build, or none of its Pythons was tested; that
    very Python need not be). `description` is the environment in a few words ("torch 2.6.0 from PyPI, Triton 3.2.0,
    Python 3.12"), `notes` say why there is none, what was assumed or what is open. `is_assumed` says that the
    environment leaves open which wheel it is: its origin or its CUDA variant. `nearest` are tested builds beside it,
    the nearest first: they are named to people and never used.

    `pythons` are those that the environment may have, of those in the catalogue for that torch, ascending: one where
    it is known. Where it is open `build` has the default Python, or the lowest that is possible.
    `variant` is set where the environment's local variant (`+cpu`, ROCm, another CUDA) is not in the catalogue: the
    nearest tested build of the same release, with a Python chosen as that of `build`; `pythons` are then its own.
    `line` is where the environment's file states torch (0: it does not, or lines mean nothing there).
    `packages` are all but torch and Triton, or where it is not `is_whole` those that are asked for by themselves.
    `gpus` and `driver` are the environment's. `platforms` are those that were stated, with the words that do (none: it
    is taken as Linux x86-64). `python` is the stated one. `torch` names the torch that is asked about, as
    `resolve_build` takes it; empty where a version does not say all that decided. `refusals` are facts of wheels for
    which it cannot be installed, or not be imported, as it is stated: `no_wheel`, `pair_refused`.
    """

    build: str | None
    description: str
    notes: tuple[Message, ...] = ()
    is_assumed: bool = False
    nearest: tuple[str, ...] = ()
    packages: Mapping[str, str] = field(default_factory=dict)
    pythons: tuple[str, ...] = ()
    variant: str = ""
    line: int = 0
    is_whole: bool = True
    gpus: tuple[str, ...] = ()
    driver: str = ""
    platforms: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[Message, ...] = ()
    torch: str = ""
    python: str = ""

    @property
    def note(self) -> str:
        return "; ".join(map(english, self.notes))

    @property
    def why_none(self) -> Message:
        """The sentence to say where there is no build: the facts of wheels first, then the notes."""
        return clauses([*self.refusals, *self.notes])

    @property
    def remarks(self) -> tuple[Message, ...]:
        """The notes, with what an environment that states no platform was taken for."""
        return (*self.notes, TAKEN) if self.build and not self.platforms else self.notes

    @property
    def not_tested(self) -> str:
        """The sentence to say where there is no build."""
        if other := why_not_tested(self.platforms):
            return english(other)
        near = ", ".join(map(plain_name, self.nearest))
        return f"not tested: {self.description}" + (
            f"; nearest tested builds are {near}" if near else "; no tested build is near"
        )


@dataclass(frozen=True)
class _BuildQuestion:
    """The build that is looked for. `torch` has the local part wherever one is known; `triton` may be open; `pythons`
    are those that are possible (none: all).
    """

    torch: Version
    triton: Version | None
    pythons: frozenset[str]
    description: str
    assumed: tuple[Message, ...] = ()

    @property
    def python(self) -> str | None:
        return next(iter(self.pythons)) if len(self.pythons) == 1 else None

    def possible(self, family: Sequence[Build]) -> tuple[Build, ...]:
        return tuple(build for build in family if not self.pythons or build.python in self.pythons)


@dataclass(frozen=True)
class _Catalogue:
    names: BuildNames
    tested: Collection[str]
    wheels: WheelTable

    def cuda_of(self, torch: Version) -> str | None:
        return next((build.cuda for build in self.names.builds.values() if build.build_id.version == torch), None)

    def is_tested(self, family: Sequence[Build]) -> bool:
        return any(build.id in self.tested for build in family)


class _UnclearEnvironment(Exception):
    """The environment names no one build; `why` says it and what to state."""

    def __init__(self, key: str, /, **values: Value) -> None:
        self.why = Message(key, **values)


def resolve(stated: StatedEnvironment, names: BuildNames, tested: Collection[str], wheels: WheelTable) -> ResolvedBuild:
    """The tested build that `stated` is. `names` are the catalogue's, `tested` the ids with a measured cell.

    Total: whatever cannot be one build is a Resolved without one, whose note says why.
    """
    catalogue = _Catalogue(names, tested, wheels)
    description = _describe_stated(stated)
    line, name = next((pin.line for pin in stated.all_of(_TORCH)), 0), _name_in_address(stated)
    platforms = _platforms(stated)
    try:
        torch = _the_torch(stated, platforms)
        line = torch.line
        question = _question(stated, torch, description, catalogue)
    except _UnclearEnvironment as unclear:
        nearest = () if why_not_tested(platforms) else _nearest_to_stated(stated, catalogue)
        why = [unclear.why, *_came_with(stated, names.builds), *_next_step(stated)]
        resolved = ResolvedBuild(None, description, tuple(why), nearest=nearest)
    else:
        resolved = _settle(question, catalogue)
        is_own = question.triton is None or (resolved.build and "~triton" not in resolved.build)
        triton = "" if is_own else f"~triton-{question.triton}"
        name = name and f"{name if resolved.is_assumed else question.torch}{triton}"
    unread = (Message("files_unread", names=tuple(stated.unread)),) if stated.unread else ()
    return replace(
        resolved,
        notes=(*resolved.notes, *unread),
        packages=_packages(stated),
        line=line,
        is_whole=stated.is_whole and not unread,
        gpus=stated.gpus,
        driver=stated.driver,
        platforms=platforms,
        refusals=tuple(_refusals(stated, platforms, catalogue)),
        torch=name,
        python=stated.python,
    )


def _name_in_address(stated: StatedEnvironment) -> str:
    """The one version of torch that is stated; empty where more than that says which it is."""
    torch, *others = _distinct(stated.all_of(_TORCH)) or (PinnedPackage(_TORCH),)
    is_other = others or torch.origin or torch.index.startswith(CONDA) or not _is_version(torch.version)
    return "" if is_other else torch.version


def _next_step(stated: StatedEnvironment) -> Iterator[Message]:
    """The question to ask where a machine is stated, and no torch."""
    options = "".join(f' --gpu "{gpu}"' for gpu in stated.gpus[:1])
    options += f" --driver {stated.driver}" if stated.driver else ""
    if options and not stated.all_of(_TORCH):
        yield Message("torch_of_machine", command=f"knowngood wheels torch{options}")


def _refusals(stated: StatedEnvironment, platforms: Mapping[str, str], catalogue: _Catalogue) -> Iterator[Message]:
    """Facts of wheels against the one torch that is stated. conda's packages are not those of the index."""
    torch, *others = _distinct(stated.all_of(_TORCH)) or (PinnedPackage(_TORCH),)
    if others or torch.origin or not _is_version(torch.version):
        return
    version = Version(torch.version)
    indexes = (torch.index,) if torch.index else stated.indexes
    if all(map(_is_pypi, indexes)):
        yield from _no_wheel(version, _pythons(stated), platforms, catalogue)
    packages = grouped((pin for pin in stated.pins if _is_of_index(pin)), lambda pin: pin.name)
    if set(platforms) <= {LINUX}:
        by_name = {name: {pin.version for pin in pins} for name, pins in packages.items()}
        yield from refused_pairs(version, by_name, stated.python, catalogue.wheels)


def _no_wheel(
    torch: Version, pythons: Collection[str], platforms: Collection[str], catalogue: _Catalogue
) -> Iterator[Message]:
    """Of the wheels that the public index could have: a bare version, or the variant that is its default."""
    if torch.local is None or torch == catalogue.names.default_of(Version(torch.public)):
        yield from no_wheel(torch, pythons, platforms, catalogue.wheels)


def _is_of_index(pin: PinnedPackage) -> bool:
    return bool(pin.version) and not pin.origin and not pin.index.startswith(CONDA) and pin.name != _TORCH


def _came_with(stated: StatedEnvironment, builds: Mapping[str, Build]) -> list[Message]:
    """The releases that pin the Triton of an environment that states no torch."""
    versions = [] if stated.all_of(_TORCH) else _versions(_tritons(stated))
    pinning = {build.build_id.version.release for build in builds.values() if [build.pinned_triton] == versions}
    releases = [".".join(map(str, release)) for release in sorted(pinning)]
    return [Message("triton_came_with", triton=versions[0], releases=_each_of(releases))] if releases else []


def _platforms(stated: StatedEnvironment) -> Mapping[str, str]:
    """The stated platforms, with the one that only the fork of Triton for Windows implies."""
    fork = next(iter(stated.all_of("triton-windows")), None) if not stated.all_of("triton") else None
    return {WINDOWS: f"{fork.name} {fork.version}", **stated.platforms} if fork else stated.platforms


def resolve_build(
    text: str,
    names: BuildNames,
    tested: Collection[str],
    wheels: WheelTable,
    *,
    python: str = "",
    platforms: Mapping[str, str] | None = None,
) -> ResolvedBuild:
    """The tested build that somebody names (see `build_names`). `python` is that of the environment, for a
    name that leaves it open; `platforms` are those that were stated beside it.

    Raises UnknownBuild where `text` is no name of a build at all, and OtherPython where it names another Python; what
    is well-formed and nobody measured is a Resolved without a build.
    """
    name = read_build_name(text)
    if python and name.python not in {None, python}:
        build = Quoted(str(name.id_on(python)))
        raise OtherPython(
            Message(
                "build_of_other_python", name=Quoted(name.text), found=name.python or "", wanted=python, build=build
            )
        )
    catalogue = _Catalogue(names, tested, wheels)
    torch, taken = catalogue.names.torch_of(name)
    assumed = (taken,) if taken else ()
    known = python or name.python
    question = _BuildQuestion(
        torch, name.triton, frozenset({known} if known else ()), _describe_name(name, python), assumed
    )
    other = why_not_tested(platforms or {})
    resolved = ResolvedBuild(None, question.description, (other,)) if other else _settle(question, catalogue)
    refusals = tuple(_no_wheel(torch, question.pythons, platforms or {}, catalogue))
    resolved = replace(resolved, platforms=platforms or {}, refusals=refusals)
    triton = f"~triton-{name.triton}" if name.triton else ""
    return replace(resolved, torch=f"{name.torch}{triton}", python=known or "")


def _describe_name(name: BuildName, python: str) -> str:
    if name.python and not python:
        return plain_name(str(name.id_on(name.python)))
    triton = f", Triton {name.triton}" if name.triton else ""
    return f"torch {plain_name(str(name.torch))}{triton}, {_python_words(python)}"


def _python_words(python: str) -> str:
    return f"Python {python}" if python else "Python not stated"


def _packages(stated: StatedEnvironment) -> dict[str, str]:
    """Versions of all but torch and Triton, by name; empty where a package has none or more than one."""
    versions = gathered((pin.name, pin.version) for pin in stated.pins if pin.name not in {_TORCH, *_TRITON})
    return {name: each[0] if len({*each}) == 1 else "" for name, each in sorted(versions.items())}


def _describe_stated(stated: StatedEnvironment) -> str:
    torches = _distinct(stated.all_of(_TORCH))
    if not torches:
        return f"no torch ({stated.kind})"
    parts = [english(_each_of([Message("torch_of", said=_words_of(pin, stated)) for pin in torches]))]
    parts += [f"Triton {version}" for version in _versions(_tritons(stated))[:_SHOWN_PINS]]
    return ", ".join([*parts, _python_words(stated.python)])


def _each_of(words: Sequence[str | Message]) -> Message:
    """The first few of them: a file can state thousands."""
    first = [quoted(one) if isinstance(one, str) else one for one in words[:_SHOWN_PINS]]
    more = [Message("more", n=len(words) - _SHOWN_PINS)] if len(words) > _SHOWN_PINS else []
    return joined("each", [*first, *more])


def _words_of(pin: PinnedPackage, stated: StatedEnvironment) -> Message:
    version = quoted(plain_name(pin.version)) if pin.version else Message("no_version")
    if pin.origin:
        place = Quoted(pin.origin)
        return Message("from", said=version, place=place) if pin.version else Message("from_place", place=place)
    indexes = (pin.index,) if pin.index else stated.indexes
    return Message("from", said=version, place=_source(indexes[0])) if len(indexes) == 1 else version


def _source(index: str) -> str | Message:
    if index.startswith(CONDA):
        return Message("conda_channel", name=index.removeprefix(CONDA)) if index != CONDA else "conda"
    return "PyPI" if _is_pypi(index) else host_of(index) or index


def _distinct(pins: Sequence[PinnedPackage]) -> tuple[PinnedPackage, ...]:
    """Pins that say different things; one without a version says nothing beside one that has it."""
    stated = [pin for pin in pins if pin.version or pin.origin] or list(pins)[:1]
    return tuple({(_plain(pin.version), pin.origin, pin.index.startswith(CONDA)): pin for pin in stated}.values())


def _plain(version: str) -> str:
    try:
        return str(Version(version))
    except ValueError:  # InvalidVersion is one, and so is a number of 5,000 digits
        return version


def _is_version(text: str) -> bool:
    try:
        return bool(Version(text))
    except ValueError:
        return False


def _the_torch(stated: StatedEnvironment, platforms: Mapping[str, str]) -> PinnedPackage:
    if other := why_not_tested(platforms):
        raise _UnclearEnvironment(other.key, **other.values)
    torches = _distinct(stated.all_of(_TORCH))
    if not torches:
        on = (Message("for_python", python=stated.python),) if stated.python else ()
        raise _UnclearEnvironment("no_torch", kind=stated.kind, where=on)
    if len(torches) > 1:
        each = _each_of([aside(_words_of(pin, stated), _line_of(pin)) for pin in torches])
        raise _UnclearEnvironment("many_torches", kind=stated.kind, n=len(torches), each=each)
    (pin,) = torches
    if pin.origin:
        _refuse_what_is_no_wheel(pin)
    if not pin.version:
        raise _UnclearEnvironment("no_exact_torch", where=_at(pin))
    return pin


def _line_of(pin: PinnedPackage) -> tuple[Message, ...]:
    return (Message("line", n=pin.line),) if pin.line else ()


def _at(pin: PinnedPackage) -> tuple[Message, ...]:
    return (Message("in_line", n=pin.line),) if pin.line else ()


def _refuse_what_is_no_wheel(pin: PinnedPackage) -> None:
    if "git+" in pin.origin or pin.origin.startswith(("git:", "git@", "ssh:", "hg+", "svn+", "bzr+")):
        raise _UnclearEnvironment("built_from_source", where=_at(pin), origin=Quoted(pin.origin))
    if _FOREIGN.search(_file_of(pin.origin)) or _FOREIGN_CHANNEL.search(pin.origin):
        raise _UnclearEnvironment("other_platform", where=_at(pin), file=Quoted(_file_of(pin.origin)))
    if not pin.origin.startswith(("http://", "https://")):
        is_own = _is_version(pin.version) and not backend_of(Version(pin.version))
        which = Message("own_build", version=pin.version) if is_own else Message("path_is_closed")
        raise _UnclearEnvironment("from_path", origin=Quoted(pin.origin), where=_at(pin), said=which)
    if not _file_of(pin.origin).endswith(".whl"):
        raise _UnclearEnvironment("from_no_wheel", origin=Quoted(pin.origin), where=_at(pin))


def _file_of(address: str) -> str:
    return path_of(address).rpartition("/")[2]


def host_of(address: str) -> str:
    """The host of an address in small letters; empty for a path."""
    match = _ADDRESS.match(address)
    return match["host"].lower() if match else ""


def path_of(address: str) -> str:
    """The path of an address, without query and fragment; a path is its own."""
    match = _ADDRESS.match(address)
    return match["path"] if match else address


def _question(stated: StatedEnvironment, pin: PinnedPackage, description: str, catalogue: _Catalogue) -> _BuildQuestion:
    try:
        version = Version(pin.version)
    except ValueError:
        raise _UnclearEnvironment("no_torch_version", version=Quoted(pin.version), where=_at(pin)) from None
    triton = _the_triton(stated)
    torch, assumed = _variant(stated, pin, version, catalogue)
    _refuse_other_backend(stated, pin, torch)
    if pin.origin and host_of(pin.origin) not in PYPI + PYTORCH:
        assumed += (Message("wheel_from", host=host_of(pin.origin)),)
    return _BuildQuestion(torch, triton, _pythons(stated), description, assumed)


def _pythons(stated: StatedEnvironment) -> frozenset[str]:
    return frozenset({stated.python} if stated.python else stated.pythons)


def _the_triton(stated: StatedEnvironment) -> Version | None:
    """The stated Triton; None where none is stated: then it is torch's own pin."""
    tritons = _tritons(stated)
    foreign = next((pin.origin for pin in tritons if pin.origin), "")
    if foreign:
        raise _UnclearEnvironment("triton_from", origin=Quoted(foreign))
    versions = _versions(tritons)
    if len(versions) > 1:
        raise _UnclearEnvironment("many_tritons", kind=stated.kind, each=_each_of(versions))
    try:
        return Version(versions[0]) if versions else None
    except ValueError:
        raise _UnclearEnvironment("no_triton_version", version=Quoted(versions[0])) from None


def _tritons(stated: StatedEnvironment) -> tuple[PinnedPackage, ...]:
    return next((pins for name in _TRITON if (pins := stated.all_of(name))), ())


def _versions(pins: Sequence[PinnedPackage]) -> list[str]:
    return sorted({_plain(pin.version) for pin in pins if pin.version})


def _variant(
    stated: StatedEnvironment, pin: PinnedPackage, version: Version, catalogue: _Catalogue
) -> tuple[Version, tuple[Message, ...]]:
    """The torch with its local part, and what had to be assumed for it."""
    if pin.index.startswith(CONDA):
        return _conda_variant(stated, version)
    cuda = _stated_cuda(stated)
    if version.local is not None:
        return version, _beside(version, cuda, catalogue)
    variant = _index_variant(stated, pin)
    if variant:
        torch = Version(f"{version}+{variant}")
        _refuse_other_cuda(torch, cuda, catalogue.cuda_of(torch), "other_cuda_of_index")
        return torch, ()
    default = catalogue.names.default_of(version)
    if default is None:
        return version, ()
    wanted = catalogue.cuda_of(default)
    _refuse_other_cuda(version, cuda, wanted, "other_cuda_of_default")
    indexes = (pin.index,) if pin.index else stated.indexes
    if cuda[0] or (indexes and all(map(_is_pypi, indexes))):
        return default, ()
    other = next((index for index in indexes if not _is_pypi(index)), "")
    place = (Message("other_index", index=Quoted(other)),) if other else ()
    return default, (Message("taken_as_default", torch=str(version), where=place, found=str(default)),)


def _conda_variant(stated: StatedEnvironment, version: Version) -> tuple[Version, tuple[Message, ...]]:
    """conda's torch has no local part: `pytorch-cuda` or the build string says what it is built for.

    It is compiled apart from the wheel that was measured, so that it is never more than assumed.
    """
    cuda = next((pin.version for name in ("pytorch-cuda", "cuda-version") for pin in stated.all_of(name)), "")
    is_cpu = bool(stated.all_of("cpuonly"))
    match = _CUDA.fullmatch(cuda)
    if is_cpu == bool(cuda) or not (is_cpu or match):
        which = f' (CUDA "{cuda[:40]}")' if cuda and not is_cpu else ""
        raise _UnclearEnvironment("conda_is_open", torch=f"{version}{which}")
    local = f"cu{match[1]}{match[2]}" if match else "cpu"
    torch = version if version.local else Version(f"{version}+{local}")
    return torch, (Message("conda_is_apart", torch=str(torch)),)


def _stated_backends(stated: StatedEnvironment) -> Mapping[str, str]:
    """The stated backends, with the one that the name of Triton says: ROCm and XPU have one of their own."""
    named = {pin.name.rpartition("-")[2]: f"{pin.name} {pin.version}" for pin in _tritons(stated)}
    return {name: words for name, words in named.items() if name in BACKENDS} | dict(stated.backends)


def _refuse_other_backend(stated: StatedEnvironment, pin: PinnedPackage, torch: Version) -> None:
    own = backend_of(torch)
    for backend, words in _stated_backends(stated).items():
        if own and (own != backend if backend else own == "cuda"):
            ours = {"torch": str(torch), "backend": BACKENDS[own]}
            raise _UnclearEnvironment("other_backend", version=pin.version, words=Quoted(words), **ours)


def _stated_cuda(stated: StatedEnvironment) -> _Cuda:
    """`{"12.4"}, "nvidia-cuda-runtime-cu12 12.4.127"` of what is pinned beside torch; no version where none is."""
    runtime = [pin for pin in stated.pins if _RUNTIME.fullmatch(pin.name) and pin.version]
    pins = runtime or [pin for pin in stated.all_of("cuda-toolkit") if pin.version]
    minors = {".".join(pin.version.split(".")[:2]) for pin in pins}
    return minors, _each_of([f"{pin.name} {pin.version}" for pin in pins]) if pins else NOTHING


def _refuse_other_cuda(version: Version, cuda: _Cuda, wanted: str | None, key: str) -> None:
    minors, words = cuda
    if minors and wanted is not None and minors != {wanted}:
        raise _UnclearEnvironment(key, torch=str(version), words=words, cuda=wanted)


def _beside(torch: Version, cuda: _Cuda, catalogue: _Catalogue) -> tuple[Message, ...]:
    (minors, words), wanted = cuda, catalogue.cuda_of(torch)
    if not minors or wanted is None or minors == {wanted}:
        return ()
    return (Message("tested_with_cuda", words=words, torch=str(torch), cuda=wanted),)


def _index_variant(stated: StatedEnvironment, pin: PinnedPackage) -> str:
    """The variant that the index of a bare version decides; empty where it decides none."""
    indexes = (pin.index,) if pin.index else stated.indexes
    variants = sorted({variant for index in indexes if (variant := variant_of(index))})
    if len(variants) > 1:
        raise _UnclearEnvironment("many_indexes", each=_each_of(variants), torch=pin.version)
    if variants:
        return variants[0]
    every = next((index for index in indexes if host_of(index) in PYTORCH), "")
    if every:
        raise _UnclearEnvironment("index_of_every_variant", index=Quoted(every), torch=pin.version)
    return ""


def variant_of(index: str) -> str:
    """`cu126` of an index or folder of one variant (https://download.pytorch.org/whl/cu126); else empty."""
    return next((part for part in reversed(path_of(index).split("/")) if _VARIANT.fullmatch(part)), "")


def index_of_variant(variant: str) -> str:
    """PyTorch's own index of one variant's wheels: what `variant_of` reads."""
    return f"https://{PYTORCH[0]}/whl/{variant}"


def _is_pypi(index: str) -> bool:
    return host_of(index) in PYPI


def _settle(question: _BuildQuestion, catalogue: _Catalogue) -> ResolvedBuild:
    family = catalogue.names.family(question.torch, question.triton)
    if not catalogue.is_tested(family):
        return _untested(question, family, catalogue)
    build, pythons = _choose(question, family)
    if build is None:
        there = pythons_in_words([member.python for member in family])
        for_python = {"there": there, "wanted": _wanted(question)}
        return _none(question, Message("not_for_python", build=without_python(family), **for_python), catalogue)
    assumed = question.assumed
    remarks = (*assumed, *_open_python(question, pythons))
    return ResolvedBuild(build.id, question.description, remarks, is_assumed=bool(assumed), pythons=pythons)


def _choose(question: _BuildQuestion, family: Sequence[Build]) -> tuple[Build | None, tuple[str, ...]]:
    possible = question.possible(family)
    return preferred(possible), tuple(build.python for build in possible)


def _wanted(question: _BuildQuestion) -> str:
    pythons = sorted(question.pythons, key=lambda python: (len(python), python))
    more = ", ..." if len(pythons) > _SHOWN_PYTHONS else ""
    return f"Python {', '.join(pythons[:_SHOWN_PYTHONS])}{more}"


def _open_python(question: _BuildQuestion, pythons: Sequence[str]) -> tuple[Message, ...]:
    if question.python is not None:
        return ()
    if len(pythons) == 1:
        return (Message("python_not_stated", found=pythons[0]),)
    *most, last = pythons
    return (Message("pythons_open", found=tuple(most), last=last),)


def _untested(question: _BuildQuestion, family: Sequence[Build], catalogue: _Catalogue) -> ResolvedBuild:
    if family:
        key = "build_without_evidence" if catalogue.tested else "no_evidence_at_all"
        return _none(question, Message(key, build=family[0].id), catalogue)
    build, pythons = _nearest_variant(question, catalogue)
    if build is None:
        return _none(question, _why_none(question, catalogue), catalogue)
    why = Message("no_such_variant", wanted=f"torch-{question.torch}", build=build.id)
    remarks = (*question.assumed, *_open_python(question, pythons))
    resolved = _none(replace(question, assumed=remarks), why, catalogue)
    return replace(resolved, variant=build.id, pythons=pythons, is_assumed=bool(question.assumed))


def _why_none(question: _BuildQuestion, catalogue: _Catalogue) -> Message:
    variants = catalogue.names.variants(question.torch, question.triton) if question.torch.local is None else []
    if not variants:
        backend = backend_of(question.torch)
        why = Message("no_such_build", name=_name(question))
        if backend in {"cuda", "cpu"}:
            return why
        return (
            Message("build_for", first=why, backend=BACKENDS[backend])
            if backend
            else Message("build_of_own", first=why)
        )
    return Message("variant_is_open", name=_name(question), names=tuple(build.id for build in variants))


def _none(question: _BuildQuestion, why: Message, catalogue: _Catalogue) -> ResolvedBuild:
    return ResolvedBuild(None, question.description, (why, *question.assumed), nearest=_nearest(question, catalogue))


def _nearest_variant(question: _BuildQuestion, catalogue: _Catalogue) -> tuple[Build | None, tuple[str, ...]]:
    """The nearest tested build of the same release and Triton on a possible Python; only for variants that PyTorch
    publishes: what somebody compiled is comparable to none of them.
    """
    if question.torch.local is None:
        return None, ()
    families = (
        catalogue.names.family(build.build_id.version, question.triton)
        for build in catalogue.names.variants(Version(question.torch.public), question.triton)
        if may_stand_in(build.build_id.version, question.torch)
    )
    chosen = [_choose(question, family) for family in families if catalogue.is_tested(family)]
    return min(
        ((build, pythons) for build, pythons in chosen if build is not None),
        key=lambda candidate: (*variant_distance(candidate[0], question.torch), candidate[0].build_id),
        default=(None, ()),
    )


def _name(question: _BuildQuestion) -> str:
    return f"torch {question.torch}{f' with Triton {question.triton}' if question.triton else ''}"


def _nearest_to_stated(stated: StatedEnvironment, catalogue: _Catalogue) -> tuple[str, ...]:
    """The builds near the first version of torch that an environment states which is no one build; none where it speaks
    of another backend.
    """
    if _stated_backends(stated):
        return ()
    for pin in stated.all_of(_TORCH):
        try:
            version = Version(pin.version)
        except ValueError:
            continue
        variant = variant_of(pin.index) if version.local is None else ""
        torch = Version(f"{version}+{variant}") if variant else version
        return _nearest(_BuildQuestion(torch, None, _pythons(stated), ""), catalogue)
    return ()


def _nearest(question: _BuildQuestion, catalogue: _Catalogue) -> tuple[str, ...]:
    return catalogue.names.nearest(
        question.torch, triton=question.triton, python=question.python, among=catalogue.tested
    )
