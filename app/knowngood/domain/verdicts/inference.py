"""Claims about (issue, build, hardware class): what was measured there, else what one written rule infers.

Every sentence, number, colour and exit code of the product about a cell comes from here. A claim is a cell: what was
measured stands as it is; where nothing was, another measured cell may stand in for it, by one rule at most, and
the cell then names the rule and its ground (`basis`). Removing every ground of a claim makes it not known.
Source: docs/decisions/015-claims-are-made-in-one-place.md, docs/decisions/016-inference-needs-measured-agreement.md.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations

from knowngood.domain.builds.architectures import WheelCode, serves
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build, BuildId, minor_of
from knowngood.domain.grouping import gathered, grouped
from knowngood.domain.hardware_classes import isa_of
from knowngood.domain.identity_key import IdentityKey, remembered
from knowngood.domain.issue import Device, Issue, Requires, unmet
from knowngood.domain.measuring.machine import CPU_CLASS
from knowngood.domain.message import Message
from knowngood.domain.rate import Rate
from knowngood.domain.verdicts.status import untried
from knowngood.domain.verdicts.verdict import (
    CONCLUSIVE,
    FAILING,
    NOT_RUN,
    Basis,
    Cell,
    CellPlace,
    FlakyRate,
    Verdict,
    beside_flaky,
    is_flaky,
    lowest_rates,
    with_findings_of,
)

Pythons = tuple[str, str]
Places = tuple[CellPlace, CellPlace]

AGREEMENT = 0.95
"""The lower end of the 95 % interval of two Pythons' measured agreement, or of the CPU's with GPUs; below it neither
stands in for the other.
"""

PYTHON_RULE, DEVICE_RULE, VARIANT_RULE = "python", "device", "variant"
DEVICE_AND_PYTHON_RULE = "device_and_python"
RULES_OF_CPU = frozenset({DEVICE_RULE, DEVICE_AND_PYTHON_RULE})
_FEWEST_ROWS, _FEWEST_BUILDS, _FEWEST_FAILING = 40, 3, 40
PYTHONS_DIFFER = "pythons_differ"


@dataclass(frozen=True)
class Claims:
    """Claims about every cell of a store: `cells` are all that it holds.

    A function of the store: which builds, classes or issues somebody asks for changes no answer. What follows from the
    store alone is worked out once; keep one of these for as long as the store stands still. `flaky` are the places of
    its flaky cells and `verdicts` what each cell says, where they are known without looking at each (None: each is
    looked at). `wheels` are the lists of architectures by torch's version: no claim about the CPU reaches a GPU for
    which the wheel holds no code.
    """

    issues: Mapping[str, Issue]
    builds: Mapping[str, Build]
    cells: Mapping[CellPlace, Cell]
    infers: bool = True
    flaky: frozenset[CellPlace] | None = None
    verdicts: Mapping[CellPlace, Verdict] | None = field(default=None, compare=False, repr=False)
    wheels: Mapping[str, WheelCode] = field(default_factory=dict)
    _made: dict[CellPlace, Cell] = field(default_factory=dict, compare=False, repr=False)

    def of(self, issue: Issue, build: Build, hardware: str) -> Cell:
        """The measured cell; else the inferred one; else not_applicable with its reason, or not_run. For a wheel, the
        claim about all of its Pythons together.
        """
        key = (issue.id, build.id, hardware)
        made = self._made.get(key)
        if made is None:
            stored = self.stored(key)
            if not build.python:
                family = self._families[build.build_id]
                made = together([self.of(issue, member, hardware) for member in family], self.builds)
            elif stored is None or stored.verdict is Verdict.NOT_RUN:
                made = self._unmeasured(issue, build, hardware, stored)
            else:
                made = self._with_cures_of_twins(issue, build, stored) if self.infers else stored
            self._made[key] = made
        return made

    def stored(self, place: CellPlace) -> Cell | None:
        """The measured cell, as it may be claimed: of a flaky issue no pass that may be luck."""
        cell = self.cells.get(place)
        row = (place[0], place[2])
        if cell is None or (self.flaky is not None and row not in self._flaky_rows):
            return cell
        return _beside_flaky(IdentityKey(cell), self._rates(row)) if self._is_flaky(row) else cell

    def verdicts_of(self, issue: str, builds: Iterable[str], hardware: str) -> Mapping[str, Verdict]:
        """The verdicts of measured cells, as they may be claimed. A cell is decoded where its verdict is not known."""
        if self.verdicts is not None and not self._is_flaky((issue, hardware)):
            return {build: self.verdicts[issue, build, hardware] for build in builds}
        cells = ((build, self.stored((issue, build, hardware))) for build in builds)
        return {build: cell.verdict for build, cell in cells if cell is not None}

    @remembered
    def _is_flaky(self, row: tuple[str, str]) -> bool:
        if self.flaky is not None:
            return row in self._flaky_rows
        return any(is_flaky(self.cells[place]) for place in self._rows.get(row, ()))

    @remembered
    def _rates(self, row: tuple[str, str]) -> tuple[tuple[str, FlakyRate], ...]:
        return tuple(lowest_rates(self.cells[place] for place in self._rows[row]).items())

    @cached_property
    def _flaky_rows(self) -> frozenset[tuple[str, str]]:
        return frozenset((issue, hardware) for issue, _, hardware in self.flaky or ())

    @cached_property
    def _rows(self) -> Mapping[tuple[str, str], Sequence[CellPlace]]:
        return grouped(self.cells, lambda place: (place[0], place[2]))

    def _unmeasured(self, issue: Issue, build: Build, hardware: str, stored: Cell | None) -> Cell:
        blank = _blank(issue.id, issue.requires, build, hardware)
        if blank.verdict is Verdict.NOT_APPLICABLE:
            return blank
        inferred = self._inferred(issue, build, hardware) if self.infers else None
        return inferred or stored or blank

    def _inferred(self, issue: Issue, build: Build, hardware: str) -> Cell | None:
        """At most one rule: a cell of the CPU class that itself would have to be inferred stands in for nothing."""
        if issue.requires.device is Device.ANY and hardware != CPU_CLASS:
            if serves(build, hardware, self.wheels) is False or not self.carries_to_gpus:
                return None
            if ground := self.answer_of_cpu(issue, build, hardware):
                return _standing_in(IdentityKey(ground), build, hardware, DEVICE_RULE, self.device_agreement)
            has_own = self._answers((issue.id, build.id, CPU_CLASS))
            return None if has_own else self._from_cpu_of_another_python(issue, build, hardware)
        return self._from_another_python(issue, build, hardware)

    def _from_cpu_of_another_python(self, issue: Issue, build: Build, hardware: str) -> Cell | None:
        """The CPU's answer on another Python of the wheel, where pairs of exactly that composition agree."""
        if not self._may_stand_in(issue, build):
            return None
        grounds = [cell for other in self._wheels_alike(build) if (cell := self.answer_of_cpu(issue, other, hardware))]
        if len({cell.verdict for cell in grounds}) > 1:
            return None
        for ground in grounds:
            rate = self.composed_agreement.get((self.builds[ground.build].python, build.python), Rate(0, 0))
            if holds(rate):
                return _standing_in(IdentityKey(ground), build, hardware, DEVICE_AND_PYTHON_RULE, rate)
        return None

    def answer_of_cpu(self, issue: Issue, build: Build, hardware: str) -> Cell | None:
        """The measured cell of the CPU that may stand in for this one: of a row that names no device."""
        if issue.requires.device is not Device.ANY or hardware == CPU_CLASS:
            return None
        ground = self.stored((issue.id, build.id, CPU_CLASS))
        return ground if ground is not None and ground.verdict in CONCLUSIVE else None

    @cached_property
    def carries_to_gpus(self) -> bool:
        """Whether results on the CPU of rows that name no device may be claimed for a GPU.

        The GPU's side of each pair has an answer only where a CUDA tensor was seen to enter.
        """
        return self.infers and holds(self.device_agreement)

    def _from_another_python(self, issue: Issue, build: Build, hardware: str) -> Cell | None:
        if not self._may_stand_in(issue, build):
            return None
        grounds = [
            cell
            for other in self._wheels_alike(build)
            if (cell := self.stored((issue.id, other.id, hardware))) is not None and cell.verdict in CONCLUSIVE
        ]
        if len({cell.verdict for cell in grounds}) > 1:
            return None
        rated = [(self.agreement_of(build.python, self.builds[cell.build].python), cell) for cell in grounds]
        holding = [(rate, cell) for rate, cell in rated if holds(rate)]
        if not holding:
            return None
        rate, ground = min(holding, key=lambda pair: (-pair[0].interval[0], *_preferred(self.builds[pair[1].build])))
        return _standing_in(IdentityKey(ground), build, hardware, PYTHON_RULE, rate)

    def _with_cures_of_twins(self, issue: Issue, build: Build, cell: Cell) -> Cell:
        """The cell with the findings of another Python of the wheel on workarounds that were not run here, by the rule
        of cells.
        """
        if cell.verdict not in FAILING or not untried(cell) or not self._may_stand_in(issue, build):
            return cell
        for other in self._wheels_alike(build):
            twin = self.stored((issue.id, other.id, cell.hardware))
            if twin and twin.verdict is cell.verdict and holds(self.agreement_of(build.python, other.python)):
                cell = _with_cures(IdentityKey(cell), IdentityKey(twin))
        return cell

    def _may_stand_in(self, issue: Issue, build: Build) -> bool:
        return not issue.requires.python and not issue.is_smoke and build.id in self.smoked

    def agreement_of(self, python: str, other: str) -> Rate:
        """How many of the pairs that were measured on both Pythons agree; `Rate(0, 0)` where none was."""
        return self.agreement.get(_pair(python, other), Rate(0, 0))

    @cached_property
    def smoked(self) -> frozenset[str]:
        """Builds, each with its Python, on which a smoke row was measured to pass."""
        smoke = {issue.id for issue in self.issues.values() if issue.is_smoke}
        return frozenset(
            build
            for issue, build, hardware in self.cells
            if issue in smoke and self._verdict((issue, build, hardware)) is Verdict.NOT_AFFECTED
        )

    def _verdict(self, place: CellPlace) -> Verdict | None:
        if self.verdicts is not None:
            return self.verdicts.get(place)
        cell = self.cells.get(place)
        return cell.verdict if cell is not None else None

    def _answers(self, place: CellPlace) -> bool:
        return self._verdict(place) in CONCLUSIVE

    def _agreeing(self, pairs: Sequence[Places]) -> Rate:
        return Rate(sum(self._verdict(first) is self._verdict(second) for first, second in pairs), len(pairs))

    def _cells(self, pairs: Iterable[Places]) -> tuple[tuple[Cell, Cell], ...]:
        return tuple((self.cells[first], self.cells[second]) for first, second in pairs)

    @cached_property
    def agreement(self) -> Mapping[Pythons, Rate]:
        """By two Pythons, the older first: of the cells that have an answer on both, how many have the same.

        Cells of rows that name a Python are no pairs: they are there because Pythons differ.
        """
        builds = self.builds
        pairs_by_pythons = grouped(
            self._paired, lambda pair: _pair(builds[pair[0][1]].python, builds[pair[1][1]].python)
        )
        in_order = sorted(pairs_by_pythons.items(), key=lambda item: tuple(map(minor_of, item[0])))
        return {pythons: self._agreeing(pairs) for pythons, pairs in in_order}

    @cached_property
    def pairs(self) -> tuple[tuple[Cell, Cell], ...]:
        """The cells that were measured, with an answer, on two Pythons of one wheel; the older Python first."""
        return self._cells(self._paired)

    @cached_property
    def _paired(self) -> tuple[Places, ...]:
        places = gathered(
            ((issue, known.build_id.apart_from_python, known.triton, hardware), build)
            for issue, build, hardware in self.cells
            if not isa_of(hardware)  # what it says is in the cell of the whole class
            if (known := self.builds.get(build)) and (row := self.issues.get(issue))
            if not row.requires.python and not row.is_smoke
        )
        return tuple(
            pair
            for (issue, _, _, hardware), builds in sorted(places.items(), key=lambda item: (item[0][0], item[0][3]))
            if len(builds) > 1
            for pair in combinations(self._answering(issue, builds, hardware), 2)
        )

    def _answering(self, issue: str, builds: Iterable[str], hardware: str) -> Iterator[CellPlace]:
        in_order = sorted(builds, key=lambda id_: self.builds[id_].build_id)
        return filter(self._answers, ((issue, build, hardware) for build in in_order))

    @cached_property
    def device_agreement(self) -> Rate:
        """The share of `device_pairs` that agree."""
        return self._agreeing(self._device_paired)

    @cached_property
    def device_pairs(self) -> tuple[tuple[Cell, Cell], ...]:
        """Cells of device-independent rows that were measured, with an answer, on the CPU and on another class; the
        CPU's first.
        """
        return self._cells(self._device_paired)

    @cached_property
    def _device_paired(self) -> tuple[Places, ...]:
        rows = {issue.id for issue in self.issues.values() if issue.requires.device is Device.ANY}
        keys = sorted(key for key in self.cells if key[0] in rows and key[2] != CPU_CLASS)
        pairs = (((issue, build, CPU_CLASS), (issue, build, at)) for issue, build, at in keys)
        return tuple(pair for pair in pairs if all(map(self._answers, pair)))

    @cached_property
    def composed_agreement(self) -> Mapping[Pythons, Rate]:
        """By the Python of the CPU and that of the GPU the share of pairs that agree: none of fewer than 40 rows, three
        builds, and 40 pairs that fail.
        """
        return {pythons: self._agreeing(pairs) for pythons, pairs in self._composed.items() if self._is_telling(pairs)}

    @cached_property
    def composed_pairs(self) -> Mapping[Pythons, tuple[tuple[Cell, Cell], ...]]:
        """All of them, the CPU's cell first."""
        return {pythons: self._cells(pairs) for pythons, pairs in self._composed.items()}

    @cached_property
    def _composed(self) -> Mapping[Pythons, Sequence[Places]]:
        """Of the rows that name neither device nor Python the pairs of a wheel that have an answer on the CPU with one
        Python and on a GPU with another.
        """
        rows = {
            issue.id
            for issue in self.issues.values()
            if issue.requires.device is Device.ANY and not issue.requires.python and not issue.is_smoke
        }
        on_gpu = sorted(
            place for place in self.cells if place[0] in rows and place[2] != CPU_CLASS and place[1] in self.builds
        )
        pairs = (
            ((issue, other.id, CPU_CLASS), (issue, build, at))
            for issue, build, at in on_gpu
            for other in self._wheels_alike(self.builds[build])
        )
        answered = (pair for pair in pairs if all(map(self._answers, pair)))
        return grouped(answered, lambda pair: (self.builds[pair[0][1]].python, self.builds[pair[1][1]].python))

    def _is_telling(self, pairs: Sequence[Places]) -> bool:
        rows, builds, _ = ({place[at] for _, place in pairs} for at in range(3))
        failing = sum(self._verdict(on_gpu) in FAILING for _, on_gpu in pairs)
        return len(rows) >= _FEWEST_ROWS and len(builds) >= _FEWEST_BUILDS and failing >= _FEWEST_FAILING

    def _wheels_alike(self, build: Build) -> tuple[Build, ...]:
        """The builds that differ from this one in Python alone."""
        return tuple(
            other for other in self.builds_alike(build) if other.python != build.python and other.triton == build.triton
        )

    def builds_alike(self, build: Build) -> tuple[Build, ...]:
        """The builds of the same torch and Triton, with any Python, the default one first."""
        return self._families[build.build_id.apart_from_python]

    @cached_property
    def _families(self) -> Mapping[BuildId, tuple[Build, ...]]:
        in_order = sorted(self.builds.values(), key=_preferred)
        families = grouped(in_order, lambda build: build.build_id.apart_from_python)
        return defaultdict(tuple, {key: tuple(members) for key, members in families.items()})


def holds(rate: Rate) -> bool:
    """Whether a measured agreement is good enough to infer by."""
    return rate.interval[0] >= AGREEMENT


def _pair(python: str, other: str) -> Pythons:
    first, second = sorted((python, other), key=minor_of)
    return first, second


def counted(cells: Sequence[Cell]) -> Sequence[Cell]:
    """The claims about several Pythons that count: those with an answer before others, and measured ones before
    inferred ones.
    """
    best = max(map(_weight, cells))
    return [cell for cell in cells if _weight(cell)[:2] == best[:2]]


def tells_most(cells: Iterable[Cell]) -> Cell:
    """The one that stands for all Pythons of a wheel: the first of those that say most."""
    return max(cells, key=_weight)


def _weight(cell: Cell) -> tuple[bool, bool, bool, bool]:
    """Rank a cell: an answer says more than a vain attempt, that more than "not run", and that more than "does not
    apply"; what was measured says more than what is inferred.
    """
    is_answer = cell.verdict in CONCLUSIVE
    is_measured = cell.basis is None and cell.measured_at is not None
    return (
        is_answer,
        is_answer and is_measured,
        is_measured and cell.verdict is not Verdict.NOT_APPLICABLE,
        cell.verdict is not Verdict.NOT_APPLICABLE,
    )


def together(cells: Sequence[Cell], builds: Mapping[str, Build]) -> Cell:
    """Join the claims about a wheel's Pythons, the default one first, to the claim about the wheel. Where one fails and
    another passes, nothing is known of the wheel.
    """
    most_telling, answers = tells_most(cells), [cell for cell in counted(cells) if cell.verdict in CONCLUSIVE]
    passing = [builds[cell.build].python for cell in answers if cell.verdict is Verdict.NOT_AFFECTED]
    failing = [builds[cell.build].python for cell in answers if cell.verdict is not Verdict.NOT_AFFECTED]
    if not passing or not failing:
        return most_telling
    reason = Message(PYTHONS_DIFFER, names=tuple(failing), others=tuple(passing))
    return Cell(*most_telling.key, Verdict.INCONCLUSIVE, reason, most_telling.measured_at)


def _preferred(build: Build) -> tuple[bool, tuple[int, ...]]:
    return (build.python != DEFAULT_PYTHON, minor_of(build.python))


# The same cell as the same object, from one state of the store to the next: rows of a page are kept by their cells.
@lru_cache(maxsize=65_536)
def _blank(issue: str, requires: Requires, build: Build, hardware: str) -> Cell:
    absent = unmet(requires, build, hardware)
    if absent:
        return Cell(issue, build.id, hardware, Verdict.NOT_APPLICABLE, absent)
    return Cell(issue, build.id, hardware, Verdict.NOT_RUN, NOT_RUN)


@lru_cache(maxsize=65_536)
def _standing_in(same: IdentityKey[Cell], build: Build, hardware: str, rule: str, rate: Rate) -> Cell:
    """The cell of (build, hardware) as its ground has it. No attempt of it was made."""
    ground = same.it
    basis = Basis(rule, ground.build, ground.hardware, rate.part, rate.whole)
    return replace(
        ground,
        build=build.id,
        hardware=hardware,
        reason=inferred_reason(basis, ground.reason),
        attempts={},
        superseded=0,
        voided=0,
        differences=(),
        basis=basis,
    )


# As with `_blank`: the same cell stays the same object.
@lru_cache(maxsize=65_536)
def _with_cures(same: IdentityKey[Cell], twin: IdentityKey[Cell]) -> Cell:
    return with_findings_of(same.it, twin.it, twin.it.build)


@lru_cache(maxsize=65_536)
def _beside_flaky(same: IdentityKey[Cell], rates: tuple[tuple[str, FlakyRate], ...]) -> Cell:
    return beside_flaky(same.it, dict(rates))


def ground_of(basis: Basis) -> str:
    """The ground of an inferred claim, in a word: the other Python's build, or the CPU class."""
    return basis.hardware if basis.rule in RULES_OF_CPU else basis.build


def own_reason(cell: Cell) -> Message:
    """The reason of the measured cell that a claim stands on."""
    own = cell.reason.values["said"] if cell.basis else cell.reason
    return own if isinstance(own, Message) else cell.reason


def inferred_reason(basis: Basis, own: Message) -> Message:
    return Message(f"by_{basis.rule}", ground=ground_of(basis), n=basis.agreed, m=basis.compared, said=own)


def in_words(basis: Basis) -> Message:
    """`torch-2.6.0+cu124 (these Pythons agreed in 149 of 150 cells)`: what an inferred claim stands on."""
    return Message(f"ground_of_{basis.rule}", ground=ground_of(basis), n=basis.agreed, m=basis.compared)
