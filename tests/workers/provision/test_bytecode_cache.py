"""The store of bytecode by itself. With real environments: test_provisioner.py."""

import os
from pathlib import Path

import pytest

from knowngood_workers.provision.bytecode_cache import BytecodeStore
from knowngood_workers.provision.site_packages import Distribution

TAG, KEY = "cpython-311", "0" * 32
BYTECODE = "torch/__pycache__/graph.cpython-311.pyc"


def compiled(site: Path) -> Distribution:
    """A wheel as it was just installed and compiled."""
    for path, text in (
        ("torch/graph.py", "1"),
        (BYTECODE, "of 1"),
        ("torch-1.dist-info/RECORD", "torch/graph.py,,1\n"),
    ):
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    return Distribution("torch", "1", site / "torch-1.dist-info")


@pytest.mark.parametrize("damage", ["a file gone", "its list gone", "no list", "a list of others", "a pipe for a list"])
@pytest.mark.timeout(60)
def test_a_store_that_was_damaged_forgets_and_keeps_anew(tmp_path: Path, damage: str) -> None:
    store = BytecodeStore(tmp_path / "store")
    store.keep(TAG, KEY, compiled(tmp_path / "first"), copies=False)
    listed = store.folder(TAG, KEY) / ".files"
    if damage == "a file gone":
        (store.folder(TAG, KEY) / BYTECODE).unlink()
    elif damage == "no list":
        listed.write_text("")
    elif damage == "a list of others":
        listed.write_text("bytes\nof nothing")
    else:
        listed.unlink()
    if damage == "a pipe for a list":
        os.mkfifo(listed)
    assert store.lay(TAG, KEY, tmp_path / "second", copies=False) is None
    size = store.keep(TAG, KEY, compiled(tmp_path / "second"), copies=False)
    assert store.lay(TAG, KEY, tmp_path / "third", copies=False) == size
    assert (tmp_path / "third" / BYTECODE).samefile(tmp_path / "second" / BYTECODE)
