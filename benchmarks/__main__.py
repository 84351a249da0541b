"""`python -m benchmarks [NAME ...]`: ratios measured side by side in one run, with their spread.

matrix     the matrix page of 100 issues x 40 builds, with 4,000 to 200,000 attempts of history
browser    the matrix page of 500 issues x 60 builds in a real Chromium: interactive, complete, bytes
gate       the gate beside a bare route of the same size, over 1,000 issues x 200 builds; what a result and a start cost
provision  a second environment of a cached torch, beside bare `uv pip sync` of the same lock
suite      the catalogue on one build, beside the arms' own time and beside a plain loop of venv + pip + python
"""

import sys

from benchmarks import browser, gate, matrix, provision, suite

KNOWN = {"browser": browser.run, "gate": gate.run, "matrix": matrix.run, "provision": provision.run, "suite": suite.run}

for name in sys.argv[1:] or KNOWN:
    if name not in KNOWN:
        sys.exit(f'no benchmark "{name}"; known: {", ".join(KNOWN)}')
    print(f"== {name}", flush=True)
    KNOWN[name]()
