"""`python -m benchmarks [NAME ...]`: ratios measured side by side in one run, with their spread.

matrix     the matrix page of 100 issues x 40 builds, with 4,000 to 200,000 attempts of history
provision  a second environment of a cached torch, beside bare `uv pip sync` of the same lock
suite      the catalogue on one build, beside the arms' own time and beside a plain loop of venv + pip + python
"""

import sys

from benchmarks import matrix, provision, suite

KNOWN = {"matrix": matrix.run, "provision": provision.run, "suite": suite.run}

for name in sys.argv[1:] or KNOWN:
    if name not in KNOWN:
        sys.exit(f'no benchmark "{name}"; known: {", ".join(KNOWN)}')
    print(f"== {name}", flush=True)
    KNOWN[name]()
