"""The real command line, in this process, over an installation of the test's own or over the filled notebook."""

import sys
from pathlib import Path

import pytest

from knowngood.app.main import main
from tests.commands.given import Call, Done
from tests.conftest import NewStore
from tests.given_toys import TOYS


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """`command("token", "list")`, with whatever settings stand in the environment."""

    def calling(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["knowngood", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return Done(int(ended.value.code or 0), told.out, told.err)

    return calling


@pytest.fixture
def call(command: Call, tmp_path: Path, new_setting: NewStore, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Over an installation of the test's own: the toys, of which nothing was measured."""
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KNOWNGOOD_CATALOGUE", str(TOYS))
    monkeypatch.setenv("KNOWNGOOD_SHIPPED", "false")
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", new_setting())
    return command


@pytest.fixture(scope="session")
def notebook_address(new_store: NewStore, filled_store: str) -> str:
    """Of the filled notebook; nothing here writes to it."""
    return new_store(filled_store)


@pytest.fixture
def call_notebook(command: Call, notebook_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Over the filled notebook, which everybody shares."""
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL", notebook_address)
    return command
