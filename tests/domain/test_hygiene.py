from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from app.domain.build import Build
from app.domain.hygiene import Remark, Trouble, remarks_on
from app.domain.issue import Claim, Issue, Link, LinkKind, Status
from app.domain.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from tests.make import HARDWARE, make_build, make_issue

SIGNS = {"x": Verdict.AFFECTED, "o": Verdict.NOT_AFFECTED, "?": Verdict.INCONCLUSIVE, "~": Verdict.FLAKY}
CURES, CURES_NOT, NEEDLESS = WorkaroundVerdict.EFFECTIVE, WorkaroundVerdict.INEFFECTIVE, WorkaroundVerdict.UNNECESSARY


def line(text: str, **workarounds: str) -> list[tuple[Build, Cell]]:
    """Cells of 2.1.0, 2.2.0, ...; a workaround's text has `e`, `i` or `u` for each build, or a blank."""
    words = {"e": CURES, "i": CURES_NOT, "u": NEEDLESS}
    cells = []
    for at, sign in enumerate(text):
        build = make_build(f"2.{at + 1}.0+cu124")
        found: Mapping[str, WorkaroundFinding] = {
            name: WorkaroundFinding(words[told[at]]) for name, told in workarounds.items() if told[at] in words
        }
        cells.append((build, Cell("toy-1", build.id, HARDWARE, SIGNS[sign], "because", workarounds=found)))
    return cells


def reported(state: str, **changes: Any) -> Issue:
    link = Link(LinkKind.REPORT, "https://example.org/1", "toy#1", state=state, seen=date(2026, 9, 23))
    return make_issue(links=(link,), **changes)


def troubles(found: tuple[Remark, ...]) -> list[Trouble]:
    return [remark.trouble for remark in found]


@pytest.mark.parametrize(
    ("state", "verdicts", "trouble"),
    [
        ("closed", "oxx", [Trouble.CLOSED_BUT_FAILS]),
        ("closed", "xxo", []),
        ("closed", "xx?", [Trouble.CLOSED_BUT_FAILS]),
        ("closed", "???", []),
        ("open", "xxo", [Trouble.OPEN_BUT_PASSES]),
        ("open", "oxx", []),
        ("open", "oox", []),
        ("", "oxx", []),
        ("closed", "ooo", [Trouble.NEVER_FAILED]),
        ("open", "ooo", [Trouble.NEVER_FAILED]),
        ("closed", "o~~", [Trouble.CLOSED_BUT_FAILS]),
    ],
)
def test_the_state_of_a_thread_is_held_against_the_newest_release_that_answered(
    state: str, verdicts: str, trouble: list[Trouble]
) -> None:
    assert troubles(remarks_on(reported(state), line(verdicts))) == trouble


def test_the_sentence_says_when_upstream_was_read_and_what_was_measured() -> None:
    (remark,) = remarks_on(reported("closed"), line("oxx"))
    assert remark.sentence == "closed upstream on 2026-09-23, and here it fails since (2.1.0, 2.2.0]"


def test_a_limitation_is_closed_as_such_and_stays() -> None:
    assert not remarks_on(reported("closed", status=Status.LIMITATION), line("xxx"))


@pytest.mark.parametrize(
    ("says", "about", "verdicts", "sentence"),
    [
        ("fixed", "==2.3.0", "xxx", '"Said so." but 2.3.0 fails here'),
        ("fixed", "==2.3.0", "xxo", None),
        ("fixed", ">=2.2", "xxx", '"Said so." but 2.2.0, 2.3.0 fails here'),
        ("fixed", "", "xxx", None),
        ("affected", "==2.1.0", "oxx", '"Said so." but 2.1.0 passes here'),
        ("affected", "==2.2.0", "oxx", None),
        ("affected", "==2.3.0", "ox?", None),
        ("cause", "==2.1.0", "oxx", None),
    ],
)
def test_a_claim_about_a_release_is_held_against_what_was_measured_there(
    says: str, about: str, verdicts: str, sentence: str | None
) -> None:
    issue = make_issue(claims=(Claim("Said so.", "toy#1", says=says, about=about),))
    found = [remark.sentence for remark in remarks_on(issue, line(verdicts)) if remark.about == "toy#1"]
    assert found == ([sentence] if sentence else [])


def test_a_cure_that_was_claimed_and_cured_nothing_is_a_contradiction() -> None:
    claim = Claim("Clone it.", "toy#1", says="cure", workaround="clone")
    issue = make_issue(claims=(claim,), workarounds=("clone",))
    contradicted = [r for r in remarks_on(issue, line("xx", clone="ii")) if r.trouble is Trouble.CONTRADICTED]
    assert [remark.sentence for remark in contradicted] == ['"Clone it." did not cure 2.1.0, 2.2.0']
    assert Trouble.CONTRADICTED not in troubles(remarks_on(issue, line("xx", clone="ie")))


def test_a_workaround_is_useless_only_where_it_cured_no_build_of_any_class() -> None:
    found = remarks_on(make_issue(), line("xxo", clone="iiu", eager="eiu", never="  u"))
    assert [(one.trouble, one.about) for one in found] == [
        (Trouble.CURES_NOWHERE, "clone"),
        (Trouble.NO_LONGER_NEEDED, "eager"),
    ]


def test_a_cure_is_no_longer_needed_from_the_first_release_that_passes_for_good() -> None:
    found = remarks_on(make_issue(), line("oxxo", eager="ueeu"))
    assert [one.sentence for one in found] == ["not needed from 2.4.0 on: eager"]
    assert not remarks_on(make_issue(), line("oxox", eager="ueue"))


def test_without_an_answer_nothing_is_remarked() -> None:
    assert not remarks_on(reported("closed"), line("??", clone="ii"))
