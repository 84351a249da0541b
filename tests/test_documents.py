"""Every link of a document of the repository leads to a file, and to a heading that is in it."""

import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "repros" / "README.md"]


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
    assert path.read_text("utf-8").startswith("# ")


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
