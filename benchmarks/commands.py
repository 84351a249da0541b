"""Processor time of commands, before and in their answers, beside another revision over the same store.

KNOWNGOOD_BENCH_OLD is the `knowngood` of the other revision (the path of its program); without it this one stands
alone. KNOWNGOOD_BENCH_STORE is a data folder with evidence; without it the shipped one is imported, in minutes.
User and system time of the process, by turns, with bytecode that is there; rounds are few, so that the least counts.
"""

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.sizes import size
from knowngood.catalogue_digest import shipped_evidence
from knowngood.main import cli

ROUNDS = int(os.environ.get("KNOWNGOOD_BENCH_ROUNDS", size("5", "1")))
OLD = os.environ.get("KNOWNGOOD_BENCH_OLD", "")
STORE = os.environ.get("KNOWNGOOD_BENCH_STORE", "")

HELP_MS = 150
ANSWERS = (
    ("gate", "--build", "torch-2.6.0+cu124", "--issues", "all"),
    ("matrix",),
    ("upgrade", "--from", "2.5.1"),
    ("compare", "2.5.1", "2.6.0"),
    ("hygiene",),
)


def run() -> None:
    ours = str(Path(sys.executable).with_name("knowngood"))
    with tempfile.TemporaryDirectory() as folder:
        folders = stores(Path(folder), ours)
        names = cli.list_commands(click.Context(cli))[: size(None, 3)]
        helps = {name: _cpu_ms(ours, [*name.split(), "--help"], folders[0]) for name in ["", *names]}
        slowest = max(helps, key=lambda name: min(helps[name]))
        print(f"knowngood --help: {_told(helps[''])}")
        print(f"COMMAND --help, the slowest of {len(names)}: {slowest or 'knowngood'}: {_told(helps[slowest])}")
        print(
            f"over {HELP_MS} ms: {[name for name, taken in helps.items() if min(taken) > HELP_MS] or 'none'}",
            flush=True,
        )
        for asked in ANSWERS:
            print(f"{' '.join(asked)}: {_beside(ours, asked, folders)}", flush=True)


def stores(folder: Path, ours: str) -> tuple[Path, Path]:
    """For each revision its own: the older one takes in its own catalogue, which would change that of the other."""
    places = (folder / "new", folder / "old")
    for place, program in zip(places, (ours, OLD), strict=True):
        if program and STORE:
            shutil.copytree(STORE, place)
        elif program:
            evidence = list(map(str, sorted(shipped_evidence(), key=lambda one: one.stat().st_size)[: size(None, 1)]))
            _run(program, ["import", *evidence], place)
        if program:
            _run(program, ["migrate"], place)
            _run(program, ["matrix"], place)
    return places


def _beside(ours: str, asked: Sequence[str], folders: tuple[Path, Path]) -> str:
    new, old = [], []
    for _ in range(ROUNDS):
        new += _cpu_ms(ours, asked, folders[0], 1)
        old += _cpu_ms(OLD, asked, folders[1], 1) if OLD else []
    if not old:
        return _told(new)
    ratios = sorted(one / other for one, other in zip(new, old, strict=True))
    return f"{_told(new)}, before {_told(old)}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"


def _told(taken: Sequence[float]) -> str:
    return f"{min(taken):.0f} ms of CPU (median {statistics.median(taken):.0f})"


def _cpu_ms(program: str, arguments: Sequence[str], store: Path, rounds: int = ROUNDS) -> list[float]:
    taken = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(program, arguments, store)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000)
    return taken


def _run(program: str, arguments: Sequence[str], store: Path) -> None:
    settings = {"PATH": os.environ["PATH"], "KNOWNGOOD_DATA_DIR": str(store)}
    done = subprocess.run([program, *arguments], env=settings, capture_output=True, check=False)
    assert done.returncode in {0, 1}, done.stderr.decode()
