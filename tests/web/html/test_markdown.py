"""Markdown, source and logs: what people and processes wrote comes out as text, never as markup of theirs."""

from html.parser import HTMLParser

import pytest

from knowngood.web.html.markdown import coded, excerpt, markdown, marked, python, uncoded

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
    assert {name for name, _ in seen.attributes} <= {"href", "title", "rel", "class", "tabindex"}
    assert all((value or "").startswith("https://") for name, value in seen.attributes if name == "href")


def test_markdown_keeps_what_a_workaround_needs() -> None:
    html = str(
        markdown("Use *this*:\n\n```python\nimport torch\n```\n\n- [why](https://example.org)\n\n| a |\n|---|\n| 1 |")
    )
    assert '<pre class="code" tabindex="0"><code><span class="kn">import</span>' in html
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


@pytest.mark.parametrize(
    ("text", "html", "plain"),
    [
        pytest.param("use `view`", "use <code>view</code>", "use view", id="code"),
        pytest.param("`a` and `b`", "<code>a</code> and <code>b</code>", "a and b", id="twice"),
        pytest.param("`<b>` <i>", "<code>&lt;b&gt;</code> &lt;i&gt;", "<b> <i>", id="markup is text"),
        pytest.param("a ` b", "a ` b", "a ` b", id="a lone backtick"),
        pytest.param("`` x", "`` x", "`` x", id="nothing between"),
        pytest.param("`a\nb`", "`a\nb`", "`a\nb`", id="never over lines"),
        pytest.param("*a* [b](c)", "*a* [b](c)", "*a* [b](c)", id="no Markdown"),
        pytest.param("", "", "", id="empty"),
    ],
)
def test_backticks_in_a_line_of_prose_are_code(text: str, html: str, plain: str) -> None:
    assert str(coded(text)) == html
    assert uncoded(text) == plain


@pytest.mark.parametrize("text", [*HOSTILE, *(f"`{text}`" for text in HOSTILE)])
def test_a_hostile_line_of_prose_comes_out_inert(text: str) -> None:
    seen = _Seen()
    seen.feed(coded(text))
    assert seen.tags <= {"code"}
    assert seen.attributes == set()


def test_an_excerpt_has_six_lines_on_either_side() -> None:
    lines = [f"line {n}" for n in range(20)]
    for at, shown in ((10, lines[4:17]), (0, lines[:7]), (19, lines[13:])):
        html = str(excerpt("\n".join(lines), f"line {at}" if at != 1 else "line 1"))
        assert html.replace('<mark id="match" tabindex="-1">', "").replace("</mark>", "").split("\n") == shown
    assert excerpt("a", "b") == excerpt("a", "") == ""


def test_an_excerpt_of_endless_lines_is_cut() -> None:
    assert len(excerpt("x" * 50_000 + "needle" + "y" * 50_000, "needle")) < 10_000
