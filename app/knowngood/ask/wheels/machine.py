"""Which releases of torch run on a machine, by its GPU, its driver and a CUDA: pure, from the lists of architectures
that were read in the default wheels of Linux x86-64, and from the CUDA that these ask for. Nothing is measured for it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby

from packaging.version import Version

from knowngood.ask.wheels.elsewhere import TorchElsewhere, package_elsewhere
from knowngood.domain.builds.architectures import cuda_objection, holds_code, oldest_driver
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import BadRequest
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_names import hardware_named
from knowngood.domain.message import Message, clauses
from knowngood.domain.verdicts.known import Known
from knowngood.environments.wheels.answer import WheelAnswer, WheelChange, nearest_release
from knowngood.environments.wheels.table import WheelClaim, WheelRelease, WheelTable
from knowngood.move.upgrade.constraints import read_driver

_CUDA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}")
_ELSEWHERE = ("rocm", "xpu")
"""Backends whose wheels are on PyTorch's own index alone."""


@dataclass(frozen=True)
class WheelMachine:
    """`gpu` is its class, or a backend alone (`rocm`, `xpu`), `driver` as nvidia-smi says it, `cuda` the version that
    the wheel has to be built for; each is empty where any will do.
    """

    gpu: str = ""
    driver: str = ""
    cuda: str = ""


def read_machine(gpu: str, driver: str, cuda: str) -> WheelMachine:
    """Read the words of a question. Raises BadRequest for a name that is no GPU, and for no version."""
    named = hardware_named(gpu) if gpu else None
    class_ = gpu.strip().casefold() if gpu.strip().casefold() in _ELSEWHERE else named.hardware if named else ""
    if gpu and not class_.startswith(("cuda-", *_ELSEWHERE)):
        raise BadRequest(f'"{gpu[:40]}" is no GPU that is known here; write for example H100, RTX 5090, sm_90 or MI300')
    if cuda and not _CUDA.fullmatch(cuda):
        raise BadRequest(f'"{cuda[:40]}" is no CUDA; write 12.8')
    return WheelMachine(class_, read_driver(driver), cuda)


def on_machine(
    answer: WheelAnswer,
    machine: WheelMachine,
    known: Known | None,
    table: WheelTable,
    claims: Sequence[WheelClaim],
    *,
    is_named: bool,
) -> WheelAnswer:
    """Narrow an answer to the wheels that run on a machine; of a release that `is_named` say whether it does, else take
    the newest that does. `known` has the lists of architectures; where no GPU is asked about they are not looked at.
    `claims` say where the wheels are that the public index does not have, and decide alone where no wheel was read.
    """
    if answer.package != "torch" and answer.exists is None:
        return package_elsewhere(answer, claims)
    version, _, variant = answer.release.partition("+")
    same = (str(each.version) for each in table.releases("torch") if is_named and each.version == Version(version))
    asked, backend = next(same, version if is_named else ""), next(filter(machine.gpu.startswith, _ELSEWHERE), "")
    elsewhere = TorchElsewhere(answer, table, claims, variant, machine.cuda, machine.driver, backend)
    is_torch, is_linux = answer.package == "torch", answer.platform in {"", LINUX}
    if is_torch and (backend or (variant and not machine.gpu)):
        return elsewhere.decided(asked)
    if answer.exists is None or machine == WheelMachine():
        return answer
    if is_torch and not is_linux and not machine.gpu:
        return elsewhere.decided(asked)
    if not is_torch or not is_linux:
        return replace(answer, exists=None, why=Message("code_of_torch_alone"), changes=(), notes=())
    fitting = [each for each in table.releases("torch") if not each.yanked and each.has(answer.python, LINUX)]
    found = _Fitting(machine, known, fitting).narrowed(answer, is_named=is_named)
    if found.exists or machine.gpu:
        return found
    if found is answer:  # no wheel for the Python
        return elsewhere.decided(asked) if machine.cuda else answer
    changes, notes = elsewhere.changes(asked), [Message("claims_alone")]
    return replace(found, changes=(*found.changes, *changes), notes=(*found.notes, *(notes if changes else [])))


@dataclass(frozen=True)
class _Fitting:
    """`releases` are those with a wheel for the Python on Linux x86-64, oldest first."""

    machine: WheelMachine
    known: Known | None
    releases: Sequence[WheelRelease]

    @cached_property
    def read(self) -> Mapping[str, Sequence[str]]:
        """The architectures of the default wheels that were read, by release."""
        builds = self.known.every_wheel if self.known else ()
        wheels = self.known.wheels if self.known else {}
        return {
            build.requirement: wheels[build.torch].architectures
            for build in builds
            if build.origin == "default" and build.torch in wheels
        }

    @cached_property
    def running(self) -> Sequence[WheelRelease]:
        return [release for release in self.releases if self.objection(release) is None]

    def objection(self, release: WheelRelease) -> Message | None:
        """The objection to a release: that it does not run there, or that nobody knows."""
        if self.machine.cuda and release.cuda != self.machine.cuda:
            return Message("wheel_of_cuda", found=release.cuda) if release.cuda else Message("cuda_unread")
        code = self.read.get(str(release.version))
        if self.machine.gpu and code is None:
            return Message("code_unread")
        if self.machine.gpu and not holds_code(code or (), self.machine.gpu):
            return Message("index_holds_no_code", found=release.cuda, gpu=self.machine.gpu.removeprefix("cuda-"))
        if self.machine.driver and not release.cuda:
            return Message("cuda_unread")
        return cuda_objection(release.cuda, self.machine.driver)

    def narrowed(self, answer: WheelAnswer, *, is_named: bool) -> WheelAnswer:
        asked = next((each for each in self.releases if str(each.version) == answer.release), None)
        if asked is None:
            return answer
        asked = asked if is_named or not self.running else self.running[-1]
        objection = self.objection(asked)
        name, notes = f"torch {asked.version}", tuple(self._notes())
        answer = replace(
            answer, pythons={LINUX: asked.pythons(LINUX)}, glibc=asked.glibc(answer.python, LINUX), notes=notes
        )
        if objection is None:
            said = Message("wheel_runs" if is_named else "releases_need", names=name, said=_needs(asked))
            why = said if is_named else clauses([self._span(), said])
            return replace(answer, release=str(asked.version), released=asked.day, why=why)
        is_unread = objection.key in {"code_unread", "cuda_unread", "driver_unknown"}
        nearest = nearest_release(asked, self.running)
        changes = tuple(WheelChange(str(each.version), "", f"pip install torch=={each.version}") for each in nearest)
        why = clauses([Message("wheel_does_not_run", name=name, said=objection), *self._other(asked, nearest)])
        return replace(answer, exists=None if is_unread else False, why=why, changes=changes)

    def _other(self, release: WheelRelease, nearest: Sequence[WheelRelease]) -> Iterator[Message]:
        for other in nearest:
            key = "runs_since" if other.version > release.version else "runs_until"
            yield Message(key, found=str(other.version))
        if not nearest:
            yield Message("runs_nowhere")

    def _span(self) -> Message:
        first, last = str(self.running[0].version), str(self.running[-1].version)
        return Message("runs_alone", first=first) if first == last else Message("runs_from_to", first=first, last=last)

    def _notes(self) -> Iterator[Message]:
        """The releases that run there, in ranges of one CUDA; then those that hold no code, and those not read."""
        for needs, alike in groupby(self.running, _needs):
            yield Message("releases_need", names=_range(list(alike)), said=needs)
        if self.running:
            yield Message("by_cuda_alone")
        lacking = grouped(self.releases, lambda release: getattr(self.objection(release), "key", ""))
        for key in ("index_holds_no_code", "code_unread"):
            if names := tuple(str(release.version) for release in lacking.get(key, ())):
                yield Message(f"releases_{key}", names=names)


def _needs(release: WheelRelease) -> Message:
    oldest = oldest_driver(release.cuda) if release.cuda else None
    return Message("needs_driver", found=release.cuda, wanted=oldest) if oldest else Message("cuda_unread")


def _range(releases: Sequence[WheelRelease]) -> str:
    first, last = str(releases[0].version), str(releases[-1].version)
    return first if first == last else f"{first} to {last}"
