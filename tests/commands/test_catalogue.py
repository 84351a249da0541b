"""An issue that is still being written: where it is begun, and what goes on working beside it."""

import shutil
from pathlib import Path

import pytest

from knowngood.catalogue.loader import shipped_catalogue
from tests.commands.given import Call
from tests.given_toys import TOYS

DRAFT = ("new-issue", "ours-7", "--title", "Fails")


@pytest.fixture
def own(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A team's catalogue: one toy, whose signature is quickly found not to be slow, and the builds."""
    folder = tmp_path / "own"
    shutil.copytree(TOYS / "toy-aborts-1", folder / "toy-aborts-1")
    shutil.copy(TOYS / "builds.toml", folder)
    monkeypatch.setenv("KNOWNGOOD_CATALOGUE", str(folder))
    return folder


def test_an_issue_is_begun_in_the_teams_own_catalogue(call: Call, own: Path) -> None:
    assert call(*DRAFT).code == 0
    assert (own / "ours-7" / "issue.toml").read_text().startswith("#:schema ../issue.schema.json\n")
    assert (own / "issue.schema.json").exists()


def test_a_folder_that_is_named_goes_before_it(call: Call, own: Path, tmp_path: Path) -> None:
    call(*DRAFT, "--folder", str(tmp_path / "here"))
    assert (tmp_path / "here" / "ours-7").exists()
    assert not (own / "ours-7").exists()


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(("matrix",), marks=pytest.mark.soak),
        ("run", "--issues", "toy-aborts-1", "--builds", "all", "--dry-run"),
    ],
)
def test_a_draft_stops_nothing_but_is_spoken_of(call: Call, own: Path, asked: tuple[str, ...]) -> None:
    call(*DRAFT)
    shutil.copytree(TOYS / "toy-passes-1", own / "ours-8", ignore=shutil.ignore_patterns("issue.toml"))
    done = call(*asked)
    assert done.code == 0, done.err
    assert f"ours-8 is left out: `knowngood check {own}` says" in done.err
    assert f"ours-7 is left out: `knowngood check {own}` says what is still to be filled in" in done.err
    assert call("check", str(own)).code == 1


def test_what_is_wrong_elsewhere_still_stops(call: Call, own: Path) -> None:
    call(*DRAFT)
    (own / "toy-aborts-1" / "issue.toml").write_text("title = 1\n")
    assert call("matrix").code == 2


def test_a_row_is_checked_by_itself(call: Call, own: Path) -> None:
    call(*DRAFT)
    found = call("check", str(own / "ours-7"))
    assert found.code == 1
    assert "ours-7" in found.out
    assert "toy-aborts-1" not in found.out
    done = call("check", str(shipped_catalogue() / "pytorch-151290"))
    assert (done.code, done.out.partition(",")[0]) == (0, "1 issues and 0 builds")


def test_a_folder_without_anything_in_it_is_no_clean_catalogue(call: Call, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = call("check", str(tmp_path / "empty"))
    assert done.code == 1
    assert "no issue and no builds.toml stands here" in done.out


def test_an_id_names_its_project(call: Call, own: Path) -> None:
    assert own.exists()
    done = call("new-issue", "185382", "--title", "Fails")
    assert done.code == 2
    assert "write PROJECT-NUMBER in lower case, such as pytorch-151589" in done.err
