"""Faults of a page as HTML: the parser's own errors, and the rules of the standard that a parser forgives.

The Nu validator needs a Java, which no clean machine has; asked by hand of every page (2026-11-21, the usual notebook
and the hostile one), it found one thing that these rules did not know, and they know it now.
"""

import re
from collections import Counter
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import html5lib

_MAY_HOLD = {
    "ul": {"li", "script", "template"},
    "ol": {"li", "script", "template"},
    "dl": {"dt", "dd", "div", "script", "template"},
    "table": {"caption", "colgroup", "thead", "tbody", "tfoot"},
    "tr": {"th", "td"},
    "select": {"option", "optgroup", "hr"},
}
_PHRASING_ONLY = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "span", "code", "pre", "button", "label", "summary", "dt"}
_BLOCKS = {"div", "p", "ul", "ol", "dl", "table", "section", "article", "aside", "nav", "form", "pre", "figure"}
_INTERACTIVE = {"a", "button", "select", "textarea", "label", "details", "input"}
_NAMELESS = {"div", "span", "p", "pre", "code", "i", "b", "em", "strong", "figcaption"}  # ARIA: these take no name
_GONE = {"center", "font", "big", "tt", "strike", "acronym", "marquee", "frame"}
_EVERYWHERE = {"id", "class", "lang", "dir", "title", "hidden", "tabindex", "role", "spellcheck", "translate", "inert"}
_EVERYWHERE |= {"autofocus", "popover", "inputmode", "enterkeyhint", "autocapitalize", "autocorrect"}
_OWN = {
    "a": {"href", "rel", "download", "hreflang", "type"},
    "base": {"target"},
    "link": {"rel", "href", "type", "hreflang"},
    "meta": {"charset", "name", "content", "property", "http-equiv"},
    "script": {"src", "defer", "type"},
    "form": {"method", "action", "enctype", "autocomplete", "novalidate"},
    "input": {"type", "name", "value", "required", "maxlength", "minlength", "autocomplete", "placeholder", "checked"}
    | {"min", "max", "step", "list", "pattern", "size", "readonly", "disabled", "multiple", "accept", "form"},
    "textarea": {
        "name",
        "rows",
        "cols",
        "maxlength",
        "required",
        "placeholder",
        "readonly",
        "autocomplete",
        "disabled",
    },
    "select": {"name", "multiple", "size", "required", "disabled", "form", "autocomplete"},
    "option": {"value", "selected", "disabled", "label"},
    "optgroup": {"label", "disabled"},
    "button": {"type", "name", "value", "disabled", "form", "formaction", "formmethod", "popovertarget"},
    "label": {"for"},
    "time": {"datetime"},
    "th": {"scope", "colspan", "rowspan", "abbr", "headers"},
    "td": {"colspan", "rowspan", "headers"},
    "col": {"span"},
    "colgroup": {"span"},
    "progress": {"max", "value"},
    "details": {"open", "name"},
    "ol": {"start", "reversed", "type"},
    "li": {"value"},
    "img": {"src", "alt", "width", "height", "loading", "decoding"},
    "html": {"data-theme"},
    "q": {"cite"},
    "blockquote": {"cite"},
    "output": {"for", "name"},
}


def faults(text: str) -> list[str]:
    """Every fault in words; empty for a sound page."""
    parser = html5lib.HTMLParser(html5lib.getTreeBuilder("etree"), namespaceHTMLElements=False)
    root = parser.parse(text)
    errors = [f"line {at[0]}: {code} {told or ''}" for at, code, told in parser.errors]
    return [*errors, *_heads(root), *_ids(root), *_nesting(root), *_attributes(root), *_tables(root)]


def _heads(root: Element) -> Iterator[str]:
    headings = [one for one in root.iter() if re.fullmatch("h[1-6]", str(one.tag))]
    if Counter(one.tag for one in headings)["h1"] != 1:
        yield f"{sum(one.tag == 'h1' for one in headings)} h1"
    if headings and headings[0].tag != "h1":
        yield f"the first heading is {headings[0].tag}"
    yield from (f"{one.tag} says nothing" for one in headings if not "".join(one.itertext()).strip())
    title = root.findtext("head/title", "").strip()
    if not title.removesuffix("· Known Good").strip():
        yield f'the title "{title}" names nothing'
    if len(root.findall(".//main")) != 1:
        yield "not one main"


def _ids(root: Element) -> Iterator[str]:
    ids = Counter(one.get("id") for one in root.iter() if one.get("id") is not None)
    yield from (f'id "{id_}" stands {n} times' for id_, n in ids.items() if n > 1)
    yield from (f'id "{id_}" is empty or holds a space' for id_ in ids if not id_ or re.search(r"\s", id_))
    for one in root.iter():
        for name in ("for", "list", "aria-labelledby", "aria-describedby", "aria-controls", "popovertarget", "form"):
            for id_ in (one.get(name) or "").split():
                if id_ not in ids:
                    yield f'{name}="{id_}" of {one.tag} names nothing'
        href = one.get("href") or ""
        if one.tag in {"a", "use"} and href.startswith("#") and len(href) > 1 and href[1:] not in ids:
            yield f'href="{href}" of {one.tag} leads nowhere'


def _nesting(root: Element, above: tuple[str, ...] = ()) -> Iterator[str]:
    for child in root:
        tag = str(child.tag)  # of a comment it is a function
        parent = str(root.tag)
        if parent in _MAY_HOLD and tag not in _MAY_HOLD[parent]:
            yield f"{tag} in {parent}"
        if parent in _PHRASING_ONLY and tag in _BLOCKS:
            yield f"{tag} in {parent}"
        if tag in _INTERACTIVE and any(one in {"a", "button"} for one in above):
            yield f"{tag} in {[one for one in above if one in {'a', 'button'}][-1]}"
        if tag in {"form", "label"} and tag in above:
            yield f"{tag} in {tag}"
        if tag in _GONE:
            yield f"{tag} is obsolete"
        yield from _nesting(child, (*above, tag))


def _attributes(root: Element) -> Iterator[str]:
    for one in root.iter():
        tag = str(one.tag)
        if tag.startswith("{"):  # of the SVG inside
            continue
        for name, value in one.attrib.items():
            known = name in _EVERYWHERE or name in _OWN.get(tag, ()) or name.startswith(("data-", "aria-"))
            if not known:
                yield f"{tag} has no attribute {name}"
            if name in {"href", "src", "action"} and re.match(r"\s*(javascript|data|vbscript):", value, re.IGNORECASE):
                yield f"{tag} leads to {value[:40]}"
        if "aria-label" in one.attrib and tag in _NAMELESS and not one.get("role"):
            yield f"{tag} has a name and no role"
        if tag == "a" and "href" not in one.attrib:
            yield "a without an address"
        if tag == "img" and "alt" not in one.attrib:
            yield "img without alt"
        if tag == "option" and not one.get("label") and "value" not in one.attrib and not (one.text or "").strip():
            yield "option says nothing"


def _tables(root: Element) -> Iterator[str]:
    """Rows of one table are of one width."""
    for table in root.iter("table"):
        widths = Counter(
            sum(int(cell.get("colspan", "1")) for cell in row)
            for row in table.iter("tr")
            if not any(cell.get("rowspan") for cell in row)
        )
        if len(widths) > 1 and not any(cell.get("rowspan") for cell in table.iter() if cell.tag in {"td", "th"}):
            yield f'rows of {sorted(widths)} cells in table "{table.get("class")}"'
