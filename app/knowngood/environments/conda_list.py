"""conda's packages, the lists of `conda list`, also with `--explicit` and `--export`, and pixi's files.

conda calls torch `pytorch`, and what it is built for stands in `pytorch-cuda` or in the build string; such a build is
noted as the pin `pytorch-cuda` (or `cpuonly`), whichever way it was said.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from knowngood.domain.builds.platforms import platform_of
from knowngood.domain.message import Message
from knowngood.environments.python_markers import pythons_of, state
from knowngood.environments.resolve import CONDA, PinnedPackage, StatedEnvironment
from knowngood.environments.source import (
    MOST_PACKAGES,
    Source,
    Table,
    address,
    canonical,
    find_pin,
    quote,
    read_toml,
    refuse_long_lines,
    show,
)

_LONGEST_SPEC = 300
_NAMES = {"pytorch": "torch", "pytorch-gpu": "torch", "pytorch-cpu": "torch", "torchtriton": "triton"}
_SPEC = re.compile(
    r"(?:(?P<channel>[A-Za-z0-9_./:-]+?)::)?(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r" ?(?P<version>(?:[=<>!~]=?| )(?:[^\[#=]|(?<=[=<>!~,|])=)*)?(?:=(?P<build>[A-Za-z0-9_.*]+))?"
    r" ?(?:\[(?P<more>[^\]]*)\])? ?(?:#.*)?"
)
_MORE = re.compile(r"(version|build|channel)\s*=\s*['\"]?([^'\",]+)")
_CUDA = re.compile(r"cuda_?(\d{2})\.?(\d)")
_CPU = re.compile(r"(?:^|_)cpu(?:_|$)")
_FILE = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)-(?P<version>[A-Za-z0-9_.!+]+)-(?P<build>[A-Za-z0-9_.]+)")
PRINTED = re.compile(r"^[# \t]*Name[ \t]+Version[ \t]+Build\b", re.MULTILINE)
_ABOUT = re.compile(r"#|Name\s+Version\s+Build\b|List of packages\b|[\W_]*$")
_EXPORTED = re.compile(r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.-]*)=(?P<version>[A-Za-z0-9_.!+]+)=(?P<build>[A-Za-z0-9_.]+)")


@dataclass(frozen=True)
class Spec:
    """One match specification, with its pins; `wanted` is its version as it is written (`>=3.11,<3.13`)."""

    name: str
    wanted: str
    pins: tuple[PinnedPackage, ...]


def _no_package(text: str, expected: str) -> Message:
    return Message("file_no_package", name=quote(text), wanted=expected)


def read_spec(text: str, channel: str, source: Source, line: int) -> Spec:
    """`pytorch=2.5.1=py3.11_cuda12.4_0`, `pytorch::pytorch >=2`, `pytorch[version='2.5.1']`."""
    match = _SPEC.fullmatch(" ".join(text.split())) if len(text) <= _LONGEST_SPEC else None
    words = re.sub(r" ?([,|]) ?", r"\1", match["version"] or "").split() if match else []
    if match is None or len(words) > 2:  # noqa: PLR2004 - `pytorch 2.5.1 BUILD`
        raise source.wrong(line, _no_package(text, "NAME=VERSION=BUILD"))
    more = dict(_MORE.findall(match["more"] or ""))
    wanted = words[0] if words else more.get("version", "")
    build = match["build"] or more.get("build", "") or (words[1] if len(words) > 1 else "")
    place = match["channel"] or more.get("channel", channel)
    return Spec(match["name"], wanted, tuple(_pins(match["name"], _exact(wanted), build, place, line)))


def _exact(version: str) -> str:
    """The version that a specification leaves: `=2.5.1` and `==2.5.1` are one, `2.5.*` and `>=2` are none."""
    bare = version.strip().lstrip("=").strip().split(" ")[0]
    return bare if re.fullmatch(r"[0-9][A-Za-z0-9_.!+]*", bare) else ""


def _pins(name: str, version: str, build: str, channel: str, line: int) -> Iterator[PinnedPackage]:
    index = CONDA + show(address(channel))
    known = _NAMES.get(name.lower(), name)
    yield PinnedPackage(canonical(known), version, index=index, line=line)
    if known != "torch":
        return
    cuda = _CUDA.search(build)
    if cuda:
        yield PinnedPackage("pytorch-cuda", f"{cuda[1]}.{cuda[2]}", index=index, line=line)
    elif _CPU.search(build) or name.lower() == "pytorch-cpu":
        yield PinnedPackage("cpuonly", index=index, line=line)


def _explicit_pins(source: Source, line: int, text: str) -> Iterator[PinnedPackage]:
    place = address(text)
    folder, _, file = place.rpartition("/")
    match = _FILE.fullmatch(file.removesuffix(".conda").removesuffix(".tar.bz2"))
    if match is None or not file.endswith((".conda", ".tar.bz2")):
        raise source.wrong(line, _no_package(place, ".../NAME-VERSION-BUILD.conda"))
    channel, _, platform = folder.rpartition("/")
    first, *others = _pins(match["name"], match["version"], match["build"], channel.rpartition("/")[2], line)
    yield first if platform in {"linux-64", "noarch"} else PinnedPackage(first.name, first.version, place, line=line)
    yield from others


def _exported_pins(source: Source, line: int, text: str) -> Iterable[PinnedPackage]:
    match = _EXPORTED.fullmatch(text.strip())
    if match is None:
        raise source.wrong(line, _no_package(text, "NAME=VERSION=BUILD"))
    if match["build"].startswith("pypi"):
        return [PinnedPackage(canonical(match["name"]), match["version"], line=line)]
    return _pins(match["name"], match["version"], match["build"], "", line)


_LOCKED = re.compile(
    r"  (?P<name>[\w-]{1,80}):|      (?P<platform>(?:linux|osx|win)[\w-]{0,40}):|"
    r"      - (?P<kind>conda|pypi): (?P<place>\S{1,2000})"
)


def read_pixi_lock(source: Source, python: str) -> StatedEnvironment:
    """pixi.lock: of each environment its packages for Linux on x86-64, else for the one platform that it is for. Its
    environments are what `groups` names. It is written in lines of one form: YAML of its size takes seconds.
    """
    refuse_long_lines(source)
    found, name, platform = list[tuple[str, str, int, str, str]](), "", ""
    for line, text in enumerate(source.text.split("\n"), 1):
        if match := _LOCKED.fullmatch(text):
            name, platform = canonical(match["name"] or name), match["platform"] or platform
            found += [(name, platform, line, match["kind"], match["place"])] if match["place"] else []
    if len(found) > MOST_PACKAGES:
        raise source.wrong(found[MOST_PACKAGES][2], Message("file_beyond", most=MOST_PACKAGES))
    chosen = source.chosen(name for name, *_ in found)
    of = sorted({platform for name, platform, *_ in found if name in chosen})
    ours = _LINUX if _LINUX in of else "".join(of[:1])
    pins: list[PinnedPackage] = []
    for name, platform, line, kind, place in found:
        if name in chosen and platform == ours:
            pin = find_pin(place, line=line) if kind == "pypi" else None
            pins += _explicit_pins(source, line, place) if kind == "conda" else [pin] if pin else []
    stated = {platform_of(ours): ours} if len(of) == 1 else {}
    return replace(_with_python("pixi.lock", source, python, pins), platforms=stated)


_LINUX = "linux-64"


def read_pixi(source: Source, python: str) -> StatedEnvironment:
    """pixi.toml: what it asks for of conda and of PyPI. Its features are what `groups` names."""
    data = read_toml(source)
    features = dict(data.table("feature").named_tables())
    tables = [data, *(table for name, table in features.items() if canonical(name) in source.chosen(features))]
    tables += [table.table("target").table(name) for table in tables for name in (_LINUX, "linux", "unix")]
    specs, pins = list[Spec](), list[PinnedPackage]()
    for table in tables:
        for name, asked in _asked(table, "dependencies"):
            build = f"[build='{asked.text('build')}']" if asked.text("build") else ""
            specs.append(read_spec(f"{name} {asked.text('version')}{build}", asked.text("channel"), source, 0))
        for name, asked in _asked(table, "pypi-dependencies"):
            exact = re.fullmatch(r"={2,3} ?([\w.!+]{1,80})", asked.text("version").strip())
            pins.append(PinnedPackage(canonical(name), exact[1] if exact else "", index=address(asked.text("index"))))
    pins += [pin for spec in specs for pin in spec.pins]
    if len(pins) > MOST_PACKAGES:
        raise source.wrong(0, Message("file_packages", most=MOST_PACKAGES))
    pythons = pythons_of(
        next((spec.wanted for spec in specs if spec.name == "python"), ""), stated=python, source=source
    )
    platforms = [*data.table("workspace").texts("platforms"), *data.table("project").texts("platforms")]
    stated = {platform_of(one): one for one in platforms[:1] if len(platforms) == 1}
    return replace(state("pixi.toml", ((pin, pythons) for pin in pins), pythons), is_whole=False, platforms=stated)


def _asked(table: Table, key: str) -> Iterator[tuple[str, Table]]:
    """Each package with what is asked for of it: a text is a version."""
    for name, value in table.table(key).values.items():
        yield name, Table(table.source, {"version": value}) if isinstance(value, str) else table.table(key).table(name)


def is_export(text: str) -> bool:
    """Whether every line is NAME=VERSION=BUILD; one that is tells nothing of a requirements file."""
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    return bool(lines) and all(_EXPORTED.fullmatch(line) for line in lines[:5])


def _printed_pins(source: Source, line: int, text: str) -> Iterable[PinnedPackage]:
    if _ABOUT.match(text.lstrip()):
        return []
    name, version, build, channel, *_ = (*text.split(), "", "", "", "")
    if not build:
        raise source.wrong(line, _no_package(text, "NAME VERSION BUILD CHANNEL"))
    if channel == "pypi" or build.startswith("pypi"):
        return [PinnedPackage(canonical(name), version, line=line)]
    return _pins(name, version, build, channel, line)


def _read_lines(
    kind: str, read: Callable[[Source, int, str], Iterable[PinnedPackage]], source: Source, python: str
) -> StatedEnvironment:
    """Read the lines, with the Python that conda installs. Raises OtherPython where another one was stated."""
    refuse_long_lines(source)
    pins: list[PinnedPackage] = []
    for line, text in enumerate(source.text.split("\n"), 1):
        if text.strip() and not text.lstrip().startswith(("#", "@EXPLICIT")):
            pins.extend(read(source, line, text))
        if len(pins) > MOST_PACKAGES:
            raise source.wrong(line, Message("file_beyond", most=MOST_PACKAGES))
    return _with_python(kind, source, python, pins)


read_explicit = partial(_read_lines, "conda explicit list", _explicit_pins)
"""`conda list --explicit`: one address a line. A package for another platform keeps its address as its origin."""

read_export = partial(_read_lines, "conda list", _exported_pins)
"""`conda list --export`: NAME=VERSION=BUILD a line; what pip installed has the build `pypi_0`."""

read_printed = partial(_read_lines, "conda list", _printed_pins)
"""`conda list` as people read it: columns of name, version, build and channel."""


def _with_python(kind: str, source: Source, python: str, pins: Sequence[PinnedPackage]) -> StatedEnvironment:
    installed = next((pin.version for pin in pins if pin.name == "python"), "")
    pythons = pythons_of(installed, stated=python, source=source)
    return state(kind, ((pin, pythons) for pin in pins), pythons)
