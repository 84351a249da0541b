"""How long the pages take as files, and how large they are: what is shipped, and 150 rows x 25 builds, all measured."""

import tempfile
import time
from pathlib import Path

from benchmarks.sizes import IS_SMALLEST, size
from knowngood.commands.site.command import write_site
from knowngood.domain.verdicts.known import Known
from knowngood.logging_setup import configure
from knowngood.store.knowledge.model import Recorded
from knowngood.store.knowledge.snapshot import read_shipped
from tests.commands.site.large import large_known


def run() -> None:
    configure("text", "warning")
    rows, columns = size((150, 25), (3, 3))
    if not IS_SMALLEST:
        _measure("shipped", read_shipped().knowledge.known)
    _measure(f"{rows} x {columns}", large_known(rows, columns))


def _measure(name: str, known: Known) -> None:
    with tempfile.TemporaryDirectory() as folder:
        wall, processor = time.perf_counter(), time.process_time()
        write_site(known, Recorded(), Path(folder), lambda _: None)
        wall, processor = time.perf_counter() - wall, time.process_time() - processor
        sizes = [path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()]
    print(f"{name}: {len(sizes)} files, {sum(sizes) / 1e6:.1f} MB, {processor:.0f} s of a processor, {wall:.0f} s")
