"""The shelf of environments by itself. With real environments: test_provision.py."""

import os
import sys
from pathlib import Path

import pytest

from app.domain.issue import digest
from workers.shelf import Ready, Shelf
from workers.site_packages import seal, site_of

PYTHON, KEY, LOCK = "3.11", "0" * 32, 'lock-version = "1.0"\n'


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "environments", tmp_path / "cache")


def finish(shelf: Shelf) -> None:
    """An environment as its maker leaves it."""
    site = site_of(shelf.folder(KEY), PYTHON)
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "graph.py").write_text("1")
    (shelf.folder(KEY) / "pylock.toml").write_text(LOCK)
    seals = seal(site).of_environment
    shelf.finish(Ready(KEY, "torch-1", PYTHON, sys.executable, digest(LOCK), {}, {}, (), {}, 0, seals, 1.0))


@pytest.mark.parametrize("name", ["ready.json", "pylock.toml"])
@pytest.mark.parametrize("by", ["a pipe", "a file of terabytes", "a link to another", "another text", "nothing"])
@pytest.mark.timeout(60)
def test_an_environment_is_not_lent_where_what_we_read_of_it_was_replaced(shelf: Shelf, name: str, by: str) -> None:
    finish(shelf)
    lent = shelf.borrow(KEY)
    assert lent is not None
    lent[1].release()
    replaced = shelf.folder(KEY) / name
    replaced.rename(shelf.root / "same")
    if by == "a pipe":
        os.mkfifo(replaced)
    elif by == "a link to another":
        replaced.symlink_to(shelf.root / "same")
    elif by != "nothing":
        replaced.write_text("[" * 200_000)
    if by == "a file of terabytes":
        os.truncate(replaced, 1 << 42)
    assert shelf.borrow(KEY) is None
    with shelf.own(KEY, lambda: None):
        assert not shelf.folder(KEY).exists(), "its next maker begins anew"
