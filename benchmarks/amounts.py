"""How often amounts make an issue of nothing, and how often they miss one: the same computation on both sides (A/A),
and one with a tenth more memory, a copy or a recompilation more.

Each run is a process of its own, forked from one that has imported torch, as arms are; each comparison is judged by the
product's own rule from one control and two runs of the baseline. No false one in n comparisons bounds the rate at
3 / n (95 %). `KNOWNGOOD_BENCH_PYTHON` is an interpreter that has torch.
"""

import json
import os
import subprocess
import sys
from collections import Counter

from benchmarks.sizes import size
from knowngood.domain.issue import BASELINE, BOUNDS, CONTROL, Signature, SignatureKind
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.verdict import Verdict, derive_cell
from tests.make import HARDWARE, make_build, make_issue, make_judged

ALIKE, MORE = size((150, 50), (3, 2))

_RUNS = """
import json, os, random, sys
import torch, torch._dynamo
from torch.autograd.profiler import profile


def memory(chance, more):
    rows = chance.randrange(64, 256)
    with profile(profile_memory=True) as profiled:
        x = torch.ones(rows, rows)
        sizes = [chance.randrange(40, 120) << 20 for _ in range(chance.randrange(5, 9))]
        sizes += [sum(sizes) // 10 + (1 << 20)] if more else []
        buffers = [torch.empty(size, dtype=torch.uint8) for size in sizes]
        total = (x @ x).relu().sum()
        del buffers[::2]
        total += (x * 2).sum()
    held = peak = 0
    for event in sorted(profiled.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return {"amount": peak, "sum": float(total)}


def work(chance, more):
    def step(x, n):
        y = x.t().contiguous() if chance_of_copy else x.t()
        if breaks:
            torch._dynamo.graph_break()
        return (y * n).sum() + (y.clone().sum() if more == "copy" else y.sum())

    chance_of_copy, breaks, shapes = chance.random() < 0.5, chance.random() < 0.5, chance.randrange(2, 5)
    compiled = torch.compile(step, backend="eager", dynamic=False)
    with profile() as profiled:
        total = sum(compiled(torch.ones(at + 3, 4), 2) for at in range(shapes + (more == "recompilation")))
    copies = sum(event.name() in ("aten::clone", "aten::copy_") for event in profiled.kineto_results.events())
    counters = torch._dynamo.utils.counters
    graphs, broken = counters["stats"]["unique_graphs"], sum(counters["graph_break"].values())
    return {"amount": copies + graphs + broken, "sum": 1.0}


work(random.Random(0), "")  # what a first compilation imports
torch._dynamo.reset()
torch._dynamo.utils.counters.clear()
for line in sys.stdin:
    kind, seed, more = json.loads(line)
    here, there = os.pipe()
    if os.fork() == 0:
        found = {"memory": memory, "work": work}[kind](random.Random(seed), more)
        os.write(there, json.dumps(found).encode())
        os._exit(0)
    os.close(there)
    os.wait()
    with os.fdopen(here) as told:
        print(told.read(), flush=True)
"""

_KINDS = {"memory": SignatureKind.BIGGER, "work": SignatureKind.MORE_WORK}


def run() -> None:
    python = os.environ.get("KNOWNGOOD_BENCH_PYTHON", sys.executable)
    with subprocess.Popen([python, "-c", _RUNS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        for kind in _KINDS:
            for more, count in (("", ALIKE), (("tenth",) if kind == "memory" else ("copy", "recompilation"), MORE)):
                found = Counter(
                    _verdict(child, kind, seed, more[seed % len(more)] if more else "") for seed in range(count)
                )
                words = ", ".join(f"{n} {verdict}" for verdict, n in sorted(found.items()))
                print(f"{kind}, {' or '.join(more) if more else 'nothing'} more, {count} comparisons: {words}")
        if child.stdin:
            child.stdin.close()


def _verdict(child: "subprocess.Popen[str]", kind: str, seed: int, more: str) -> Verdict:
    def ran(arm: str, n: int, more: str) -> object:
        assert child.stdin
        assert child.stdout
        child.stdin.write(json.dumps([kind, seed, more]) + "\n")
        child.stdin.flush()
        observed = {name: str(value) for name, value in json.loads(child.stdout.readline()).items()}
        return make_judged(Outcome.PASS, arm, "default", n, observed=observed)

    signature = Signature(_KINDS[kind])
    issue = make_issue(signature=signature, observed={"amount": BOUNDS[signature.kind]}, silent=False)
    judged = [ran(CONTROL, 1, ""), ran(BASELINE, 1, more), ran(BASELINE, 2, more)]
    return derive_cell(issue, make_build(), HARDWARE, judged).verdict  # type: ignore[arg-type]
