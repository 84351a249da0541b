"""All that is known, in one value: the catalogue, every stored cell, and what follows from them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property, lru_cache

from knowngood.domain.builds.architectures import WheelCode, builds_serving, driver_objection, holds_code, serves
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.builds.release_age import ReleaseAge, age_of
from knowngood.domain.grouping import grouped
from knowngood.domain.hardware_classes import with_isa_classes
from knowngood.domain.identity_key import remember, remembered
from knowngood.domain.issue import Device, Issue, Requires, default_device, unmet
from knowngood.domain.issue_selectors import Names, names_of
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import NOTHING, Message, aside, clauses
from knowngood.domain.verdicts.history import Fix, History, first_fix, history_of, listed, releases_of
from knowngood.domain.verdicts.inference import Claims
from knowngood.domain.verdicts.paired_time import TimedCost
from knowngood.domain.verdicts.verdict import FAILING, Cell, CellPlace, Verdict, WorkaroundVerdict

_NOTHING = frozenset({Verdict.NOT_RUN, Verdict.NOT_APPLICABLE})


@dataclass(frozen=True)
class Known:
    """The catalogue, every stored cell by (issue, build, hardware class), and the measured classes.

    `as_of` is when this was so (a server: now; a snapshot: when it was made). What follows from it alone is worked out
    once: keep one of these for as long as it holds, and do not change what it was made of. Without `infers` nothing is
    known but what was measured: of a past moment the evidence of the rules is not at hand. `flaky` and `verdicts` are
    as in `Claims`. `wheels` are the lists of architectures that were read, by torch's version (`2.6.0+cu124`). `listed`
    is the table of the public index as the text of its file (empty: the one that comes with this release). `costs` are
    the times that workarounds take, by issue and workaround, each measured on one build.
    """

    issues: Mapping[str, Issue]
    builds: Mapping[str, Build]
    cells: Mapping[CellPlace, Cell]
    hardware: tuple[str, ...]
    as_of: datetime
    infers: bool = True
    flaky: frozenset[CellPlace] | None = None
    verdicts: Mapping[CellPlace, Verdict] | None = field(default=None, compare=False, repr=False)
    wheels: Mapping[str, WheelCode] = field(default_factory=dict)
    listed: str = field(default="", repr=False)
    costs: Mapping[str, Mapping[str, TimedCost]] = field(default_factory=dict)

    @cached_property
    def tested(self) -> frozenset[str]:
        """The builds that have any cell."""
        return frozenset(build for _, build, _ in self.cells)

    def cost_in_words(self, issue: str, workaround: str) -> Message:
        """The time that a workaround takes, on the one build where it was measured; nothing where it was not."""
        cost = self.costs.get(issue, {}).get(workaround)
        return cost.in_words if cost else NOTHING

    @cached_property
    def names(self) -> Names:
        return names_of(self.issues)

    @cached_property
    def build_names(self) -> BuildNames:
        return BuildNames(self.builds)

    @cached_property
    def claims(self) -> Claims:
        return Claims(self.issues, self.builds, self.cells, self.infers, self.flaky, self.verdicts, self.wheels)

    def cell(self, issue: Issue, build: Build, hardware: str) -> Cell:
        """The claim about a cell: measured, inferred, or not known."""
        return self.claims.of(issue, build, hardware)

    @cached_property
    def every_wheel(self) -> tuple[Build, ...]:
        """The wheels of the catalogue, each as its build with the default Python has it, if there is one."""
        default_last = sorted(self.builds.values(), key=lambda build: build.python == DEFAULT_PYTHON)
        return tuple({build.wheel.id: build.wheel for build in default_last}.values())

    @remembered
    def age(self, build: Build) -> ReleaseAge | None:
        """How long its release has been out, and what was reported since; None where its day is not known."""
        return age_of(build, self.builds.values(), self.issues.values(), self.as_of.date())

    def serves(self, build: Build, hardware: str) -> bool | None:
        """Whether the wheel holds code for a class; None where its list was not read."""
        return serves(build, hardware, self.wheels)

    def against(self, build: Build | None, hardware: str, driver: str = "") -> Message | None:
        """The objection to a wheel on a GPU: that it holds no code for it, that the driver is too old for its CUDA, or
        that one of these is not known. None where it runs; `build` is None for a wheel that is not in the catalogue.
        """
        gpu = hardware.removeprefix("cuda-")
        held = self.serves(build, hardware) if build else None
        if gpu == hardware:
            return None
        if held is not False and build and (objection := driver_objection(build, driver)):
            return clauses([Message("this_wheel", said=objection), *self._on_driver(hardware, driver)])
        if held or (held is None and build and self.is_measured(build, [hardware])):
            return None
        if held is None or build is None:
            return Message("code_unknown", gpu=gpu)
        serving = self.serving(hardware)
        if not serving:
            other = Message("code_nowhere")
        elif serving[0].build_id > build.build_id:
            other = Message("code_since", found=serving[0].torch)
        else:
            other = Message("code_until", found=serving[-1].torch)
        return clauses([Message("no_code", gpu=gpu), other])

    def _on_driver(self, hardware: str, driver: str) -> Iterator[Message]:
        """The newest tested wheel with code for a class that the driver runs."""
        fitting = [build for build in self.serving(hardware) if driver_objection(build, driver) is None]
        if fitting:
            yield Message("driver_until", found=fitting[-1].torch)

    def serving(self, hardware: str) -> tuple[Build, ...]:
        """The tested builds that hold code for a class, in the order of releases."""
        return builds_serving(hardware, self._tested_builds, self.wheels)

    def wheels_for(self, hardware: str) -> tuple[tuple[WheelCode, ...], tuple[WheelCode, ...]]:
        """The lists of tested wheels that hold code for a class, and those that hold none, in the order of releases."""
        in_order = sorted(self._tested_builds, key=lambda build: build.build_id)
        read = {build.torch: self.wheels[build.torch] for build in in_order if build.torch in self.wheels}
        holding = tuple(wheel for wheel in read.values() if holds_code(wheel.architectures, hardware))
        return holding, tuple(wheel for wheel in read.values() if wheel not in holding)

    @cached_property
    def _tested_builds(self) -> tuple[Build, ...]:
        return tuple(self.builds[id_] for id_ in self.tested & self.builds.keys())

    def is_measured(self, build: Build, hardware: Iterable[str]) -> bool:
        """Whether the build was measured on any of these classes; a wheel, with any Python."""
        ids = {build.id} if build.python else {id_ for id_, other in self.builds.items() if other.wheel.id == build.id}
        return any((id_, class_) in self._columns for class_ in hardware for id_ in ids)

    @remembered
    def measured(self, issue: str, hardware: str) -> tuple[tuple[Build, Cell], ...]:
        """Every stored cell of an issue on a class with its build, in release order."""
        places = ((id_, self.claims.stored((issue, id_, hardware))) for id_ in self._places[issue, hardware])
        return tuple([(self.builds[id_], cell) for id_, cell in places if cell is not None])

    def stored(self, issue: str) -> tuple[Cell, ...]:
        """Every stored cell of an issue, one class after the other, in release order."""
        return tuple(cell for class_ in self.classes_of(issue) for _, cell in self.measured(issue, class_))

    def classes_of(self, issue: str) -> tuple[str, ...]:
        """The measured classes; of a row that depends on the vector ISA also those of its ISAs."""
        depends = issue in self.issues and self.issues[issue].requires.vector_isas
        return with_isa_classes(self.hardware) if depends else self.hardware

    @remembered
    def was_measured(self, issue: str, hardware: str) -> bool:
        """Whether any build has more than "not run" and "does not apply" of an issue on a hardware class. On a GPU an
        issue that names no device has been measured once it has an answer: its scripts had run there on the CPU.
        """
        row = self.issues.get(issue)
        nothing = _NOTHING | {Verdict.INCONCLUSIVE} if row and default_device(row, hardware) else _NOTHING
        return not nothing.issuperset(self._verdicts(issue, hardware).values())

    @remembered
    def history(self, issue: str, hardware: str) -> History:
        """Where an issue came and went on a class, over every release of the catalogue, by what was measured. Where no
        release fails, builds with another Triton than torch's own that do are named beside it.
        """
        history = history_of(self._line_verdicts(issue, hardware).items())
        verdicts = self._verdicts(issue, hardware).items()
        failing = [id_ for id_, verdict in verdicts if verdict in FAILING and self.builds[id_].is_mismatched]
        if history.spans or not failing:
            return history
        return replace(history, sentence=aside(history.sentence, [Message("fails_on", names=listed(sorted(failing)))]))

    @remembered
    def _verdicts(self, issue: str, hardware: str) -> Mapping[str, Verdict]:
        """The verdicts of the stored cells of an issue on a class, by build in release order."""
        return self.claims.verdicts_of(issue, self._places[issue, hardware], hardware)

    @remembered
    def _line_verdicts(self, issue: str, hardware: str) -> Mapping[Build, Verdict]:
        """The verdict of each build of the line; empty where the issue was never measured on this class."""
        stored = self._verdicts(issue, hardware)
        if not stored:
            return {}
        requires = self.issues[issue].requires if issue in self.issues else Requires(Device.ANY)
        unmeasured = _unmeasured(requires, self._line, hardware)
        candidates = ((build, stored.get(build.id, Verdict.NOT_RUN), other) for build, other in unmeasured)
        return {build: other if verdict is Verdict.NOT_RUN else verdict for build, verdict, other in candidates}

    def telling_history(self, issue: Issue, hardware: str) -> tuple[History, str]:
        """The history to show for an issue on a class, and the class that it comes from. For an issue that does not
        depend on the device that is the CPU, if it was measured there alone and its cells carry over.
        """
        own = self.history(issue.id, hardware)
        if own.measured or issue.requires.device is not Device.ANY or not self.claims.carries_to_gpus:
            return own, hardware
        on_cpu = self.history(issue.id, CPU_CLASS)
        return (on_cpu, CPU_CLASS) if on_cpu.measured else (own, hardware)

    def history_sentence(self, issue: Issue, hardware: str) -> Message:
        """The history of an issue on a class, as a sentence."""
        history, class_ = self.telling_history(issue, hardware)
        return history.sentence if class_ == hardware else Message("as_on", hardware=class_, said=history.sentence)

    @remembered
    def helping(self, issue: str, hardware: str) -> frozenset[str]:
        """The workarounds that were measured to help on any build."""
        failing = (cell for _, cell in self.measured(issue, hardware) if cell.verdict in FAILING)
        tried = (pair for cell in failing for pair in cell.workarounds.items())
        return frozenset(id_ for id_, finding in tried if finding.verdict is WorkaroundVerdict.EFFECTIVE)

    @remembered
    def fix_of(self, issue: str, build: Build, hardware: str) -> Fix | None:
        """Where an issue that fails on `build` passes again."""
        verdicts = self._line_verdicts(issue, hardware)
        return first_fix(self._releases, build, lambda candidate: verdicts.get(candidate, Verdict.NOT_RUN))

    @remembered
    def measured_on(self, issue: str, hardware: str) -> frozenset[str]:
        """The builds (ids) on which an issue was measured on a class."""
        return frozenset(build.id for build, cell in self.measured(issue, hardware) if cell.measured_at is not None)

    def remember_rows(self, before: "Known", changed: Collection[str]) -> None:
        """Take over what follows from one issue's own cells, but of the issues that `changed`: between two states of a
        store few do. The builds have to be the same.
        """
        of_rows = (Known.measured, Known.was_measured, Known.history, Known.helping, Known.measured_on, Known.fix_of)
        remember(self, before, (*of_rows, Known._verdicts, Known._line_verdicts), changed)

    @cached_property
    def _places(self) -> Mapping[tuple[str, str], tuple[str, ...]]:
        """Builds by issue and class, from the keys alone: decoding a cell costs 50 us when it is first looked at."""
        ranks = {id_: rank for rank, id_ in enumerate(sorted(self.builds, key=lambda id_: self.builds[id_].build_id))}
        in_order = sorted((place for place in self.cells if place[1] in ranks), key=lambda place: ranks[place[1]])
        by_class = grouped(in_order, lambda place: (place[0], place[2]))
        return defaultdict(tuple, {key: tuple(build for _, build, _ in places) for key, places in by_class.items()})

    @cached_property
    def _columns(self) -> frozenset[tuple[str, str]]:
        return frozenset((build, hardware) for _, build, hardware in self.cells)

    @cached_property
    def _releases(self) -> tuple[tuple[Build, ...], ...]:
        return releases_of(self.builds.values())

    @cached_property
    def _line(self) -> tuple[Build, ...]:
        return tuple(build for release in self._releases for build in release)


@lru_cache(maxsize=4096)  # a page of the matrix asks this of every row
def _unmeasured(requires: Requires, line: tuple[Build, ...], hardware: str) -> tuple[tuple[Build, Verdict], ...]:
    """The verdict of each build without a measurement."""
    return tuple(
        (build, Verdict.NOT_APPLICABLE if unmet(requires, build, hardware) else Verdict.NOT_RUN) for build in line
    )
