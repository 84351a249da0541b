"""Markdown, Python source and logs as safe HTML. Cached by text: words are rendered once, not once per reader."""

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
_ATTRIBUTES = {"a": {"href", "title"}, "span": {"class"}, "pre": {"class"}, "code": {"class"}}


def _fenced(text: str, language: str, _attributes: str) -> str:
    return f'<pre class="code"><code>{_spans(text, _lexer(language))}</code></pre>'


def _lexer(language: str) -> Lexer:
    try:
        return get_lexer_by_name(language or "text")
    except ClassNotFound:
        return get_lexer_by_name("text")


def _spans(text: str, lexer: Lexer) -> str:
    return highlight(text, lexer, _SPANS)


_MARKDOWN = MarkdownIt("commonmark", {"html": False, "highlight": _fenced}).enable("table")


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


@lru_cache(maxsize=512)
def python(source: str) -> Markup:
    return Markup(_spans(source, PythonLexer()))  # noqa: S704 - Pygments escapes what it does not mark


def marked(text: str, line: str) -> Markup:
    """`text` escaped, with the first place that holds `line` marked as `#match`; no mark where it holds it nowhere."""
    start = text.find(line) if line else -1
    if start < 0:
        return escape(text)
    end = start + len(line)
    return Markup('{}<mark id="match" tabindex="-1">{}</mark>{}').format(text[:start], text[start:end], text[end:])
