"""`python -m benchmarks [NAME ...]`: ratios measured side by side in one run, with their spread.

matrix     the matrix page of 100 issues x 40 builds, with 4,000 to 200,000 attempts of history
browser    the matrix page of 500 issues x 60 builds in a real Chromium: interactive, complete, bytes
gate       the gate beside a bare route of the same size, over 1,000 issues x 200 builds; what a result and a start cost
commands   what --help, the gate, matrix, upgrade, compare and hygiene take of the processor, beside another revision
fleet      jobs a minute with 1, 2, 4 and 8 workers on arms that sleep; what the dispatcher takes for an arm
history    pages and the gate over 10,000 attempts beside 1,000,000 behind the same cells
amounts    how often amounts make an issue of nothing, and miss one: A/A and injected, in real processes
timing     how often `costs` makes a difference of nothing, and misses one: A/A and injected, in real processes
ingest     results a second from bundles, beside the same rows written bare
scheduling which of 100,000 queued jobs is next, beside 3,000 of them and beside a bare commit
provision  a second environment of a cached torch, beside bare `uv pip sync` of the same lock
reading    environments through the door for foreign text, beside the same readers called bare
site       the pages as files, of what is shipped and of 150 x 25 cells: time, bytes
pages      every page of the shipped evidence in a real Chromium: first byte, bytes, layout shift, interaction
suite      the catalogue on one build, beside the arms' own time and beside a plain loop of venv + pip + python
"""

import sys

from benchmarks import (
    amounts,
    browser,
    commands,
    fleet,
    gate,
    history,
    ingest,
    matrix,
    pages,
    provision,
    reading,
    scheduling,
    site,
    suite,
    timing,
)

KNOWN = {
    "amounts": amounts.run,
    "browser": browser.run,
    "commands": commands.run,
    "fleet": fleet.run,
    "gate": gate.run,
    "history": history.run,
    "ingest": ingest.run,
    "matrix": matrix.run,
    "pages": pages.run,
    "provision": provision.run,
    "reading": reading.run,
    "scheduling": scheduling.run,
    "site": site.run,
    "suite": suite.run,
    "timing": timing.run,
}

for name in sys.argv[1:] or KNOWN:
    if name not in KNOWN:
        sys.exit(f'no benchmark "{name}"; known: {", ".join(KNOWN)}')
    print(f"== {name}", flush=True)
    KNOWN[name]()
