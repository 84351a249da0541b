"""Markdown, lines of prose, Python source and logs as safe HTML. Cached by text: words are rendered once, not once per
reader.
"""

import re
from functools import lru_cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.lexers.python import PythonLexer
from pygments.util import ClassNotFound

_SPANS: HtmlFormatter[str] = HtmlFormatter(nowrap=True)

_TAGS = {
    "p", "a", "em", "strong", "code", "pre", "span", "ul", "ol", "li", "blockquote", "br", "hr",
    "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "pre": {"class", "tabindex"}, "code": {"class"}}


def _fenced(text: str, language: str, _attributes: str) -> str:
    return f'<pre class="code" tabindex="0"><code>{coloured(text, language)}</code></pre>'


def coloured(text: str, language: str) -> str:
    """Source of any language as safe HTML; of one that nobody knows, plain."""
    return highlight(text, _lexer(language), _SPANS)


@lru_cache(maxsize=64)
def _lexer(language: str) -> Lexer:
    try:
        return get_lexer_by_name(language or "text")
    except ClassNotFound:
        return get_lexer_by_name("text")


_CODE = re.compile(r"`([^`\n]+)`")

_MARKDOWN = MarkdownIt("commonmark", {"html": False, "highlight": _fenced}).enable("table")


_FOLDERS = re.compile(r"[\w$@.+~-]*(?:/[\w@.+~-]+){2,}(?=/)")


def without_folders(line: str) -> str:
    """A line of a log with the paths in it cut to the names of their files: `…/kernel.cpp:23:23: error`."""
    return _FOLDERS.sub("\N{HORIZONTAL ELLIPSIS}", line)


@lru_cache(maxsize=2048)
def markdown(text: str) -> Markup:
    """Markdown of a catalogue as HTML. Raw HTML in it is shown as text; the sanitiser stands behind the renderer.

    Links open only http, https and mailto, and tell the target nothing of where the reader came from.
    """
    html = _MARKDOWN.render(text)
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return Markup(clean)  # noqa: S704 - sanitised on the line above


@lru_cache(maxsize=4096)
def coded(text: str) -> Markup:
    """One line of prose as HTML: what stands between backticks is code, all else is text. A lone backtick stays.

    For titles, trade-offs, claims and notes, which are no Markdown: an asterisk or a bracket in them is meant.
    """
    parts = _CODE.split(text)
    return Markup().join(
        Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def uncoded(text: str) -> str:
    """One line of prose without its backticks, for places without markup: a page's title, an accessible name."""
    return _CODE.sub(r"\1", text)


@lru_cache(maxsize=512)
def python(source: str) -> Markup:
    return Markup(highlight(source, PythonLexer(), _SPANS))  # noqa: S704 - Pygments escapes what it does not mark


def load_lexers() -> None:
    """Make the lexers of the languages that catalogues are full of: a lexer is made at its first use, and Python's
    takes 30 ms.
    """
    for language in ("python", "bash"):
        coloured("", language)


def marked(text: str, line: str) -> Markup:
    """`text` escaped, with the first place that holds `line` marked as `#match`; no mark where it holds it nowhere."""
    start = text.find(line) if line else -1
    if start < 0:
        return escape(text)
    end = start + len(line)
    return _lit(text, start, end)


_LINES_AROUND = 6
_EXCERPT_SIGNS = 4000


def excerpt(text: str, line: str) -> Markup:
    """The lines of `text` around the first that holds `line`, marked as above; empty where none does."""
    start = text.find(line) if line else -1
    if start < 0:
        return Markup()
    first, last = start, start + len(line) - 1
    for _ in range(_LINES_AROUND + 1):
        first = text.rfind("\n", 0, max(first, 0))
        last = text.find("\n", last + 1) if last >= 0 else last
    first = max(first + 1, start - _EXCERPT_SIGNS)
    last = min(last if last >= 0 else len(text), start + len(line) + _EXCERPT_SIGNS)
    return _lit(text[first:last].rstrip(), start - first, start - first + len(line))


def _lit(text: str, start: int, end: int) -> Markup:
    return Markup('{}<mark id="match" tabindex="-1">{}</mark>{}').format(text[:start], text[start:end], text[end:])
