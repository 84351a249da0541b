"""The feed, as a feed reader understands it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import feedparser

from knowngood.domain.issue import Issue
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.changes import CellNews, changes_of
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.share.atom import atom_feed, summary
from tests.make import HARDWARE, NOON, make_issue
from tests.share.exports.given import HOSTILE, LINKS

SELF, PAGE = "https://kg.example/feeds/changes.atom?issues=a&lang=zh", "https://kg.example/changes"
ATOM = "{http://www.w3.org/2005/Atom}"
ISSUE = make_issue("toy-1", title="compiling <b> & co fails")


def news(count: int = 2, *, issue: str = "toy-1", run: str = "run-1", reason: str = "2 of 2 match") -> list[CellNews]:
    return [
        CellNews(
            at=NOON + timedelta(minutes=n),
            issue=issue,
            build=f"torch-2.{n}.0+cu124",
            hardware=HARDWARE,
            before=Verdict.NOT_AFFECTED,
            after=Verdict.AFFECTED,
            reason=quoted(reason),
            workarounds={"flags": (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.INEFFECTIVE)},
            run=run,
            origin="" if run else "lab 7",
        )
        for n in range(count)
    ]


def feed(steps: list[CellNews], issues: tuple[Issue, ...] = (ISSUE,), *, about: str = "") -> bytes:
    known = {issue.id: issue for issue in issues}
    return atom_feed(changes_of(steps), known, LINKS, address=SELF, page=PAGE, about=about)


def parsed(document: bytes) -> Any:
    found = feedparser.parse(document)
    assert not found.bozo, found.get("bozo_exception")
    assert found.version == "atom10"
    return found


def test_a_feed_reader_finds_what_changed_when_and_why() -> None:
    found = parsed(feed(news()))
    assert found.feed.title == "Known Good: what changed"
    assert {link.rel: link.href for link in found.feed.links} == {"self": SELF, "alternate": PAGE}
    (entry,) = found.entries
    assert entry.title == "toy-1: fails on 2 cells; workaround flags stopped working (does not help) on 2 cells"
    assert entry.link == "https://kg.example/issues/toy-1"
    assert entry.updated_parsed[:5] == (2026, 11, 21, 12, 1)
    assert entry.tags[0].term == ISSUE.component
    content = entry.content[0].value
    assert "compiling &lt;b&gt; &amp; co fails" in content
    assert "measured here, run run-1" in content
    assert "passes → <b>fails</b>; workaround flags stopped working (does not help). 2 of 2 match" in content
    assert "results imported from lab 7" in parsed(feed(news(run=""))).entries[0].content[0].value


def test_a_workaround_that_helps_in_part_now_is_news() -> None:
    (one,) = news(1)
    partly = {"flags": (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.PARTIAL)}
    same = replace(one, before=Verdict.AFFECTED, after=Verdict.AFFECTED, workarounds=partly)
    (entry,) = parsed(feed([same])).entries
    assert entry.title == "toy-1: workaround flags helps in part now on 1 cell"
    assert "workaround flags helps in part now. 2 of 2 match" in entry.content[0].value


def test_everything_that_rfc_4287_asks_for_is_there_and_ids_are_addresses() -> None:
    root = ET.fromstring(feed([*news(), *news(issue="toy-2")]))  # noqa: S314 - we wrote it
    assert root.tag == f"{ATOM}feed"
    for element in (root, *root.iter(f"{ATOM}entry")):
        for name in ("id", "title", "updated"):
            assert len(element.findall(ATOM + name)) == 1
        assert (element.findtext(f"{ATOM}id") or "").startswith("urn:uuid:")
        datetime.strptime(element.findtext(f"{ATOM}updated") or "", "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    assert root.findtext(f"{ATOM}author/{ATOM}name") == "Known Good"


def test_an_entry_keeps_its_id_while_its_run_goes_on_and_no_two_share_one() -> None:
    first, later = (parsed(feed(news(count))).entries[0] for count in (1, 3))
    assert first.id == later.id
    assert first.updated < later.updated
    others = parsed(feed([*news(), *news(run="run-2"), *news(1, run=""), *news(issue="toy-2")]))
    assert len({entry.id for entry in others.entries}) == 3


def test_what_one_cause_turned_is_one_entry_over_all_its_issues() -> None:
    (entry,) = parsed(feed([*news(), *news(issue="toy-2")], (ISSUE, make_issue("toy-2", component="Dynamo")))).entries
    assert entry.title.startswith("2 issues: fails on 4 cells")
    assert entry.link == PAGE
    assert [tag.term for tag in entry.tags] == [ISSUE.component, "Dynamo"]
    assert entry.content[0].value.count("<ul>") == 2


def test_a_feed_about_one_thing_says_so_and_its_entries_have_ids_of_their_own() -> None:
    whole, part = parsed(feed(news())), parsed(feed(news(), about="torch 2.8.x"))
    assert part.feed.title == "Known Good: what changed (torch 2.8.x)"
    assert whole.entries[0].id != part.entries[0].id
    assert part.entries[0].id == parsed(feed(news(1), about="torch 2.8.x")).entries[0].id


def test_entries_stand_newest_first_and_the_feed_is_as_new_as_they_are() -> None:
    found = parsed(feed([*news(3, run="run-2"), *news(1, issue="toy-2")]))
    assert [entry.updated for entry in found.entries] == sorted((e.updated for e in found.entries), reverse=True)
    assert found.feed.updated == found.entries[0].updated


def test_the_same_changes_give_the_same_bytes_and_none_give_a_feed_without_a_clock() -> None:
    assert feed(news()) == feed(news())
    empty = parsed(feed([]))
    assert empty.entries == []
    assert empty.feed.updated == "1970-01-01T00:00:00Z"


def test_a_bulk_import_is_one_entry_that_a_person_can_read() -> None:
    (entry,) = parsed(feed(news(300))).entries
    assert entry.title.startswith("toy-1: fails on 300 cells")
    assert entry.content[0].value.count("<li>") == 50
    assert "and 250 more" in entry.content[0].value


def test_hostile_texts_neither_break_the_feed_nor_become_markup() -> None:
    issue = make_issue("toy-1", title=HOSTILE, component=HOSTILE)
    (entry,) = parsed(feed(news(1, reason=f"<script>alert(1)</script>{HOSTILE}"), (issue,))).entries
    assert "<script" not in entry.content[0].value
    raw = ET.fromstring(feed(news(1, reason=HOSTILE), (issue,)))  # noqa: S314 - we wrote it
    assert "&lt;b&gt;&amp;amp;&lt;/b&gt;" in (raw.findtext(f"{ATOM}entry/{ATOM}content") or "")


def test_an_issue_that_left_the_catalogue_is_still_told_by_its_id() -> None:
    (entry,) = parsed(feed(news(), ())).entries
    assert entry.title.startswith("toy-1: fails")
    assert "tags" not in entry


def test_a_summary_names_each_verdict_once_and_first_measurements_as_such() -> None:
    steps = [
        CellNews(NOON, "toy-1", f"torch-2.{n}.0", HARDWARE, before, after, run="r")
        for n, (before, after) in enumerate(
            [
                (Verdict.FLAKY, Verdict.AFFECTED),
                (Verdict.FLAKY, Verdict.NOT_AFFECTED),
                (Verdict.AFFECTED, Verdict.NOT_AFFECTED),
                (None, Verdict.NO_BUILD),
            ]
        )
    ]
    (change,) = changes_of(steps, first=True)
    assert english(summary(change.turns)) == (
        "fails on 1 cell, passes on 2 cells; measured for the first time: cannot be built on 1 cell"
    )
    unverified = {"flags": (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.UNVERIFIED)}
    verdict = Verdict.AFFECTED
    (change,) = changes_of([CellNews(NOON, "toy-1", "torch-2.0.0", HARDWARE, verdict, verdict, workarounds=unverified)])
    assert english(summary(change.turns)) == "workarounds to verify again"


def test_a_workaround_that_is_no_longer_needed_stands_in_the_title() -> None:
    turned = {"flags": (WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.UNNECESSARY)}
    fixed = CellNews(
        NOON, "toy-1", "torch-2.9.0", HARDWARE, Verdict.AFFECTED, Verdict.NOT_AFFECTED, workarounds=turned, run="r"
    )
    (entry,) = parsed(feed([fixed])).entries
    assert entry.title == "toy-1: passes on 1 cell; workaround flags is no longer needed on 1 cell"
