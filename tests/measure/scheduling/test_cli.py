"""`knowngood next` and `run --next` on toys: what is watched goes first, and what was proposed is what is run."""

import json
import shutil

import pytest

from knowngood.store.engine import connect, reading
from knowngood.store.queries import load_runs
from tests.given_toys import TOYS, Installation, make_installation, toy_wheels

pytestmark = pytest.mark.timeout(600)

BUILDS = """\
[[build]]
torch = "0.0.1"
local = "mini"
origin = "default"
as_of = 2026-11-01

[[build]]
torch = "0.0.2"
local = "mini"
origin = "default"
as_of = 2026-11-01
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    folder = tmp_path_factory.mktemp("next")
    catalogue = folder / "catalogue"
    for issue in ("toy-fixed-1", "toy-passes-1", "toy-packages-1"):
        shutil.copytree(TOYS / issue, catalogue / issue)
    (catalogue / "builds.toml").write_text(BUILDS)
    made = make_installation(folder, toy_wheels(folder), catalogue=catalogue)
    assert made.command("watch", "add", "team", "--issues", "toy-packages-1").returncode == 0
    return made


@pytest.mark.system
def test_what_is_proposed_is_run_in_that_order_and_is_due_no_more(installation: Installation) -> None:
    told = installation.answer("next", "--offline", "--json")
    jobs = told["jobs"]
    assert [job["watched_by"] for job in jobs] == [["team"], ["team"], [], []]
    assert jobs[0]["reason"].startswith("watched by team: toy-packages-1 was never measured here")
    assert {cell["issue"] for job in jobs[2:] for cell in job["cells"]} == {"toy-fixed-1", "toy-passes-1"}
    assert told["minutes"] == pytest.approx(sum(job["minutes"] for job in jobs), abs=0.1)
    assert (told["unresolved"], told["download_bytes"]) == (4, 0), "nobody was asked"
    small = installation.answer("next", "--minutes", "1", "--offline", "--json")
    assert (small["jobs"][0], small["minutes"] <= 1 or len(small["jobs"]) == 1) == (jobs[0], True)
    ran = installation.command("run", "--next", "--json")
    assert ran.returncode == 0, ran.stderr
    cells = {(cell["issue"], cell["build"]): cell["verdict"] for cell in json.loads(ran.stdout)["cells"]}
    assert cells["toy-fixed-1", "torch-0.0.1+mini"] == "affected"
    assert cells["toy-fixed-1", "torch-0.0.2+mini"] == "not_affected"
    engine = connect(f"sqlite:///{installation.data / 'knowngood.sqlite3'}")
    with reading(engine) as s:
        (run,) = load_runs(s, 5)
    engine.dispose()
    assert [job.build for job in run.jobs] == [job["build"] for job in jobs], "the queue keeps the order"
    left = installation.answer("next", "--offline", "--json")["jobs"]
    assert {cell["why"] for job in left for cell in job["cells"]} <= {"untried"}
    assert {job["build"] for job in left} <= {"torch-0.0.1+mini"}, "only what may help where it fails is left"


def test_downloads_are_told_unless_nobody_is_to_be_asked(installation: Installation) -> None:
    shown = installation.command("next")
    assert shown.returncode == 0, shown.stderr
    assert "to download:" in shown.stdout or "nothing is due" in shown.stdout
