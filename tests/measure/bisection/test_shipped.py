"""Bisection over what the project ships, and by the real command over toys: real plans, processes and store."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.verdicts.history import history_of, is_release
from knowngood.domain.verdicts.verdict import NOT_RUN, Cell, Verdict
from knowngood.measure.bisection.cli import read_line
from knowngood.measure.bisection.search import (
    Point,
    Search,
    SearchOutcome,
    SearchResult,
    most_jobs,
    next_step,
    sentences,
)
from knowngood.store.engine import Engine, reading
from knowngood.store.queries import load_builds, load_cells
from tests.given_toys import TOYS, Installation, make_installation
from tests.make import HARDWARE
from tests.make_wheels import make_torch, make_wheels

Row = Sequence[tuple[Build, Cell]]


def rows(shipped: Engine, hardware: str, python: str) -> dict[str, Row]:
    """By issue: the releases that it was measured on, oldest first, with their cells."""
    with reading(shipped) as s:
        builds, cells = load_builds(s), load_cells(s, hardware=[hardware])
    known = {(cell.issue, cell.build): cell for cell in cells}
    line = [build for build in builds if is_release(build) and build.python == python]
    issues = sorted({issue for issue, _ in known})
    found = {issue: [(b, known[issue, b.id]) for b in line if (issue, b.id) in known] for issue in issues}
    return {issue: row for issue, row in found.items() if len(row) > 1}


def hidden(row: Row, known: Sequence[int]) -> Search:
    unknown = Verdict.NOT_RUN, NOT_RUN
    return Search(
        tuple(
            Point(build, cell)
            if at in known
            else Point(build, Cell(cell.issue, build.id, cell.hardware, *unknown), is_open=True)
            for at, (build, cell) in enumerate(row)
        )
    )


def carried_out(row: Row, search: Search) -> tuple[SearchResult, int]:
    while isinstance(step := next_step(search), int):
        points = [*search.points]
        assert points[step].is_open, "what is stored is not asked again"
        points[step] = Point(*row[step])
        search = replace(search, points=tuple(points), jobs=search.jobs + 1)
    return step, search.jobs


def changes_of(row: Row) -> list[str]:
    """The changes that the full evidence shows, as the history of the issue's own page has it."""
    spans = history_of([(build, cell.verdict) for build, cell in row]).spans
    return [change for span in spans for change in (span.broke_in, span.fixed_in) if change]


@pytest.mark.system
@pytest.mark.parametrize(
    ("hardware", "python", "least"), [("cpu-x86_64", "3.11", (25, 8)), ("cuda-sm_90", "3.12", (5, 1))]
)
def test_from_the_two_ends_of_every_shipped_row_its_true_boundary_is_found(
    shipped: Engine, hardware: str, python: str, least: tuple[int, int]
) -> None:
    single = more = none = jobs_in_all = 0
    for issue, row in rows(shipped, hardware, python).items():
        true = changes_of(row)
        answer, jobs = carried_out(row, hidden(row, [0, len(row) - 1]))
        assert jobs <= most_jobs(len(row)), issue
        jobs_in_all += jobs
        found = [change.interval for change in answer.changes]
        if len(true) == 1:
            assert (answer.kind, found) == (SearchOutcome.FOUND, true), issue
            single += 1
        elif not true:
            assert answer.kind in {SearchOutcome.ENDS_AGREE, SearchOutcome.CANNOT_SAY}, issue
            none += 1
        else:
            assert (
                answer.kind is SearchOutcome.FOUND and found[0] in true
            ) or answer.kind is SearchOutcome.ENDS_AGREE, issue
            more += 1
    told = f"{single} rows change once, {more} more often, {none} never, {jobs_in_all} jobs"
    assert (single, more) >= least, told


@pytest.mark.parametrize(("hardware", "python"), [("cpu-x86_64", "3.11"), ("cuda-sm_90", "3.12")])
def test_with_all_evidence_at_hand_nothing_is_asked_and_every_change_is_named(
    shipped: Engine, hardware: str, python: str
) -> None:
    for issue, row in rows(shipped, hardware, python).items():
        answer, jobs = carried_out(row, hidden(row, range(len(row))))
        true = changes_of(row)
        assert jobs == 0
        assert [change.interval for change in answer.changes] == true, issue
        assert (answer.kind is SearchOutcome.NOT_MONOTONE) == (len(true) > 1), issue


def test_a_shipped_row_that_changes_twice_is_told_as_not_monotone_by_name(shipped: Engine) -> None:
    row = rows(shipped, "cpu-x86_64", "3.11")["pytorch-151290"]
    answer, _ = carried_out(row, hidden(row, range(len(row))))
    assert sentences(answer)[0] == (
        "not monotone: 2 changes are known: breaks in (2.6.0, 2.7.0]: passes on 2.6.0, fails on 2.7.0; "
        "is fixed in (2.7.1, 2.8.0]: fails on 2.7.1, passes on 2.8.0"
    )


@pytest.mark.parametrize(
    ("one", "other", "python", "ends"),
    [
        ("2.4.1", "torch-2.6.0+cu124", "", ("torch-2.4.1+cu121", "torch-2.6.0+cu124")),
        ("torch-2.8.0+cu128", "2.6.0", "3.12", ("torch-2.6.0+cu124~py312", "torch-2.8.0+cu128~py312")),
        ("torch-2.6.0+cu126", "torch-2.9.1+cu126", "", ("torch-2.6.0+cu126", "torch-2.9.1+cu126")),
    ],
)
def test_ends_are_named_by_id_or_release_in_any_order(
    shipped: Engine, one: str, other: str, python: str, ends: tuple[str, str]
) -> None:
    with reading(shipped) as s:
        line = read_line(load_builds(s), one, other, python)
    assert (line[0].id, line[-1].id) == ends
    assert len({(build.origin, build.python) for build in line}) == 1


# -- by the real command -----------------------------------------------------------------------------------------------

RELEASES = [f"0.1.{patch}" for patch in range(9)]
LAST_BAD = "0.1.5"
UNTRUE = "0.1.3"  # its wheel imports as +cpu, so that it gives no answer

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("line")
    wheels = make_wheels(folder / "wheels")
    for release in RELEASES:
        imported = f"{release}+{'cpu' if release == UNTRUE else 'mini'}"
        make_torch(wheels, release, imported=imported, is_affected=release <= LAST_BAD)
    catalogue = folder / "catalogue"
    for issue in ("toy-fixed-1", "toy-passes-1", "toy-flaky-1"):
        shutil.copytree(TOYS / issue, catalogue / issue)
    tables = [
        f'[[build]]\ntorch = "{one}"\nlocal = "mini"\norigin = "default"\nas_of = 2026-11-01\n' for one in RELEASES
    ]
    (catalogue / "builds.toml").write_text("\n".join(tables))
    return make_installation(folder, wheels, catalogue=catalogue)


def asked(installation: Installation, *arguments: str, code: int = 0) -> dict[str, Any]:
    done = installation.command("bisect", *arguments, "--json")
    assert done.returncode == code, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.system
def test_a_line_is_bisected_by_the_command_and_asked_for_nothing_twice(installation: Installation) -> None:
    first = installation.command("bisect", "toy-fixed-1", "--from", "0.1.0", "--to", "0.1.8", "--dry-run")
    assert (first.returncode, "at most 6 jobs, the first on torch-0.1.0+mini" in first.stdout) == (0, True), (
        first.stderr
    )
    assert "to do: 1 cell, 4 arms, 1 environment" in first.stdout
    assert asked(installation, "toy-fixed-1", "--from", "0.1.0", "--to", "0.1.8", "--dry-run")["price"]["arms"] == 4
    answer = asked(installation, "toy-fixed-1", "--from", "0.1.0", "--to", "0.1.8")
    assert answer["answer"] == "found"
    assert answer["boundary"]["interval"] == "(0.1.5, 0.1.6]"
    assert answer["boundary"]["confirmed"] is True, "what is asked is asked three times at once"
    assert answer["jobs"] <= answer["most_jobs"] == 6
    points = {point["build"]: point for point in answer["points"]}
    assert points["torch-0.1.6+mini"]["attempts"] == 3
    assert sum(point["asked"] for point in points.values()) == answer["jobs"]
    again = asked(installation, "toy-fixed-1", "--from", "torch-0.1.8+mini", "--to", "0.1.0")
    assert (again["jobs"], again["boundary"]) == (0, answer["boundary"])
    told = installation.command("bisect", "toy-fixed-1", "--from", "0.1.0", "--to", "0.1.8").stdout
    assert "is fixed in (0.1.5, 0.1.6]: fails on 0.1.5, passes on 0.1.6" in told
    assert "first fixed build: torch-0.1.6+mini" in told
    assert "0 of at most 6 jobs run" in told


@pytest.mark.system
def test_a_build_that_gives_no_answer_is_stepped_around_and_named(installation: Installation) -> None:
    answer = asked(installation, "toy-passes-1", "--from", "0.1.2", "--to", "0.1.4", "--full", code=3)
    assert (answer["answer"], answer["jobs"]) == ("ends_agree", 3)
    verdicts = {point["build"]: point["verdict"] for point in answer["points"]}
    assert verdicts["torch-0.1.3+mini"] == "inconclusive"
    told = installation.command("bisect", "toy-passes-1", "--from", "0.1.2", "--to", "0.1.3")
    assert told.returncode == 3
    assert "0.1.3 gives no answer (inconclusive: " in told.stdout


@pytest.mark.system
def test_two_ends_alike_end_in_three_and_offer_the_full_scan(installation: Installation) -> None:
    told = installation.command("bisect", "toy-passes-1", "--from", "0.1.4", "--to", "0.1.8")
    assert told.returncode == 3, told.stderr
    assert "both ends pass (0.1.4 and 0.1.8)" in told.stdout
    assert "--full asks the 3 builds that were not asked" in told.stdout


@pytest.mark.system
def test_stored_sides_are_confirmed_where_that_is_asked_for(installation: Installation) -> None:
    where = ("--issues", "toy-flaky-1", "--builds", "torch-0.1.7+mini")
    assert installation.command("run", *where).returncode == 0
    ends = ("toy-flaky-1", "--from", "0.1.7", "--to", "0.1.8")
    answer = asked(installation, *ends, "--confirm", code=3)
    assert answer["answer"] == "ends_agree", "both are flaky once each is asked often enough"
    shown = asked(installation, "toy-fixed-1", "--from", "0.1.5", "--to", "0.1.6", "--confirm")
    assert (shown["jobs"], shown["confirming_jobs"]) == (0, 0), "nothing is missing"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("toy-fixed-2", "--from", "0.1.0", "--to", "0.1.8"), "nearest: toy-fixed-1"),
        (("toy-fixed-1", "--from", "0.1.0", "--to", "0.1.9"), "nearest: torch-0.1."),
        (("toy-fixed-1", "--from", "0.1.0", "--to", "newest"), '"newest" names no build'),
        (("toy-fixed-1", "--from", "0.1.0", "--to", "0.1.0"), "name two builds"),
    ],
)
def test_a_question_that_cannot_be_asked_gets_a_sentence(
    installation: Installation, arguments: tuple[str, ...], words: str
) -> None:
    done = installation.command("bisect", *arguments)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert words in done.stderr


def test_a_class_that_nobody_here_serves_is_answered_from_what_is_stored(installation: Installation) -> None:
    done = installation.command(
        "bisect", "toy-fixed-1", "--from", "0.1.0", "--to", "0.1.8", "--hardware", f"{HARDWARE}_elsewhere"
    )
    assert done.returncode == 3
    assert "only what is stored is looked at" in done.stderr
    assert "fewer than two builds of this line give an answer" in done.stdout
