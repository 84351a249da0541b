"""The installation as it is, watched in a browser: real environments, real arms, and cells that fill by themselves."""

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from knowngood.web.urls import MATRIX
from tests.fixtures.databases import NewStore
from tests.given_toys import ROOT, TOYS, Installation, make_installation, toy_wheels
from tests.web.browsing import reading_with

playwright = pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, expect  # noqa: E402 - after the skip

pytestmark = [pytest.mark.system, pytest.mark.browser, pytest.mark.timeout(600)]

BUILD = "torch-0.0.1+mini"
NAMES = ("toy-passes-1", "toy-fixed-1", "toy-crashes-1")
PATIENCE_S = 100.0
PATIENCE_MS = 1000 * PATIENCE_S


@pytest.fixture
def installation(tmp_path: Path, new_setting: NewStore) -> Installation:
    small = tmp_path / "catalogue"
    small.mkdir()
    for name in ("builds.toml", *NAMES):
        (small / name).symlink_to(TOYS / name)
    here = make_installation(tmp_path, toy_wheels(tmp_path), catalogue=small, store=new_setting())
    assert here.command("migrate").returncode == 0
    return here


@contextmanager
def served(here: Installation) -> Iterator[str]:
    command = [sys.executable, "-m", "knowngood", "serve", "--port", "0"]
    server = subprocess.Popen(command, env=dict(here.environment), cwd=ROOT, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        found = re.search(r"http://127\.0\.0\.1:\d+", server.stderr.readline())
        assert found
        yield found[0]
    finally:
        server.terminate()
        server.communicate(timeout=PATIENCE_S)


@contextmanager
def measuring(here: Installation) -> Iterator["subprocess.Popen[bytes]"]:
    """A run of all three toys, as somebody types it."""
    command = [sys.executable, "-m", "knowngood", "run", "--builds", BUILD, "--issues", ",".join(NAMES)]
    run = subprocess.Popen(
        command, env=dict(here.environment), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield run
    finally:
        run.terminate()
        run.wait(60)


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without scripts"])
def test_a_real_run_fills_cells_while_somebody_looks(
    browser: Browser,
    installation: Installation,
    *,
    scripts: bool,
) -> None:
    with served(installation) as site, reading_with(browser, java_script_enabled=scripts) as context:
        context.set_default_navigation_timeout(PATIENCE_MS)  # environments are made beside it
        run, matrix = context.new_page(), context.new_page()
        with measuring(installation) as process:
            run.goto(f"{site}/runs")
            until = time.monotonic() + PATIENCE_S
            while not run.locator("main table a").count() and time.monotonic() < until:
                run.wait_for_timeout(500)
                run.goto(f"{site}/runs")
            run.locator("main table a").first.click()
            expect(run).to_have_url(re.compile(r"/runs/[0-9a-f]{12}$"))
            matrix.goto(f"{site}{MATRIX}?columns=all")
            if scripts:
                for page in (run, matrix):
                    page.evaluate("window.neverLoadedAgain = true")
            expect(run.locator("h1")).to_contain_text(
                re.compile(r"done\s+·\s+(\d+) of \1 attempts"), timeout=PATIENCE_MS
            )
            assert process.wait(PATIENCE_S) == 0
        if not scripts:
            matrix.reload()
        for sign, name in (("passes", "toy-passes-1"), ("fails", "toy-fixed-1")):
            cell = matrix.get_by_role("link", name=re.compile(f"^{sign}.*{name} on {re.escape(BUILD)}"))
            expect(cell.first).to_be_visible(timeout=PATIENCE_MS)
        expect(run.locator(".results")).to_contain_text("toy-passes-1 · baseline")
        if scripts:
            assert all(page.evaluate("window.neverLoadedAgain") for page in (run, matrix))
        matrix.goto(f"{site}/workers")
        expect(matrix.locator("main")).to_contain_text("1 of 1 machines measured something in the last 7 days.")
        matrix.goto(f"{site}/changes")  # all of it was measured for the first time
        expect(matrix.locator("main")).to_contain_text("No verdict has changed yet.")
