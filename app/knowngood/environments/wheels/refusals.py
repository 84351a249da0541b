"""Facts that refuse an environment whatever is known of its build: there is no such wheel, or a package in it was made
for another torch. Pure, from the table of wheels and from the names of versions; nothing is measured for it.

Source: `Requires-Dist` (core metadata) and local versions (PEP 440), by which authors say what they built against:
`2.1.2+pt25cu124`, `2.7.4.post1+cu12torch2.4cxx11abiTRUE`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from packaging.specifiers import Specifier
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.platforms import LINUX, PLATFORMS
from knowngood.domain.message import Message, clauses
from knowngood.environments.wheels.answer import find_wheel
from knowngood.environments.wheels.table import PYTHONS, WheelRelease, WheelTable

_BUILT_FOR = re.compile(r"(?:pt|torch)(?:(?P<major>\d)\.(?P<minor>\d{1,2})(?!\d)|(?P<digits>\d{2,3}))(?=\D|$)")


def no_wheel(
    torch: Version, pythons: Collection[str], platforms: Collection[str], table: WheelTable
) -> Iterator[Message]:
    """Refuse a release of torch of which the public index has no wheel for any Python that the environment may have.
    Nothing is said of what the table cannot know: a Python or a platform that is not in it, a newer release.
    """
    releases = table.releases("torch")
    platform, public = next(iter(platforms), LINUX), Version(torch.public)
    if len(platforms) > 1 or platform not in PLATFORMS or not (releases and _is_plain(torch)):
        return
    if not releases[0].version <= public <= releases[-1].version:
        return
    # A release that never came has no wheel for whatever Python.
    asked = sorted(pythons) if any(release.version == public for release in releases) else []
    if not set(asked) <= {*PYTHONS}:
        return
    answers = [find_wheel("torch", torch.public, python, platform, table) for python in asked or [""]]
    if all(answer.exists is False for answer in answers):
        yield Message("no_wheel", said=answers[-1].why)


def _is_plain(torch: Version) -> bool:
    """Whether it is a release as PyTorch numbers them: previews are vendors' too, and `2.5.1.post303` is conda-forge's,
    which compiles packages beside it anew.
    """
    return not (torch.is_prerelease or torch.is_postrelease)


def refused_pairs(
    torch: Version, packages: Mapping[str, Iterable[str]], python: str, table: WheelTable
) -> Iterator[Message]:
    """Refuse each of `packages`, with its versions by canonical name, that was made for another torch. Nothing is said
    of a package with several versions.
    """
    if not _is_plain(torch):
        return
    for package, versions in packages.items():
        version, *others = versions
        wanted = None if others else _wanted(package, version, torch, python, table)
        if wanted:
            fitting = newest_beside(package, torch, python, table)
            said = Message("beside_torch", wanted=wanted, torch=str(torch))
            fits = [Message("release_allows", name=f"{package} {fitting}")] if fitting else []
            yield Message("pair_refused", name=f"{package} {version}", said=clauses([said, *fits]))


def is_made_for(package: str, version: str, torch: Version, python: str, table: WheelTable) -> bool:
    """Whether a release says that it goes with this torch; one that says nothing of torch does not say it."""
    release = _release(package, version, table)
    specifier = release.specifier("torch", python) if release else None
    return bool(specifier and torch.public in specifier)


def newest_beside(package: str, torch: Version, python: str, table: WheelTable) -> str:
    """The newest release that asks for a torch such as this and has a wheel; empty where none has. One that says
    nothing of torch, or only that it needs it, may go with it: nobody knows. Where a release ends before this torch,
    older ones without an end did not know of it (vllm 0.2.5 asks for torch>=2.1.0, and later ones for one torch each).
    """
    for release in reversed(table.releases(package)):
        specifier = release.specifier("torch", python)
        if not specifier or release.yanked or not release.has(python, LINUX):
            continue
        if torch.public in specifier:
            return str(release.version)
        if any(ends_before(clause, torch) for clause in specifier):
            return ""
    return ""


def packages_beside(torch: Version, table: WheelTable) -> tuple[dict[str, str], dict[str, str]]:
    """Of the packages whose newest release says which torch it takes: the newest release that takes this one, and of
    those that end before it what the newest asks for.
    """
    fitting, ending = dict[str, str](), dict[str, str]()
    for package in table.packages:
        newest = next((release for release in reversed(table.releases(package)) if not release.yanked), None)
        bound = newest.specifier("torch", "") if newest else None
        if bound and (found := newest_beside(package, torch, "", table)):
            fitting[package] = found
        elif bound and any(ends_before(clause, torch) for clause in bound):
            ending[package] = str(bound)
    return fitting, ending


def ends_before(clause: Specifier, torch: Version) -> bool:
    is_end = clause.operator in {"==", "~=", "<", "<="}
    return is_end and Version(clause.version.removesuffix(".*")) <= Version(torch.public)


def torch_bounds(packages: Mapping[str, str], python: str, table: WheelTable) -> dict[str, str]:
    """The packages that end below the newest torch of the table, with what their releases ask for: `==2.7.1`."""
    newest, bounds = table.releases("torch")[-1].version, {}
    for package, version in packages.items():
        release = _release(package, version, table)
        specifier = release.specifier("torch", python) if release else None
        if specifier and newest.public not in specifier and any(ends_before(clause, newest) for clause in specifier):
            bounds[package] = str(specifier)
    return bounds


def release_to_move_to(
    package: str, version: str, start: Version, torch: Version, python: str, table: WheelTable
) -> str | None:
    """The release that a package has to move to when torch moves from `start` to `torch`; None where there is none that
    allows it, and empty where it need not move, or nobody knows. An empty `version` is the newest beside `start`.
    """
    own = _release(package, version or newest_beside(package, start, python, table), table)
    bound = own.specifier("torch", python) if own else None
    if not own or not bound or torch.public in bound:
        return ""
    newer = (release for release in table.releases(package) if release.version > own.version)
    is_open = any(not release.specifier("torch", python) for release in newer)
    return newest_beside(package, torch, python, table) or ("" if is_open else None)


def _release(package: str, version: str, table: WheelTable) -> WheelRelease | None:
    """The release of the table that a version is, whatever its local part; None where it is none."""
    try:
        public = Version(Version(version).public)
    except InvalidVersion:
        return None
    return next((each for each in table.packages.get(package, ()) if each.version == public), None)


def _wanted(package: str, version: str, torch: Version, python: str, table: WheelTable) -> Message | None:
    """The torch that this very release was made for, if that is another."""
    minors = _built_for(version.partition("+")[2])
    if minors and torch.release[:2] not in minors:
        return Message("built_for", torch=".".join(map(str, min(minors))))
    release = _release(package, version, table)
    specifier = release.specifier("torch", python) if release else None
    is_wanted = not specifier or torch.public in specifier
    return None if is_wanted else Message("asks_for", specifier=str(specifier))


def _built_for(local: str) -> frozenset[tuple[int, int]]:
    """The minor releases of torch that a local version may mean: `torch210` is 2.1.0 to some and 2.10 to others."""
    found = _BUILT_FOR.search(local)
    if found is None:
        return frozenset()
    if found["major"]:
        return frozenset({(int(found["major"]), int(found["minor"]))})
    digits = found["digits"]
    return frozenset({(int(digits[0]), int(digits[1])), (int(digits[0]), int(digits[1:]))})
