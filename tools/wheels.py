"""Write `repros/wheels.tsv`: which wheels the public index has, for questions where none can be asked.

One request for each package, and nothing is downloaded. Wheels of releases before 2.1.0 of torch, and of packages the
releases before that day, are left out.
"""

import os
import sys
from collections import defaultdict
from datetime import UTC, date, datetime

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from knowngood.ask.wheels.table import FILE
from knowngood.domain.builds.package_index import IndexFile
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


def lines_of(package: str, files: tuple[IndexFile, ...]) -> list[str]:
    """A line for each release: package, version, day, why it was yanked, the Pythons that it asks for, and the tags of
    its wheels.
    """
    tags, days, yanked = defaultdict[Version, list[str]](list), dict[Version, str](), dict[Version, str]()
    pythons = dict[Version, str]()
    for file in files:
        try:
            _, version, _, _ = parse_wheel_filename(file.name)
        except (InvalidWheelFilename, InvalidVersion):
            continue
        if file.uploaded is None or file.uploaded.date() < SINCE or version.is_devrelease:
            continue
        tags[version].append("-".join(file.name.removesuffix(".whl").split("-")[-3:]))
        days[version] = min(days.get(version, "9"), file.uploaded.date().isoformat())
        pythons[version] = file.requires_python.replace(" ", "")
        if file.yanked is not None:
            yanked[version] = " ".join(file.yanked.split()) or "no reason given"
    return [
        "\t".join(
            [package, str(version), days[version], yanked.get(version, ""), pythons[version], " ".join(sorted(each))]
        )
        for version, each in sorted(tags.items())
    ]


if __name__ == "__main__":
    index = SimpleIndex(read_index(os.environ))
    lines = [line for package in PACKAGES for line in lines_of(package, index.files_of(package))]
    read_on = datetime.now(UTC).date().isoformat()
    FILE.write_text("\n".join([f"# read from the public index on {read_on}", *lines]) + "\n", encoding="utf-8")
    sys.stdout.write(f"wrote {FILE}: {FILE.stat().st_size:,} bytes, {len(lines)} releases, {len(PACKAGES)} requests\n")
