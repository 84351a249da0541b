"""Whether a release can be installed, in sentences: read in its wheels and in the public index, or claimed and marked
as claims. Nothing is run for it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from knowngood.domain.builds.architectures import holds_code, oldest_driver
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.hardware_names import hardware_named
from knowngood.domain.message import Message
from knowngood.domain.verdicts.known import Known
from knowngood.environments.wheels.answer import pythons_in_words
from knowngood.environments.wheels.refusals import packages_beside
from knowngood.environments.wheels.table import WheelClaim, WheelRelease, WheelTable, minor_number
from knowngood.serialization.message_field import MessageField

InstallFacts = Mapping[str, tuple[MessageField, ...]]
"""The sentences by what they are about: Python, CUDA, GPU, packages."""

_CARDS = ("GTX 1080", "V100", "T4", "A100", "RTX 3090", "RTX 4090", "H100", "B200", "RTX 5090")
"""One card of each generation."""


def install_facts(
    build: Build, before: Build | None, known: Known, table: WheelTable, claims: Sequence[WheelClaim]
) -> InstallFacts:
    releases = (
        {str(release.version): release for release in table.releases("torch")} if build.origin == "default" else {}
    )
    own, older = releases.get(build.requirement), releases.get(before.requirement) if before else None
    measured = sorted(
        {
            other.python
            for other in known.builds.values()
            if other.wheel.id == build.wheel.id and known.is_measured(other, known.hardware)
        },
        key=minor_number,
    )
    return {
        "Python": tuple(_pythons(measured, own, older, releases.values())),
        "CUDA": tuple(_cuda(build, before, claims)),
        "GPU": tuple(_code(build, before, known)),
        "packages": tuple(_packages(build, table)) if own else (),
    }


def _pythons(
    measured: Sequence[str],
    own: WheelRelease | None,
    older: WheelRelease | None,
    releases: Iterable[WheelRelease],
) -> Iterator[Message]:
    if measured:
        yield Message("pythons_measured", names=pythons_in_words(measured))
    having = own.pythons(LINUX) if own else ()
    if unmeasured := [python for python in having if python not in measured]:
        yield Message("pythons_unmeasured", names=pythons_in_words(unmeasured))
    for python in older.pythons(LINUX) if own and older else ():
        if python not in having:
            last = max(release.version for release in releases if release.has(python, LINUX))
            yield Message("python_ends", name=python, found=str(last))


def _cuda(build: Build, before: Build | None, claims: Sequence[WheelClaim]) -> Iterator[Message]:
    if build.cuda is None:
        yield Message("cpu_alone")
        return
    oldest = oldest_driver(build.cuda)
    yield Message("needs_driver", found=build.cuda, wanted=oldest) if oldest else Message("cuda_unread")
    if build.origin != "default" or before is None:
        return
    served, ended = _majors(build, claims), _majors(before, claims)
    for major, (variant, source) in ended.items():
        if major not in served:
            name, found = f"CUDA {major}", before.build_id.release
            yield Message("cuda_ends", name=name, found=found, variant=variant, source=source.partition("//")[2])


def _majors(build: Build, claims: Sequence[WheelClaim]) -> Mapping[str, tuple[str, str]]:
    """The majors of CUDA that a release has wheels for, by claims, each with a variant and its source."""
    found = {build.cuda.partition(".")[0]: ("", "")} if build.cuda else {}
    listing = (claim for claim in claims if claim.lists(build.build_id.release, LINUX))
    for claim in listing:
        found |= {variant[2:4]: (variant, claim.sources[0]) for variant in claim.variants if variant.startswith("cu")}
    return found


def _code(build: Build, before: Build | None, known: Known) -> Iterator[Message]:
    read = known.wheels.get(build.torch)
    if build.cuda is None:
        return
    if read is None:
        yield Message("code_not_read")
        return
    cards = _cards(read.architectures)
    yield Message("code_for", names=cards, architectures=read.architectures, day=str(read.read_at.date()))
    older = known.wheels.get(before.torch) if before else None
    if older and before:
        lacking, added = _beside(_cards(older.architectures), cards), _beside(cards, _cards(older.architectures))
        if lacking:
            yield Message("code_ends", names=lacking, found=before.build_id.release)
        if added:
            yield Message("code_begins", names=added, found=before.build_id.release)
        if not lacking and not added:
            yield Message("same_code", found=before.build_id.release)


def _cards(architectures: Sequence[str]) -> tuple[str, ...]:
    named = ((card, hardware_named(card)) for card in _CARDS)
    return tuple(card for card, meant in named if meant and holds_code(architectures, meant.hardware))


def _beside(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in names if name not in others)


def _packages(build: Build, table: WheelTable) -> Iterator[Message]:
    fitting, ending = packages_beside(build.build_id.version, table)
    if fitting:
        yield Message("packages_fit", names=tuple(f"{name} {version}" for name, version in fitting.items()))
    for name, bound in ending.items():
        yield Message("package_ends", name=name, bound=bound)
    for companion in build.companions:
        if not companion.release and companion.package not in ending:
            yield Message("package_claimed_none", name=companion.package, asked=str(companion.asked))
    yield Message("index_read", day=str(table.read_on))
