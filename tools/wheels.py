"""Write `repros/wheels.tsv`: which wheels the public index has, for questions where none can be asked.

One request for each package, and nothing is downloaded. Releases from before torch 2.1.0 are left out.
"""

import os
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from knowngood.ask.wheels.table import FILE
from knowngood.domain.builds.package_index import IndexFile
from knowngood.domain.grouping import grouped
from knowngood_workers.provision.index_config import read_index
from knowngood_workers.provision.simple_index import SimpleIndex

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
    "liger-kernel",
    "transformers",
    "tensordict",
    "pytorch-lightning",
    "triton-windows",
)


def lines_of(package: str, files: Iterable[IndexFile]) -> list[str]:
    """A line for each release: package, version, day, why it was yanked, the Pythons that it asks for, and the tags of
    its wheels. A release is yanked where all of its wheels are; where some stand, these are the release.
    """
    wheels = grouped((file for file in files if _version(file) is not None), _version)
    return ["\t".join([package, str(version), *_columns(wheels[version])]) for version in sorted(filter(None, wheels))]


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


if __name__ == "__main__":
    index = SimpleIndex(read_index(os.environ))
    lines = [line for package in PACKAGES for line in lines_of(package, index.files_of(package))]
    read_on = datetime.now(UTC).date().isoformat()
    FILE.write_text("\n".join([f"# read from the public index on {read_on}", *lines]) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes, {len(lines)} releases, {len(PACKAGES)} requests\n")
