"""How often `knowngood costs` makes a difference of nothing, and how often it misses one: the same computation on both
sides (A/A), and one with 15 % more.

Each comparison is judged by the product's own rule, from processes as the command starts them; but those that fork them
serve five blocks of every comparison in turn, because importing torch would take most of the time. No false one in n
bounds the rate at 3 / n (95 %). What is found of the others depends on how far ratios of one machine lie apart: beside
it stands the share that the power formula promises at that spread. `KNOWNGOOD_BENCH_PYTHON` is an interpreter that has
torch; every two cores that this process may use are a lane.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import log
from pathlib import Path
from statistics import NormalDist, fmean, stdev
from tempfile import TemporaryDirectory

from benchmarks.sizes import size
from knowngood.domain.verdicts.paired_time import MOST, STEP, THRESHOLD, Block, Says, compared
from knowngood_workers.agent.arm_runner import Limits, RunLocation, scratch_folder
from knowngood_workers.agent.timer import Trio

ALIKE, MORE = size((300, 50), (2, 1))
_FROM_ONE = 5  # blocks

_SCRIPT = """
import functools, random
import torch


@functools.cache
def _inputs(seed):
    n = random.Random(seed).randrange(24, 256)
    return torch.ones(n, n) / n, torch.ones(n, 1)


def baseline(seed, n=20):
    weight, x = _inputs(seed)
    for _ in range(n):
        x = torch.tanh(weight @ x)


def more(seed):
    baseline(seed, 23)
"""

_Found = tuple[str, tuple[Block, ...]]


def run() -> None:
    cores = sorted(os.sched_getaffinity(0))
    lanes = [tuple(cores[at : at + 2]) for at in range(len(cores) % 2, len(cores), 2)]
    for arm, count in (("more", MORE), ("baseline", ALIKE)):
        with ProcessPoolExecutor(len(lanes)) as pool:
            shares = [pool.submit(_lane, lane, arm, range(at, count, len(lanes))) for at, lane in enumerate(lanes)]
            found = [each for share in shares for each in share.result()]
        told = ", ".join(f"{n} {says}" for says, n in sorted(Counter(says for says, _ in found).items()))
        print(f"{'15 % more' if arm == 'more' else 'nothing more'}, {count} comparisons in {len(lanes)} lanes: {told}")
        _print_by_spread(found, is_more=arm == "more")


def _lane(cores: Sequence[int], arm: str, seeds: Iterable[int]) -> list[_Found]:
    os.sched_setaffinity(0, cores)
    python = Path(os.environ.get("KNOWNGOOD_BENCH_PYTHON", sys.executable))
    place = RunLocation(python, (), Limits(memory_bytes=1 << 33))
    blocks: dict[int, list[Block]] = {seed: [] for seed in seeds}
    order = {"cores": cores, "device": "", "timeout_s": 60}
    undecided = list(blocks)
    while undecided:
        for _ in range(STEP // _FROM_ONE):
            numbered = enumerate(seed for seed in undecided for _ in range(_FROM_ONE))
            with (
                TemporaryDirectory() as root,
                scratch_folder(Path(root)) as scratch,
                Trio(
                    place,
                    scratch,
                    _SCRIPT,
                    [(id_, {}) for id_ in ("baseline", arm, "baseline")],
                    len(undecided) * _FROM_ONE,
                ) as trio,
            ):
                for number, seed in numbered:
                    core = cores[number % len(cores)]
                    made, _ = trio.block(number, "whole", params={"seed": seed}, core=core, **order)
                    blocks[seed].append((made[0], made[1], made[2]))
        undecided = [
            seed for seed in undecided if len(blocks[seed]) < MOST and compared(blocks[seed]).says is Says.CANNOT_SAY
        ]
    return [(compared(of_one).says.value, tuple(of_one)) for of_one in blocks.values()]


def _print_by_spread(found: Sequence[_Found], *, is_more: bool) -> None:
    spreads = [(stdev(log(one / (a * b) ** 0.5) for a, one, b in blocks), says) for says, blocks in found]
    for low, high in ((0, 0.02), (0.02, 0.05), (0.05, 0.1), (0.1, 10)):
        own = [(spread, says) for spread, says in spreads if low <= spread < high]
        if own:
            words = f"  ratios {low:.0%} to {high:.0%} apart (their standard deviation): {len(own)} comparisons"
            costs = sum(says == Says.COSTS for _, says in own)
            promised = fmean(_power(spread) for spread, _ in own)
            print(f"{words}, {costs} found{f', {promised:.0%} promised' if is_more else ''}")


def _power(spread: float) -> float:
    """The chance that the interval of the mean of `MOST` lies above the threshold, where the truth is 15 %."""
    error = spread / MOST**0.5
    return NormalDist().cdf((log(1.15) - log(1 + THRESHOLD)) / max(error, 1e-9) - 1.96)
