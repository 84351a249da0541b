"""The documents in the app: all there, every link of them leads somewhere, and nothing in them is executed."""

import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.app.features.docs.library import ROOT, Document, address_of, files, library, render
from knowngood.app.features.docs.page import DocPage, DocsPage
from tests.web.asking import shown
from tests.web.html.test_markdown import HOSTILE, _Seen

# By name: to read them all takes longer than the tests of any one.
DOCUMENTS = sorted(
    {path.stem for path in (ROOT / "docs").glob("*.md")}
    | {"changelog", "contributing", "decisions", "glossary", "start", "writing-issues"}
)


def linked(html: str) -> set[str]:
    return {link.replace("&amp;", "&") for link in re.findall(r'(?:href|src)="([^"]*)"', html)}


def test_every_document_of_the_project_is_on_a_shelf(client: TestClient) -> None:
    page = shown(client, "/docs", DocsPage)
    names = [document.name for shelf in page.shelves for document in shelf.documents]
    assert sorted(names) == DOCUMENTS
    assert "/api/docs" in client.get("/docs").text


def test_a_document_is_told_on_its_shelf_by_whole_sentences() -> None:
    assert [document.name for document in library().values() if not document.lead.endswith((".", "?"))] == []


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_of_a_document_leads_somewhere(client: TestClient, name: str) -> None:
    response = client.get(f"/docs/{name}")
    assert response.status_code == 200
    body = str(render(library()[name]).body)
    for link in linked(body):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        assert link.startswith(("/", "#")), f"{link} is no address here: is the file served?"
        path, _, fragment = link.partition("#")
        target = client.get(path) if path else response
        assert target.status_code == 200, link
        if fragment:
            assert f'id="{fragment}"' in target.text, link


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_shown_whole_under_its_own_title(client: TestClient, name: str) -> None:
    page = shown(client, f"/docs/{name}", DocPage)
    text = client.get(f"/docs/{name}").text
    assert text.count("<h1") == 1
    assert f"<title>{page.document.title} · Known Good</title>" in text.replace("&#39;", "'")
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert [heading.id for heading in page.headings] == re.findall(r'<h2 id="([^"]+)"', text)


def test_a_document_is_there_as_markdown_and_as_json(client: TestClient) -> None:
    raw = client.get("/docs/glossary.md")
    assert raw.headers["content-type"] == "text/markdown; charset=utf-8"
    assert raw.text == (ROOT / "GLOSSARY.md").read_text()
    told = client.get("/api/v1/docs/glossary").json()
    assert (told["title"], told["markdown"]) == ("Glossary", raw.text)
    assert {"name", "title", "lead", "url"} == set(client.get("/api/v1/docs").json()["documents"][0])


def test_a_document_nobody_wrote_is_not_found_and_the_nearest_are_named(client: TestClient) -> None:
    response = client.get("/docs/glosary")
    assert response.status_code == 404
    assert 'href="/docs/glossary"' in response.text
    assert client.get("/docs/../pyproject.toml").status_code == 404
    assert client.get("/docs/%2e%2e/pyproject.toml").status_code == 404
    assert client.get("/api/v1/docs/nothing").status_code == 404


def test_pictures_and_examples_are_served(client: TestClient) -> None:
    assert client.get("/docs/knowngood.toml").headers["content-type"] == "text/plain; charset=utf-8"
    pictures = [name for name in files() if name.endswith((".png", ".webp"))]
    assert pictures
    for name in pictures:
        assert client.get(f"/docs/{name}").headers["content-type"].startswith("image/")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_document_comes_out_inert(text: str) -> None:
    seen = _Seen()
    seen.feed(render(Document("x", "docs/x.md", "x", "", f"# {text.splitlines()[0]}\n\n{text}\n\n## {text}\n")).body)
    assert not seen.tags & {"script", "iframe", "style", "svg"}
    assert not {name for name, _ in seen.attributes} & {"style", "onclick", "onerror", "onload", "onmouseover"}
    assert all((value or "").startswith(("https://", "#")) for name, value in seen.attributes if name == "href")


@pytest.mark.parametrize(
    ("target", "address"),
    [
        pytest.param("api.md", "/docs/api", id="beside it"),
        pytest.param("../GLOSSARY.md#Things", "/docs/glossary#Things", id="above, with a place"),
        pytest.param("knowngood.toml", "/docs/knowngood.toml", id="a file"),
        pytest.param("../repros/README.md", "/docs/writing-issues", id="in another folder"),
        pytest.param("#lists", "#lists", id="in itself"),
        pytest.param("https://example.org/a.md", "https://example.org/a.md", id="elsewhere"),
        pytest.param("/runs", "/runs", id="a page"),
        pytest.param("nothing.md", "nothing.md", id="nothing of ours"),
    ],
)
def test_links_of_the_repository_lead_to_pages(target: str, address: str) -> None:
    assert address_of(target, "docs/ci.md") == address


def test_headings_that_say_the_same_have_ids_of_their_own() -> None:
    rendered = render(Document("x", "docs/x.md", "x", "", "# x\n\n## The *same*, twice\n\n## The same, twice\n"))
    assert [heading.id for heading in rendered.headings] == ["the-same-twice", "the-same-twice-1"]


def test_the_wheel_carries_every_document_and_file() -> None:
    """Held against the build's configuration; an installed wheel was looked at by hand (2026-11-21)."""
    if Path(__file__).parents[3] != ROOT:
        pytest.skip("runs in a checkout")
    told: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
    carried: dict[str, str] = told["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert all(target == f"knowngood/app/documents/{source}" for source, target in carried.items())
    wanted = [document.path for document in library().values()]
    wanted += [path.relative_to(ROOT).as_posix() for path in files().values()]
    assert [path for path in wanted if not any(fnmatch(path, f"{one}*") for one in carried)] == []
