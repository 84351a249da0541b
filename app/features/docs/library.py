"""The documents that readers need beside the pages: found, made safe HTML, their links led to where they are served.

They are the Markdown files of the repository; the wheel carries the same files under `app/documents`.
"""

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from knowngood.app.web.html.markdown import coloured

_CARRIED = Path(__file__).parents[2] / "documents"
ROOT = _CARRIED if _CARRIED.is_dir() else Path(__file__).parents[4]

FOLDER = "/docs"

# Files that are not called as readers would ask for them; a file of docs/ is served under its own name.
_NAMES = {
    "README.md": "start",
    "GLOSSARY.md": "glossary",
    "DECISIONS.md": "decisions",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "repros/README.md": "writing-issues",
}
SHELF_WORDS = {"use": "Use it", "understand": "Understand it", "add": "Add to it"}
_SHELVES = {
    "use": (
        "start",
        "search",
        "query",
        "my-build",
        "upgrade",
        "charts",
        "bisect",
        "scheduling",
        "api",
        "ci",
        "library",
        "access",
        "results",
        "site",
        "fleet",
        "slurm",
    ),
    "understand": ("history", "architecture", "glossary", "decisions", "threat-model", "changelog"),
    "add": ("writing-a-row", "writing-issues", "contributing"),
}
_OTHERS = "use"  # a new file of docs/ is about use until somebody says otherwise

MEDIA = {
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".toml": "text/plain; charset=utf-8",
    ".webp": "image/webp",
    ".yaml": "text/plain; charset=utf-8",
    ".conf": "text/plain; charset=utf-8",
    ".yml": "text/plain; charset=utf-8",
}
_OTHER_FILES = (
    "LICENSE",
    "repros/issue.schema.json",
    "repros/builds.schema.json",
)

_TAGS = {
    "p", "a", "em", "strong", "code", "pre", "span", "div", "ul", "ol", "li", "blockquote", "br", "hr", "img",
    "h2", "h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td",
}  # fmt: skip
_ATTRIBUTES = {
    "a": {"href", "title"},
    "img": {"src", "alt"},
    "pre": {"class", "tabindex"},
    "div": {"class", "role", "aria-label", "tabindex"},
    "ol": {"start"},
    "table": {"class"},
    "th": {"class"},
    "td": {"class"},
    **{tag: {"class"} for tag in ("span", "code")},
    **{f"h{level}": {"id"} for level in range(2, 7)},
}


@dataclass(frozen=True)
class Document:
    """`path` is where it stands in the repository; `lead` is its first paragraph as plain text."""

    name: str
    path: str
    title: str
    lead: str
    text: str

    @property
    def address(self) -> str:
        return f"{FOLDER}/{self.name}"


@dataclass(frozen=True)
class Heading:
    id: str
    text: str


@dataclass(frozen=True)
class Rendered:
    """`headings` are those of the second level, for the list beside the text."""

    body: Markup
    headings: tuple[Heading, ...]


@dataclass(frozen=True)
class DocumentGroup:
    title: str
    documents: tuple[Document, ...]


@cache
def library() -> Mapping[str, Document]:
    """All documents by name, read once: they change with a release, as the program does."""
    paths = [*_NAMES, *(f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md")))]
    read = (_read(path) for path in paths)
    return {document.name: document for document in read}


@cache
def files() -> Mapping[str, Path]:
    """Files that documents show or link to and that are no documents, by the part of its address after the folder."""
    beside = (path for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in MEDIA)
    found = {path.relative_to(ROOT / "docs").as_posix(): path for path in beside}
    return found | {posixpath.basename(path): ROOT / path for path in _OTHER_FILES}


def shelves() -> tuple[DocumentGroup, ...]:
    known = library()
    placed = {name for names in _SHELVES.values() for name in names}
    others = [name for name in sorted(known) if name not in placed]
    return tuple(
        DocumentGroup(
            SHELF_WORDS[shelf],
            tuple(known[name] for name in [*names, *(others if shelf == _OTHERS else ())] if name in known),
        )
        for shelf, names in _SHELVES.items()
    )


@lru_cache(maxsize=64)
def render(document: Document) -> Rendered:
    """The text below its title. Raw HTML in it is shown as text; the sanitiser stands behind the renderer."""
    tokens = _MARKDOWN.parse(document.text)[_TITLE_TOKENS:]
    _name_headings(tokens)
    _lead_links(tokens, document.path)
    html = nh3.clean(
        _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {}),
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer",
    )
    return Rendered(Markup(html), tuple(_headings(tokens, "h2")))  # noqa: S704 - sanitised on the line above


def address_of(target: str, source: str) -> str:
    """Where a link of the document at `source` leads to here; `target` as it is where it names nothing of ours."""
    path, mark, fragment = target.partition("#")
    if not path or path.startswith("/") or re.match(r"[a-z]+:", path):
        return target
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    return f"{_addresses().get(meant, target.partition('#')[0])}{mark}{fragment}"


def source_of(heading: str) -> str:
    """The id of a heading, as GitHub makes it, so that a link into a document works there and here."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


_TITLE_TOKENS = 3  # opening, text and closing of the first heading


def _read(path: str) -> Document:
    text = (ROOT / path).read_text(encoding="utf-8")
    tokens = _MARKDOWN.parse(text)
    if [token.tag for token in tokens[:_TITLE_TOKENS]] != ["h1", "", "h1"]:
        raise ValueError(f"{path} does not begin with its title; write `# What it is about` on its first line")
    paragraph = next((tokens[at + 1] for at, one in enumerate(tokens) if one.type == "paragraph_open"), None)
    lead = _plain(paragraph) if paragraph else ""
    return Document(_NAMES.get(path) or Path(path).stem, path, _plain(tokens[1]), lead, text)


@cache
def _addresses() -> Mapping[str, str]:
    """By path in the repository."""
    served = {path.relative_to(ROOT).as_posix(): f"{FOLDER}/{name}" for name, path in files().items()}
    return served | {document.path: document.address for document in library().values()}


def _plain(inline: Token) -> str:
    """The text of a line as a reader sees it, without its marks."""
    said = ("\n" if one.type == "softbreak" else one.content for one in inline.children or ())
    return " ".join("".join(said).split())


def _name_headings(tokens: Sequence[Token]) -> None:
    """An id for each; a duplicate heading gets a number, as on GitHub. No second h1."""
    seen: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type in {"heading_open", "heading_close"} and token.tag == "h1":
            token.tag = "h2"
        if token.type == "heading_open":
            id_ = source_of(_plain(tokens[at + 1]))
            count = seen[id_] = seen.get(id_, -1) + 1
            token.attrSet("id", f"{id_}-{count}" if count else id_)


def _headings(tokens: Sequence[Token], tag: str) -> Iterable[Heading]:
    for at, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == tag:
            yield Heading(str(token.attrs["id"]), _plain(tokens[at + 1]))


def _lead_links(tokens: Iterable[Token], source: str) -> None:
    for token in tokens:
        for name in ("href", "src"):
            if name in token.attrs:
                token.attrSet(name, address_of(str(token.attrs[name]), source))
        _lead_links(token.children or (), source)


class _Renderer(RendererHTML):
    """Tables and code that are too wide scroll by themselves, and by keys; columns align by class, not by style."""

    def table_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        number = sum(token.type == "table_open" for token in tokens[: at + 1])
        return f'<div class="scroller" role="region" aria-label="Table {number}" tabindex="0"><table class="list">\n'

    def table_close(self, _tokens: Sequence[Token], _at: int, _options: OptionsDict, _env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        return _cell("th", tokens[at])

    def td_open(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        return _cell("td", tokens[at])

    def fence(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        language = (tokens[at].info.split() or [""])[0]
        return f'<pre class="code" tabindex="0"><code>{coloured(tokens[at].content, language)}</code></pre>\n'

    def code_block(self, tokens: Sequence[Token], at: int, _options: OptionsDict, _env: EnvType) -> str:
        return f'<pre class="code" tabindex="0"><code>{escape(tokens[at].content)}</code></pre>\n'


def _cell(tag: str, token: Token) -> str:
    kind = ' class="number"' if "right" in str(token.attrs.get("style", "")) else ""
    return f"<{tag}{kind}>"


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")
