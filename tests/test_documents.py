"""Links and titles of the repository's documents, and the form of the decisions."""

import re
from importlib.metadata import requires
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "repros" / "README.md"]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_of_a_document_leads_somewhere(path: Path) -> None:
    astray = []
    for link in _links(path):
        name, _, heading = link.partition("#")
        target = (path.parent / name) if name else path
        if not target.exists() or (heading and heading not in _headings(target)):
            astray.append(link)
    assert astray == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_document_begins_with_its_title(path: Path) -> None:
    text = re.sub(r"\A---\n.*?\n---\n+", "", path.read_text("utf-8"), flags=re.DOTALL)  # the head of a skill
    assert text.startswith("# ")


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_its_four_parts_on_one_screen(path: Path) -> None:
    text = path.read_text("utf-8")
    assert re.match(rf"# {path.stem[:3]}\. .+\n\n\*\*Status:\*\* ", text)
    assert re.findall(r"^## .+", text, re.MULTILINE) == ["## Context", "## Decision", "## Consequences"]
    assert text.count("\n") <= 40


def test_the_decisions_are_few_and_listed_and_those_that_code_cites_are_there() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "app").rglob("*.py"))
    assert 0 < len(DECISIONS) <= 25
    assert sorted(_links(ROOT / "docs" / "decisions" / "README.md")) == [path.name for path in DECISIONS]
    assert set(re.findall(r"docs/decisions/([\w.-]+\w)", code)) <= {path.name for path in DECISIONS}


def test_the_readme_is_short_and_its_counts_hold() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    wanted, packages = ["knowngood"], set[str]()
    for name in wanted:
        asked = [Requirement(line) for line in requires(name) or ()]
        new = {one.name.lower() for one in asked if one.marker is None or one.marker.evaluate({"extra": ""})} - packages
        packages |= new
        wanted += sorted(new)
    assert text.count("\n") <= 100
    assert f"fetches {len(packages)} small packages" in text
    assert f"a catalogue of {len(list((ROOT / 'repros').glob('*/issue.toml')))} upstream issues" in text


def test_the_glossary_is_short_and_has_each_word_once() -> None:
    words = re.findall(r"^\| (.+?) \| ", (ROOT / "GLOSSARY.md").read_text("utf-8"), re.MULTILINE)[2:]
    assert 0 < len(words) == len(set(words)) <= 40


def _links(path: Path) -> list[str]:
    """Those within the repository."""
    inline = (token.children or [] for token in MarkdownIt().enable("table").parse(path.read_text("utf-8")))
    told = (str(one.attrs.get("href", one.attrs.get("src", ""))) for children in inline for one in children)
    return [link for link in told if link and not re.match(r"[a-z]+:", link)]


def _headings(path: Path) -> set[str]:
    """The ids that GitHub gives them."""
    tokens = MarkdownIt().parse(path.read_text("utf-8"))
    titles = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
