"""Verdict changes as an Atom feed (RFC 4287). The same changes give the same bytes.

Written with the standard library: feedgenerator dates a feed without entries with the clock, and raises on a log's
control characters (2.2.1, tried 2026-11-21).
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import cast
from xml.etree import ElementTree as ET

from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.issue import Issue
from knowngood.domain.message import Message, clauses, english, joined
from knowngood.domain.verdicts.changes import Cause, CellTurn, Change, CureNews, CureTurn
from knowngood.domain.verdicts.verdict import Verdict
from knowngood.domain.vocabulary import VERDICTS
from knowngood.share.exports.extract import Links, utc, xml_text

MEDIA = "application/atom+xml"
_NAMESPACE = "http://www.w3.org/2005/Atom"
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_LINES = 50


def atom_feed(
    changes: Iterable[Change], issues: Mapping[str, Issue], links: Links, *, address: str, page: str, about: str = ""
) -> bytes:
    """`address` is the feed's own, `page` shows the same to people; `issues` are those of the catalogue, by id.

    `about` is the part of the changes that it tells, in a few words; empty: all. An entry is the part of a change that
    is told, so entries of feeds about other things have other ids.
    """
    changes = list(changes)
    feed = ET.Element("feed", {"xmlns": _NAMESPACE})
    _add(feed, "id", _id(address))
    _add(feed, "title", f"Known Good: what changed ({about})" if about else "Known Good: what changed")
    _add(feed, "updated", utc(max((change.at for change in changes), default=_NEVER)))
    ET.SubElement(feed, "link", {"rel": "self", "type": MEDIA, "href": xml_text(address)})
    ET.SubElement(feed, "link", {"rel": "alternate", "type": "text/html", "href": xml_text(page)})
    _add(ET.SubElement(feed, "author"), "name", "Known Good")
    for change in changes:
        feed.append(_entry(change, issues, links, page=page, about=about))
    return cast("bytes", ET.tostring(feed, encoding="utf-8", xml_declaration=True))


def _id(name: str) -> str:
    """An id that is the same for the same name, for good; a server's own address may change, and its entries stay what
    they are.
    """
    return uuid.uuid5(uuid.NAMESPACE_URL, name).urn


def _add(parent: ET.Element, tag: str, text: str, **attributes: str) -> None:
    ET.SubElement(parent, tag, attributes).text = xml_text(text)


def _entry(change: Change, issues: Mapping[str, Issue], links: Links, *, page: str, about: str) -> ET.Element:
    entry = ET.Element("entry")
    _add(entry, "id", _id(f"knowngood change {change.key} {about}".rstrip()))
    _add(entry, "title", english(title_of(change)))
    _add(entry, "updated", utc(change.at))
    alternate = links.issue(change.issues[0]) if len(change.issues) == 1 else page
    ET.SubElement(entry, "link", {"rel": "alternate", "type": "text/html", "href": xml_text(alternate)})
    for component in dict.fromkeys(issues[id_].component for id_ in change.issues if id_ in issues):
        ET.SubElement(entry, "category", {"term": xml_text(component)})
    _add(entry, "content", "".join(_content(change, issues, links)), type="html")
    return entry


def title_of(change: Change) -> Message:
    """`pytorch-151290: fails on 2 builds`; several issues by their number."""
    named, sentence = change.issues, summary(change.news)
    if len(named) == 1:
        return Message("issue", issue=named[0], said=sentence)
    return Message("issues", n=len(named), said=sentence) if named else sentence


def summary(news: Sequence[BuildCheck | CellTurn]) -> Message:
    """`fails on 2 cells, passes on 1 cell; workaround eager_mask stopped working on 1 cell`.

    First measurements come last, and are said to be that. Of builds: `torch-2.6.0 can no longer be installed`.
    """
    checks = [check for check in news if isinstance(check, BuildCheck)]
    if checks:
        keys = {False: "installable_no_more", True: "installable_again"}
        names = {key: tuple(each.build for each in checks if each.is_installable is able) for able, key in keys.items()}
        return joined("then", [Message(key, names=some) for key, some in names.items() if some])
    turns = [turn for turn in news if isinstance(turn, CellTurn)]
    turned = [turn for turn in turns if turn.is_turned]
    cures = [(id_, cure) for turn in turns for id_, cure in turn.workarounds.items()]
    counts = Counter(cure_words(id_, cure) for id_, cure in cures if cure.news in _WORTH_A_TITLE)
    helped = [Message("on_cells", said=words, n=n) for words, n in counts.items()]
    tried = len({id_ for id_, cure in cures if cure.news is CureNews.FIRST_MEASURED})
    first = [
        *_counted(turn.after for turn in turned if turn.is_first),
        *([Message("workarounds", n=tried)] if tried else []),
    ]
    more = [Message("more_workarounds", n=len(helped) - _NAMED)] if len(helped) > _NAMED else []
    others = _counted(turn.after for turn in turned if not turn.is_first)
    parts = [joined("then", some) for some in (others, [*helped[:_NAMED], *more]) if some]
    if first:
        parts.append(Message("first_measured", said=joined("then", first)))
    return clauses(parts) if parts else Message("workarounds_open")


_NAMED = 4  # workarounds in a title
_WORTH_A_TITLE = frozenset(
    {CureNews.NO_LONGER_NEEDED, CureNews.STOPPED_WORKING, CureNews.NOW_WORKS, CureNews.NOW_HELPS_IN_PART}
)


def cure_words(id_: str, turn: CureTurn) -> Message:
    """`workaround flags stopped working (does harm)`."""
    after = Message(f"workaround_{turn.after}")
    if turn.news not in _WORTH_A_TITLE:
        return Message("workaround_is", name=id_, clause=after)
    aside = {"verdict": after} if turn.news is CureNews.STOPPED_WORKING else {}
    return Message(turn.news.value, name=id_, **aside)


def _counted(verdicts: Iterable[Verdict]) -> list[Message]:
    counts = Counter(verdicts)
    return [
        Message("on_cells", said=Message(f"it_{verdict}"), n=n)
        for verdict in map(Verdict, VERDICTS)
        if (n := counts[verdict])
    ]


def _content(change: Change, issues: Mapping[str, Issue], links: Links) -> Iterator[str]:
    yield f"<p>{escape(because(change))}</p>"
    if reasons := [f"<li>{escape(f'{check.build}: {check.why}')}</li>" for check in change.builds if check.why]:
        yield f"<ul>{''.join(reasons)}</ul>"
    left = _LINES
    for id_ in change.issues:
        turns = [turn for turn in change.turns if turn.issue == id_]
        if left <= 0:
            break
        title = f": {escape(issues[id_].title)}" if id_ in issues else ""
        yield f'<p><a href="{escape(links.issue(id_))}">{escape(id_)}</a>{title}</p><ul>'
        for turn in turns[:left]:
            address = links.cell(id_, turn.build, turn.hardware)
            place = f"{escape(turn.build)} on {escape(turn.hardware)}"
            yield f'<li><a href="{escape(address)}">{place}</a>: {_describe_turn(turn)}</li>'
        yield "</ul>"
        left -= len(turns)
    if left < 0 or len(change.turns) > _LINES:
        yield f"<p>and {len(change.turns) - _LINES} more</p>"


def because(change: Change) -> str:
    """The cause of the change, as a phrase."""
    return _CAUSE_WORDS[change.cause].format(run=change.run, origin=change.origin)


_CAUSE_WORDS: Mapping[Cause, str] = {
    Cause.RUN: "measured here, run {run}",
    Cause.IMPORT: "results imported from {origin}",
    Cause.CATALOGUE: "derived again from the stored evidence after an edit of the catalogue",
    Cause.NOTE: "voided or restored by a person",
    Cause.VOID: "results of a worker were voided",
    Cause.UNVOID: "voided results of a worker count again",
    Cause.INDEX: "the package index was asked",
    Cause.DERIVED: "derived again from the stored evidence by other rules",
}


def _describe_turn(turn: CellTurn) -> str:
    parts = []
    if turn.is_first:
        parts.append(f"measured for the first time: <b>{VERDICTS[turn.after].as_clause}</b>")
    elif turn.is_turned:
        was = f" (it last said: {VERDICTS[turn.earlier].as_clause})" if turn.earlier else ""
        parts.append(f"{VERDICTS[turn.before].as_clause}{was} → <b>{VERDICTS[turn.after].as_clause}</b>")
    parts += [escape(english(cure_words(id_, cure))) for id_, cure in turn.workarounds.items()]
    return "; ".join(parts) + (f". {escape(english(turn.reason))}" if turn.reason else "")
