"""Write `repros/wheels.tsv`: which wheels the public index has and what each asks for, for questions where it cannot
be asked.

One request for each package; of one wheel of each release that the file does not have yet, its METADATA is read: some
five requests where the index offers it only within the wheel. Nothing is downloaded whole. Releases from before torch
2.1.0 are left out. All anew it took 3 min 46 s, 761 wheels among them (2026-11-29, 2 busy cores).
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from email.parser import HeaderParser

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from knowngood.domain.builds.packages import IndexFile
from knowngood.domain.grouping import grouped
from knowngood.environments.wheels.table import FILE, UNREAD
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.simple_index import SimpleIndex, UnreadableWheel

SINCE = date(2023, 10, 1)  # torch 2.1.0
PACKAGES = (
    "torch",
    "triton",
    "torchvision",
    "torchaudio",
    "torchao",
    "xformers",
    "bitsandbytes",
    "torchcodec",
    "flashinfer-python",
    "sgl-kernel",
    "vllm",
    "torch-xla",
    "deepmd-kit",
    "flash-linear-attention",
    "fla-core",
    "liger-kernel",
    "transformers",
    "tensordict",
    "pytorch-lightning",
    "triton-windows",
)


NEEDED = frozenset({*PACKAGES, "numpy", "cuda-toolkit", "pytorch-triton"})
"""Whose requirements are kept, with every nvidia-* package's."""

_AT_ONCE = 8


def lines_of(package: str, files: Iterable[IndexFile], needs: Mapping[str, str]) -> list[str]:
    """A line for each release: package, version, day, why it was yanked, the Pythons that it asks for, the tags of its
    wheels, and the packages that it asks for (`needs`, by the name of the wheel that was read). A release is yanked
    where all of its wheels are; where some stand, these are the release.
    """
    return [
        "\t".join([package, str(version), *_columns(wheels), needs.get(wheel_to_read(wheels).name, "")])
        for version, wheels in releases_of(files).items()
    ]


def releases_of(files: Iterable[IndexFile]) -> dict[Version, list[IndexFile]]:
    """The wheels of each release, oldest first."""
    wheels = grouped((file for file in files if _version(file) is not None), _version)
    return {version: wheels[version] for version in sorted(filter(None, wheels))}


def wheel_to_read(wheels: Sequence[IndexFile]) -> IndexFile:
    """The wheel that speaks for its release: of the newest Python on Linux x86-64, or the last of all."""
    return max(wheels, key=lambda file: ("linux" in file.name and "x86_64" in file.name, file.name))


def needed(metadata: str) -> str:
    """The requirements of a METADATA that are kept, without those of extras: `torch==2.8.0 | numpy`."""
    texts = HeaderParser().parsestr(metadata).get_all("Requires-Dist", [])
    return " | ".join(sorted(str(each) for each in map(_requirement, texts) if each and _is_kept(each)))


def _requirement(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _is_kept(requirement: Requirement) -> bool:
    name = canonicalize_name(requirement.name)
    return (name in NEEDED or name.startswith("nvidia-")) and "extra ==" not in str(requirement.marker)


def _version(file: IndexFile) -> Version | None:
    try:
        _, version, _, _ = parse_wheel_filename(file.name)
    except (InvalidWheelFilename, InvalidVersion):
        return None
    is_old = file.uploaded is None or file.uploaded.date() < SINCE
    return None if is_old or version.is_devrelease else version


def _columns(files: Sequence[IndexFile]) -> tuple[str, str, str, str]:
    standing = [file for file in files if file.yanked is None]
    yanked = "" if standing else " ".join((files[0].yanked or "").split()) or "no reason given"
    day = min(file.uploaded.date().isoformat() for file in files if file.uploaded)
    tags = sorted("-".join(file.name.removesuffix(".whl").split("-")[-3:]) for file in standing or files)
    return day, yanked, files[-1].requires_python.replace(" ", ""), " ".join(tags)


def _read(index: SimpleIndex, file: IndexFile) -> str:
    try:
        return needed(index.metadata_of(file)[0])
    except UnreadableWheel as error:
        sys.stderr.write(f"{error}\n")
        return UNREAD


def _known() -> Iterator[tuple[tuple[str, str], str]]:
    """What the file has already: by package and version, since a wheel never changes."""
    for line in FILE.read_text(encoding="utf-8").splitlines()[1:] if FILE.exists() else ():
        package, version, *_, needs = line.split("\t")
        if needs != UNREAD:
            yield (package, version), needs


def main() -> None:
    index, known = SimpleIndex(read_index(os.environ)), dict(_known())
    files = {package: index.files_of(package) for package in PACKAGES}
    needs, unread = dict[str, str](), list[IndexFile]()
    for package, wheels in files.items():
        for version, of_release in releases_of(wheels).items():
            file = wheel_to_read(of_release)
            if (package, str(version)) in known:
                needs[file.name] = known[package, str(version)]
            else:
                unread.append(file)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        needs |= zip((file.name for file in unread), pool.map(lambda file: _read(index, file), unread), strict=True)
    lines = [line for package in PACKAGES for line in lines_of(package, files[package], needs)]
    read_on = datetime.now(UTC).date().isoformat()
    FILE.write_text("\n".join([f"# read from the public index on {read_on}", *lines]) + "\n", encoding="utf-8")
    sys.stdout.write(
        f"wrote {FILE}: {FILE.stat().st_size:,} bytes, {len(lines)} releases; asked for {len(PACKAGES)} packages and "
        f"{len(unread)} wheels\n"
    )


if __name__ == "__main__":
    main()
