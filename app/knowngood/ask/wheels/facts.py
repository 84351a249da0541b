"""The facts of wheels that answers rest on, as one document: the API, the static site and other programs read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Literal

from knowngood.domain.builds.architectures import OLDEST_DRIVER, WheelCode
from knowngood.domain.hardware_names import gpu_capabilities
from knowngood.domain.verdicts.known import Known
from knowngood.environments.wheels.table import UNREAD, WheelClaim, shipped_claims, wheels_of


@dataclass(frozen=True)
class ReleaseFacts:
    """A release with its wheels on the public index. `tags` are those of its files, `cp312-cp312-win_amd64`, and
    `yanked` is why its author took it back (empty: it stands). `requires_dist` has the requirements on torch, Triton,
    numpy, NVIDIA's packages and those of this document, of one of its wheels (that for Linux x86-64 if there is one);
    null where none could be read. `cuda` is the CUDA that they pin for Linux x86-64 (empty: none).
    """

    version: str
    released: date
    yanked: str
    requires_python: str
    tags: tuple[str, ...]
    requires_dist: tuple[str, ...] | None
    cuda: str


@dataclass(frozen=True)
class Facts:
    """`packages` are the releases of each, oldest first, as the public index listed them on `read_on`. `installed` has
    what was read in wheels of torch that were installed. `gpus` maps names that people write to the compute capability
    (AMD: the target), `oldest_drivers` the major version of CUDA to the oldest branch of NVIDIA's driver. `claims` are
    what sources say of other indexes; nobody here read those wheels.
    """

    __pydantic_config__: ClassVar = {"json_schema_serialization_defaults_required": True}

    read_on: date
    packages: Mapping[str, tuple[ReleaseFacts, ...]]
    installed: tuple[WheelCode, ...]
    gpus: Mapping[str, str]
    oldest_drivers: Mapping[str, int]
    claims: tuple[WheelClaim, ...]
    format: Literal["knowngood-facts"] = "knowngood-facts"
    version: Literal[1] = 1


def facts_of(known: Known) -> Facts:
    """The facts that answers from this knowledge rest on: those of a snapshot, where it is one."""
    table = wheels_of(known)
    packages = {
        name: tuple(
            ReleaseFacts(
                version=str(release.version),
                released=release.day,
                yanked=release.yanked,
                requires_python=str(release.requires),
                tags=tuple(release.tags.split()),
                requires_dist=None if release.needs == UNREAD else tuple(filter(None, release.needs.split(" | "))),
                cuda=release.cuda,
            )
            for release in releases
        )
        for name, releases in table.packages.items()
    }
    return Facts(
        read_on=table.read_on,
        packages=packages,
        installed=tuple(known.wheels.values()),
        gpus=gpu_capabilities(),
        oldest_drivers={str(cuda): driver for cuda, driver in OLDEST_DRIVER.items()},
        claims=shipped_claims(),
    )
