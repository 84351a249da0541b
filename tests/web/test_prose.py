"""Markdown, source and logs: what people and processes wrote comes out as text, never as markup of theirs."""

from html.parser import HTMLParser

import pytest

from app.web.prose import markdown, marked, python

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "![x](https://elsewhere.example/pixel.png)",
    "<a href='https://x' onclick='y()'>x</a>",
    "```html\n<script>alert(1)</script>\n```",
    "```<script>\nx\n```",
    "[x](https://x.example 'a\" onmouseover=\"y')",
]


class _Seen(HTMLParser):
    """Every tag and attribute that a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= set(attrs)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_comes_out_inert(text: str) -> None:
    seen = _Seen()
    seen.feed(markdown(text))
    assert not seen.tags & {"script", "img", "iframe", "style", "svg"}
    assert {name for name, _ in seen.attributes} <= {"href", "title", "rel", "class"}
    assert all((value or "").startswith("https://") for name, value in seen.attributes if name == "href")


def test_markdown_keeps_what_a_workaround_needs() -> None:
    html = str(
        markdown("Use *this*:\n\n```python\nimport torch\n```\n\n- [why](https://example.org)\n\n| a |\n|---|\n| 1 |")
    )
    assert '<pre class="code"><code><span class="kn">import</span>' in html
    assert '<a href="https://example.org" rel="noopener noreferrer">why</a>' in html
    assert "<td>1</td>" in html


def test_an_unknown_language_of_a_fence_is_plain_text() -> None:
    assert "x &lt; y" in str(markdown("```no-such-language\nx < y\n```"))


def test_source_is_escaped() -> None:
    assert "&lt;b&gt;" in str(python("x = '<b>'"))


@pytest.mark.parametrize(
    ("text", "line", "html"),
    [
        pytest.param("a\n<b>\nc", "<b>", 'a\n<mark id="match" tabindex="-1">&lt;b&gt;</mark>\nc', id="one line"),
        pytest.param("x x", "x", '<mark id="match" tabindex="-1">x</mark> x', id="the first place only"),
        pytest.param("a & b", "", "a &amp; b", id="nothing to mark"),
        pytest.param("a", "b", "a", id="not in it"),
        pytest.param("", "b", "", id="empty"),
    ],
)
def test_the_telling_line_is_marked(text: str, line: str, html: str) -> None:
    assert str(marked(text, line)) == html
