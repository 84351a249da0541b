"""A large matrix, every cell of it measured: the texts and cells of what is shipped, over and over."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle, islice

from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.issue import Issue
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import Cell, CellPlace
from knowngood.store.knowledge.snapshot import read_shipped


def large_known(rows: int, columns: int, hardware: str = "cpu-x86_64") -> Known:
    shipped = read_shipped().knowledge.known
    line = (build for build in shipped.builds.values() if build.python == DEFAULT_PYTHON and not build.is_mismatched)
    builds = {build.id: build for build in islice(line, columns)}
    rows_of = {place[0] for place in shipped.cells if shipped.cells[place].measured_at}
    sources = [shipped.issues[id_] for id_ in sorted(rows_of)]
    issues = {issue.id: (source, issue) for source, issue in islice(_copies(sources), rows)}
    cells: dict[CellPlace, Cell] = {}
    for id_, (source, _) in issues.items():
        measured = cycle(cell for cell in shipped.stored(source.id) if cell.measured_at)
        for build in builds:
            cells[id_, build, hardware] = replace(next(measured), issue=id_, build=build, hardware=hardware)
    known = {id_: issue for id_, (_, issue) in issues.items()}
    return Known(known, builds, cells, (hardware,), shipped.as_of)


def _copies(sources: list[Issue]) -> Iterator[tuple[Issue, Issue]]:
    for n, source in enumerate(cycle(sources)):
        yield source, source if n < len(sources) else replace(source, id=f"{source.id}-{n // len(sources)}")
