"""Settings in the environment, and in files that it names."""

from pathlib import Path

import pytest

from knowngood.domain.errors import BadRequest
from knowngood.settings import read_settings


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KNOWNGOOD_DATABASE_URL", raising=False)


def test_a_setting_may_come_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://team:secret@db/knowngood\n")
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL_FILE", str(secret))
    (tmp_path / "port").write_text("8123\r\n")
    monkeypatch.setenv("KNOWNGOOD_PORT_FILE", str(tmp_path / "port"))
    found = read_settings()
    assert (found.database, found.port) == ("postgresql://team:secret@db/knowngood", 8123)


def test_a_setting_that_is_said_twice_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "port").write_text("8123")
    monkeypatch.setenv("KNOWNGOOD_PORT_FILE", str(tmp_path / "port"))
    monkeypatch.setenv("KNOWNGOOD_PORT", "8124")
    with pytest.raises(BadRequest, match="KNOWNGOOD_PORT and KNOWNGOOD_PORT_FILE are both set"):
        read_settings()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "No such file"), (b"\xff\xfe", "it is no UTF-8 text")],
)
def test_a_file_that_cannot_be_read_is_told_without_what_is_in_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    path = tmp_path / "database_url"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setenv("KNOWNGOOD_DATABASE_URL_FILE", str(path))
    with pytest.raises(BadRequest, match=f"KNOWNGOOD_DATABASE_URL_FILE={path} cannot be read: {sentence}"):
        read_settings()


def test_what_a_file_says_is_checked_as_ever(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "port").write_text("eighty")
    monkeypatch.setenv("KNOWNGOOD_PORT_FILE", str(tmp_path / "port"))
    with pytest.raises(BadRequest, match="KNOWNGOOD_PORT"):
        read_settings()
