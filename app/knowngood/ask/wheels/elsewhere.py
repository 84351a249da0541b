"""Where a wheel may be that the public index does not have, by what sources claim: pure. A claim was not read in a
wheel or an index, so it never makes a yes: the answer stays what it is, or not known, and says where to look.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from packaging.version import Version

from knowngood.domain.builds.architectures import runs_cuda
from knowngood.domain.builds.platforms import BACKENDS, LINUX
from knowngood.domain.message import Message
from knowngood.environments.resolve import index_of_variant
from knowngood.environments.wheels.answer import WheelAnswer, WheelChange
from knowngood.environments.wheels.table import WheelClaim, WheelTable, variants_of

_CUDA = re.compile(r"cu(\d\d)(\d)")


def package_elsewhere(answer: WheelAnswer, claims: Sequence[WheelClaim]) -> WheelAnswer:
    """An answer for a package that the table does not have, with where its wheels are; as it is where no claim says."""
    for claim in claims:
        if claim.package == answer.package:
            why = Message("wheel_elsewhere", name=claim.package, page=claim.page)
            change = WheelChange("", "", claim.command, "", claim.sources, claim.read_on)
            notes = [Message("claimed_beside", name=claim.package, releases=claim.torch)] if claim.torch else []
            return replace(answer, why=why, changes=(change,), notes=tuple(notes))
    return answer


@dataclass(frozen=True)
class TorchElsewhere:
    """Wheels of torch on PyTorch's own index that a question takes: of a variant (`cu126`), or of any with a CUDA, a
    driver that runs it, or a backend (`rocm`); each is empty where any will do.
    """

    answer: WheelAnswer
    table: WheelTable
    claims: Sequence[WheelClaim]
    variant: str = ""
    cuda: str = ""
    driver: str = ""
    backend: str = ""

    def takes(self, variant: str) -> bool:
        if self.backend:
            return variant.startswith(self.backend)
        found = _CUDA.fullmatch(variant)
        cuda = f"{found[1]}.{found[2]}" if found else ""
        runs = not self.driver or bool(cuda and runs_cuda(cuda, self.driver))
        return (variant == self.variant if self.variant else bool(cuda)) and runs and self.cuda in {"", cuda}

    @property
    def platform(self) -> str:
        return self.answer.platform or LINUX

    @cached_property
    def claimed(self) -> dict[str, WheelChange]:
        """By release, oldest first, the newest variant that the question takes, whatever its Python."""
        found = {}
        for release in (str(each.version) for each in self.table.releases("torch") if not each.yanked):
            for claim in (claim for claim in self.claims if claim.lists(release, self.platform)):
                for variant in filter(self.takes, claim.variants):
                    pin = f"torch=={release}+{variant}" if self.variant else f"torch=={release}"
                    command = f"pip install {pin} --index-url {index_of_variant(variant)}"
                    found[release] = WheelChange(release, "", command, variant, claim.sources, claim.read_on)
        return found

    @cached_property
    def with_python(self) -> list[str]:
        """Those of them with a wheel for the Python on the public index: that the other has it too is a claim."""
        having = (each for each in self.table.releases("torch") if each.has(self.answer.python, self.platform))
        return [str(each.version) for each in having if str(each.version) in self.claimed]

    def changes(self, asked: str) -> tuple[WheelChange, ...]:
        """The claim for the release that is asked about (empty: any), else for another Python, and the nearest release:
        the last patch of the next minor, or the newest of all.
        """
        if asked in self.with_python:
            return (self.claimed[asked],)
        pythons = [change.python for change in self.answer.changes if change.python and asked in self.claimed]
        newer = [each for each in self.with_python if asked and Version(each) > Version(asked)]
        nearest = [each for each in newer if Version(each).minor == Version(newer[0]).minor] or self.with_python
        return (
            *(replace(self.claimed[asked], release="", python=python) for python in pythons),
            *(self.claimed[each] for each in nearest[-1:]),
        )

    def decided(self, asked: str) -> WheelAnswer:
        """The answer where claims alone can say it: a no of the public index stays one, all else is not known."""
        changes, listed = self.changes(asked), variants_of(asked, self.platform, self.claims)
        name, is_there = f"torch {asked}".strip(), bool(changes) and asked in {"", changes[0].release}
        notes = [*self.answer.notes, *([Message("claims_alone")] if changes else [])]
        if listed and not is_there:
            notes.append(Message("variants_claimed", name=name, variants=listed))
        answer = replace(self.answer, changes=changes, notes=tuple(notes))
        if answer.exists is False:
            return answer
        release, why = answer.release, answer.why if self.variant else Message("wheel_unclaimed", name=name)
        if is_there:
            claimed = Message("wheel_claimed", name=f"torch {changes[0].release}+{changes[0].variant}")
            why = Message("backend_elsewhere", backend=BACKENDS[self.backend]) if self.backend else claimed
            release = release if self.variant else changes[0].release
        return replace(answer, release=release, exists=None, why=why, glibc="", pythons={}, released=None)
