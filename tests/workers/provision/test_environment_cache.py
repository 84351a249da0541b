"""The cache of environments by itself. With real environments: test_provisioner.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from knowngood.domain.issue import digest
from knowngood_workers.provision.environment_cache import EnvironmentCache, EnvironmentRecord
from knowngood_workers.provision.site_packages import seal, site_of
from tests.waiting import eventually

PYTHON, KEY, LOCK = "3.11", "0" * 32, 'lock-version = "1.0"\n'

TAKER = """
import sys, time
from pathlib import Path
from knowngood_workers.provision.environment_cache import EnvironmentCache
cache = EnvironmentCache(Path(sys.argv[1]), Path(sys.argv[2]))
cache.lease_new("once")
cache.folder("once").mkdir()
print("taken", flush=True)
time.sleep(600)
"""


@pytest.fixture
def cache(tmp_path: Path) -> EnvironmentCache:
    return EnvironmentCache(tmp_path / "environments", tmp_path / "cache")


def finish(cache: EnvironmentCache) -> None:
    """An environment as its maker leaves it."""
    site = site_of(cache.folder(KEY), PYTHON)
    (site / "torch").mkdir(parents=True)
    (site / "torch" / "graph.py").write_text("1")
    (cache.folder(KEY) / "pylock.toml").write_text(LOCK)
    seals = seal(site).of_environment
    cache.finish(EnvironmentRecord(KEY, "torch-1", PYTHON, sys.executable, digest(LOCK), {}, {}, (), {}, 0, seals, 1.0))


@pytest.mark.parametrize("name", ["ready.json", "pylock.toml"])
@pytest.mark.parametrize("by", ["a pipe", "a file of terabytes", "a link to another", "another text", "nothing"])
@pytest.mark.timeout(60)
def test_an_environment_is_not_lent_where_what_we_read_of_it_was_replaced(
    cache: EnvironmentCache, name: str, by: str
) -> None:
    finish(cache)
    leased = cache.lease(KEY)
    assert leased is not None
    leased[1].release()
    replaced = cache.folder(KEY) / name
    replaced.rename(cache.root / "same")
    if by == "a pipe":
        os.mkfifo(replaced)
    elif by == "a link to another":
        replaced.symlink_to(cache.root / "same")
    elif by != "nothing":
        replaced.write_text("[" * 200_000)
    if by == "a file of terabytes":
        os.truncate(replaced, 1 << 42)
    assert cache.lease(KEY) is None
    with cache.exclusive(KEY, lambda: None):
        assert not cache.folder(KEY).exists(), "its next maker begins anew"


def test_what_was_taken_during_a_sweep_is_swept_once_its_holder_is_dead(cache: EnvironmentCache) -> None:
    sweeping = cache.lease_new("once")
    command = [sys.executable, "-c", TAKER, str(cache.root), str(cache.cache)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as taker:
        assert taker.stdout is not None
        try:
            opened = Path(f"/proc/{taker.pid}/fd")
            assert eventually(lambda: cache.root / "once.once" in {one.resolve() for one in opened.iterdir()})
            sweeping.release()  # as a sweep does: the file goes, then its lock
            assert taker.stdout.readline() == b"taken\n"
            cache.trim(is_enough=lambda _: True)
            assert cache.folder("once").exists(), "somebody holds it"
        finally:
            taker.kill()
    cache.trim(is_enough=lambda _: True)
    assert not cache.folder("once").exists()
