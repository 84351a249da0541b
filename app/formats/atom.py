"""Verdict changes as an Atom feed (RFC 4287). The same changes give the same bytes.

Written with the standard library: feedgenerator dates a feed without entries with the clock, and raises on a log's
control characters (2.2.1, tried 2026-11-21).
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from html import escape
from xml.etree import ElementTree as ET

from app.domain.changes import Cause, CellTurn, Change
from app.domain.issue import Issue
from app.domain.verdict import Verdict, WorkaroundVerdict
from app.formats.extract import Links, utc, xml_text

MEDIA = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_LINES = 50

WORDS = {
    Verdict.AFFECTED: "fails",
    Verdict.FLAKY: "is flaky",
    Verdict.DIFFERENT_FAILURE: "fails differently",
    Verdict.NOT_AFFECTED: "passes",
    Verdict.INCONCLUSIVE: "cannot be said",
    Verdict.NO_BUILD: "cannot be built",
    Verdict.NOT_APPLICABLE: "does not apply",
    Verdict.NOT_RUN: "is not run",
}
_WORKAROUND_WORDS = {
    WorkaroundVerdict.EFFECTIVE: "works",
    WorkaroundVerdict.UNNECESSARY: "is not needed",
    WorkaroundVerdict.UNVERIFIED: "is not verified",
    WorkaroundVerdict.INEFFECTIVE: "does not help",
    WorkaroundVerdict.HARMFUL: "does harm",
}


def atom_feed(
    changes: Iterable[Change], issues: Mapping[str, Issue], links: Links, *, address: str, page: str
) -> bytes:
    """`address` is the feed's own, `page` shows the same to people; `issues` are those of the catalogue, by id."""
    changes = list(changes)
    feed = ET.Element("feed", {"xmlns": _NAMESPACE})
    _add(feed, "id", _id(address))
    _add(feed, "title", "Known Good: what changed")
    _add(feed, "updated", utc(max((change.at for change in changes), default=_NEVER)))
    ET.SubElement(feed, "link", {"rel": "self", "type": MEDIA, "href": xml_text(address)})
    ET.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": xml_text(page)})
    _add(ET.SubElement(feed, "author"), "name", "Known Good")
    for change in changes:
        feed.append(_entry(change, issues.get(change.issue), links))
    document: bytes = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return document


def _id(name: str) -> str:
    """The same for the same name, for good; a server's own address may change, and its entries stay what they are."""
    return uuid.uuid5(uuid.NAMESPACE_URL, name).urn


def _add(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = xml_text(text)


def _entry(change: Change, issue: Issue | None, links: Links) -> ET.Element:
    entry = ET.Element("entry")
    _add(entry, "id", _id(f"knowngood change {change.key}"))
    _add(entry, "title", f"{change.issue}: {summary(change)}")
    _add(entry, "updated", utc(change.at))
    ET.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": xml_text(links.issue(change.issue))})
    if issue is not None:
        ET.SubElement(entry, "category", {"term": xml_text(issue.component)})
    _add(entry, "content", "".join(_content(change, issue, links)), type="html")
    return entry


def summary(change: Change) -> str:
    """`fails on 2 builds, passes on 1 build; workaround eager_mask works on 1 build`."""
    verdicts = Counter(turn.after for turn in change.turns if turn.before is not turn.after)
    said = [f"{WORDS[verdict]} on {_builds(verdicts[verdict])}" for verdict in WORDS if verdicts[verdict]]
    cures = Counter((id_, after) for turn in change.turns for id_, (_, after) in turn.workarounds.items())
    helped = [
        f"workaround {id_} {_WORKAROUND_WORDS[after]} on {_builds(n)}"
        for (id_, after), n in sorted(cures.items())
        if after is not WorkaroundVerdict.UNVERIFIED
    ]
    return "; ".join(part for part in (", ".join(said), ", ".join(helped)) if part) or "workarounds to be verified anew"


def _builds(count: int) -> str:
    return "1 build" if count == 1 else f"{count} builds"


def _content(change: Change, issue: Issue | None, links: Links) -> Iterator[str]:
    if issue is not None:
        yield f"<p>{escape(issue.title)}</p>"
    yield f"<p>{escape(_because(change))}</p><ul>"
    for turn in change.turns[:_LINES]:
        address = links.cell(change.issue, turn.build, turn.hardware)
        yield f'<li><a href="{escape(address)}">{escape(turn.build)} on {escape(turn.hardware)}</a>: {_told(turn)}</li>'
    yield "</ul>"
    if len(change.turns) > _LINES:
        yield f"<p>and {len(change.turns) - _LINES} more</p>"


def _because(change: Change) -> str:
    match change.cause:
        case Cause.RUN:
            return f"measured here, run {change.run}"
        case Cause.IMPORT:
            return f"results imported from {change.origin}"
        case Cause.DERIVED:
            return "derived anew from the stored evidence: catalogue or rules are other ones"


def _told(turn: CellTurn) -> str:
    said = []
    if turn.before is not turn.after:
        said.append(f"{WORDS[turn.before]} → <b>{WORDS[turn.after]}</b>")
    for id_, (before, after) in turn.workarounds.items():
        said.append(f"workaround {escape(id_)} {_WORKAROUND_WORDS[before]} → {_WORKAROUND_WORDS[after]}")
    return "; ".join(said) + (f". {escape(turn.reason)}" if turn.reason else "")
