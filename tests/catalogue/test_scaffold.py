"""A new issue's folder: refused while anything is left to fill in, sound once it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from knowngood.catalogue.json_schema import published
from knowngood.catalogue.loader import CatalogueProblems, read_catalogue
from knowngood.catalogue.scaffold import new_issue
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import SignatureKind


def fill_in(text: str) -> str:
    """Do as an author does, in short: text for each mark in a text, and the mark of a comment taken away."""
    text = re.sub(r"  # FILL IN:.*", "", text)
    return re.sub(r"FILL[ -]IN[^\"'\n]*", "words-of-the-author-" * 5, text)


@pytest.mark.parametrize("id_", ["pytorch-151589", "ours-7", "deepmd-kit-wheel"])
@pytest.mark.parametrize("title", ["Fails", 'A "quoted" \\ title of $100 and 50%', "张量结果错误"])
def test_a_new_issue_is_refused_at_each_mark_and_nowhere_else(tmp_path: Path, id_: str, title: str) -> None:
    place = new_issue(tmp_path, id_, title)
    marks = {
        (name, number)
        for name in ("issue.toml", "repro.py")
        for number, line in enumerate((place / name).read_text().splitlines(), 1)
        if re.search(r"FILL.IN", line)
    }

    with pytest.raises(CatalogueProblems) as caught:
        read_catalogue([tmp_path])

    assert {(problem.file.name, problem.line) for problem in caught.value.problems} == marks
    assert all("is still to be filled in: " in problem.message for problem in caught.value.problems)


@pytest.mark.parametrize("kind", SignatureKind)
def test_a_scaffold_for_one_kind_is_sound_once_it_is_filled_in(tmp_path: Path, kind: SignatureKind) -> None:
    for file in new_issue(tmp_path, "ours-7", "Fails", kind).iterdir():
        file.write_text(fill_in(file.read_text()))

    (issue,) = read_catalogue([tmp_path]).issues

    assert issue.signature.kind is kind
    assert issue.silent is (kind is SignatureKind.WRONG_RESULT)


@pytest.mark.parametrize("title", ["Fails", 'A "quoted" \\ title of $100 and 50%', "张量结果错误"])
def test_a_new_issue_is_sound_once_it_is_filled_in(tmp_path: Path, title: str) -> None:
    place = new_issue(tmp_path, "ours-7", title)
    for file in place.iterdir():
        file.write_text(fill_in(file.read_text()))

    (issue,) = read_catalogue([tmp_path]).issues

    assert (issue.id, issue.title) == ("ours-7", title)


def test_a_known_project_leads_to_its_thread(tmp_path: Path) -> None:
    place = new_issue(tmp_path, "deepmd-kit-3910", "Fails")

    assert 'url = "https://github.com/deepmodeling/deepmd-kit/issues/3910"' in (place / "issue.toml").read_text()


def test_editors_are_told_of_the_schema_which_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "issue.schema.json").write_text("that of an older release")
    first = (new_issue(tmp_path, "ours-7", "Fails") / "issue.toml").read_text().splitlines()[0]

    assert first == "#:schema ../issue.schema.json"
    assert (tmp_path / "issue.schema.json").read_text() == published()["issue.schema.json"]


def test_what_runs_a_script_by_itself_is_left_beside_it(tmp_path: Path) -> None:
    script = new_issue(tmp_path, "ours-7", "Fails") / "repro.py"
    script.write_text(re.sub(r"^import torch$", "", script.read_text(), flags=re.MULTILINE))

    listed = subprocess.run([sys.executable, script, "--list"], capture_output=True, text=True, check=True).stdout

    assert listed.split() == ["control", "baseline", "aot_eager"]


@pytest.mark.parametrize(
    ("id_", "title", "words"),
    [
        ("PyTorch 1", "Fails", '"PyTorch 1" is no id'),
        ("../x-1", "Fails", '"../x-1" is no id'),
        ("ours-7", "", "one line of 1 to 120"),
        ("ours-7", "a\nb", "one line of 1 to 120"),
        ("ours-7", "a" * 121, "one line of 1 to 120"),
    ],
)
def test_what_cannot_be_an_issue_is_not_begun(tmp_path: Path, id_: str, title: str, words: str) -> None:
    with pytest.raises(BadRequest, match=re.escape(words)):
        new_issue(tmp_path, id_, title)

    assert not list(tmp_path.iterdir())


def test_an_issue_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    place = new_issue(tmp_path, "ours-7", "Fails")
    (place / "repro.py").write_text("mine")

    with pytest.raises(BadRequest, match="is there already"):
        new_issue(tmp_path, "ours-7", "Fails")

    assert (place / "repro.py").read_text() == "mine"
