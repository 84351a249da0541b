"""`knowngood pack`: builds, issues and the worker for a machine without network."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from knowngood.cli.context import opened_with_catalogue, pick_builds, pick_issues, root
from knowngood.cli.lazy import command
from knowngood.cli.options import BUILDS, FILE_HERE, ISSUES, PATH, option, text
from knowngood.cli.output import err, out
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.build_names import BuildNames, minor_python
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import EnvironmentRequest, Issue, environment_request, inapplicable
from knowngood.settings import read_settings
from knowngood.store.engine import Engine
from knowngood_workers.pack.builder import PackRequest, make_pack, read_installed
from knowngood_workers.provision.provisioner import choose_cache
from knowngood_workers.provision.uv_cli import Installer


@command(
    "Pack builds, issues and the worker for a machine without network. There, run `python3 DIR/run.py`.",
    option("-o", "--output", type=PATH, required=True, help="The pack's folder: new, or a pack to extend."),
    BUILDS,
    ISSUES,
    option(
        "--python", metavar="VERSION", help="The Python of that machine, such as 3.12. Default: that of each build."
    ),
    text("--platform", "The platform of that machine.", default="manylinux_2_28_x86_64"),
    text("--part-size", "The largest part: 60M, 2G.", "SIZE", default="1G"),
    option(
        "--exclude-installed",
        type=FILE_HERE,
        help="The `pip freeze` of that machine: these wheels are left out.",
    ),
    example="pack -o pack --builds 2.6.0 --issues all",
)
def pack(
    output: Path,
    builds: Sequence[str],
    issues: Sequence[str],
    python: str | None,
    platform: str,
    part_size: str,
    exclude_installed: Path | None,
) -> None:
    settings = read_settings()
    engine = opened_with_catalogue(settings)
    chosen = pick_issues(engine, issues)
    columns = _for_python(engine, pick_builds(engine, builds, lambda build: build.default), python)
    wanted = PackRequest(
        pairs=_pairs(chosen, columns),
        builds=[build.id for build in columns],
        issues=[issue.id for issue in chosen],
        folders=settings.folders,
        python=columns[0].python,
        platform=platform,
        part_bytes=_size(part_size),
        excluded=read_installed(exclude_installed) if exclude_installed else frozenset(),
    )
    installer = Installer(choose_cache(root(settings), os.environ), root(settings))
    packed = make_pack(
        output, wanted, installer, now=datetime.now(UTC), tell=lambda line: err.print(line, soft_wrap=True)
    )
    for what, reason in packed.left_out.items():
        err.print(f"left out: {what}: {reason}", soft_wrap=True)
    size = f"{packed.bytes / (1 << 30):.2f} GB"
    out.print(f"{packed.folder}: {packed.files} files added, {size}, {packed.parts} parts in all", soft_wrap=True)


def _for_python(engine: Engine, builds: Sequence[Build], python: str | None) -> tuple[Build, ...]:
    """The same builds for the Python asked for; a pack is for one."""
    pythons = sorted({build.python for build in builds})
    if python is None and len(pythons) > 1:
        raise BadRequest(f"these builds are of Python {' and '.join(pythons)}; say --python, a pack is for one")
    if python is None:
        return tuple(builds)
    known = BuildNames({build.id: build for build in pick_builds(engine, ("all",), lambda _: True)})
    named = [known.find(build.id, python=minor_python(python)) for build in builds]
    return tuple({build.id: build for build in named}.values())


def _pairs(issues: Sequence[Issue], builds: Sequence[Build]) -> list[tuple[Build, EnvironmentRequest]]:
    """Every environment that these issues need on these builds, on whatever hardware there may be."""
    anywhere = ("cpu-x86_64", "cuda-sm_999")
    by_request = {
        environment_request(issue, build): build
        for build in builds
        for issue in issues
        if any(inapplicable(issue, build, hardware) is None for hardware in anywhere)
    }
    return [(build, request) for request, build in by_request.items()]


def _size(text: str) -> int:
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    number, unit = text[:-1], text[-1:].upper()
    if unit not in units or not number.isdigit() or int(number) == 0:
        raise BadRequest(f'--part-size "{text}" is no size; write for example 60M or 2G')
    return int(number) * units[unit]
