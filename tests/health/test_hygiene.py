"""Hygiene for keepers of the catalogue: where upstream's word and the measurements drift apart."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Claim, Device, Issue, Link, LinkKind, Requires, Status
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.verdict import Cell, Verdict, WorkaroundFinding, WorkaroundVerdict
from knowngood.health.rules import MismatchKind, Remark, remarks_on
from tests.domain.given_claims import known_of
from tests.make import HARDWARE, make_build, make_issue

SIGNS = {"x": Verdict.AFFECTED, "o": Verdict.NOT_AFFECTED, "?": Verdict.INCONCLUSIVE, "~": Verdict.FLAKY}
CURES = {
    "e": WorkaroundVerdict.EFFECTIVE,
    "p": WorkaroundVerdict.PARTIAL,
    "i": WorkaroundVerdict.INEFFECTIVE,
    "u": WorkaroundVerdict.UNNECESSARY,
}


def line(text: str, **workarounds: str) -> list[tuple[Build, Cell | None]]:
    """Cells of 2.1.0, 2.2.0, ..., none where the text has a dot; a workaround's text has a sign of CURES for each
    build, or a blank.
    """
    cells: list[tuple[Build, Cell | None]] = []
    for at, sign in enumerate(text):
        build = make_build(f"2.{at + 1}.0+cu124")
        if sign == ".":
            cells.append((build, None))
            continue
        found: Mapping[str, WorkaroundFinding] = {
            name: WorkaroundFinding(CURES[told[at]]) for name, told in workarounds.items() if told[at] in CURES
        }
        cells.append((build, Cell("toy-1", build.id, HARDWARE, SIGNS[sign], quoted("because"), workarounds=found)))
    return cells


def remarks(issue: Issue, cells: list[tuple[Build, Cell | None]]) -> tuple[Remark, ...]:
    stored = [cell for _, cell in cells if cell]
    return remarks_on(issue, known_of(stored, [issue], {build.id: build for build, _ in cells}))


def reported(state: str, **changes: Any) -> Issue:
    link = Link(LinkKind.REPORT, "https://example.org/1", "toy#1", state=state, seen=date(2026, 9, 23))
    return make_issue(links=(link,), **changes)


def troubles(found: tuple[Remark, ...]) -> list[MismatchKind]:
    return [remark.trouble for remark in found]


@pytest.mark.parametrize(
    ("state", "verdicts", "trouble"),
    [
        ("closed", "oxx", [MismatchKind.CLOSED_BUT_FAILS]),
        ("closed", "xxo", []),
        ("closed", "xx?", [MismatchKind.CLOSED_BUT_FAILS]),
        ("closed", "???", []),
        ("open", "xxo", [MismatchKind.OPEN_BUT_PASSES]),
        ("open", "oxx", []),
        ("open", "oox", []),
        ("", "oxx", []),
        ("closed", "ooo", [MismatchKind.NEVER_FAILED]),
        ("open", "ooo", [MismatchKind.NEVER_FAILED]),
        ("closed", "o~~", [MismatchKind.CLOSED_BUT_FAILS]),
    ],
)
def test_the_state_of_a_thread_is_held_against_the_newest_release_that_answered(
    state: str, verdicts: str, trouble: list[MismatchKind]
) -> None:
    assert troubles(remarks(reported(state), line(verdicts))) == trouble


@pytest.mark.parametrize(
    ("state", "verdicts", "sentence"),
    [
        ("closed", "oxx", "closed upstream, seen on 2026-09-23; here it fails since 2.2.0"),
        ("open", "xo", "open upstream, seen on 2026-09-23; here it fails up to 2.1.0, fixed in 2.2.0"),
    ],
)
def test_the_day_on_which_a_thread_was_looked_at_is_not_the_day_on_which_it_was_closed(
    state: str, verdicts: str, sentence: str
) -> None:
    (remark,) = remarks(reported(state), line(verdicts))
    assert english(remark.sentence) == sentence


def test_a_claim_that_speaks_against_a_fix_stands_in_the_remark() -> None:
    claim = Claim("Wrong on 2.3.", "toy#1", date(2026, 8, 12), says="affected", about="==2.3.0")
    (upstream, needless) = remarks(reported("open", claims=(claim,)), line("xo..", eager="eu  "))
    doubt = "; but upstream says that 2.3.0 is affected (toy#1, 2026-08-12; not measured here)"
    assert english(upstream.sentence).endswith(doubt)
    assert english(needless.sentence) == (
        f"not needed from 2.2.0 on (2.3.0, 2.4.0 not run), fixed in 2.2.0: eager{doubt}"
    )


@pytest.mark.parametrize(("device", "trouble"), [(Device.ANY, False), (Device.CPU, True)])
def test_a_row_that_is_alike_on_every_device_is_followed_on_the_cpu_alone(device: Device, *, trouble: bool) -> None:
    cells = line("xo")
    (build, first), *_ = cells
    assert first
    on_gpu = replace(first, hardware="cuda-sm_90")
    found = remarks(reported("closed", requires=Requires(device=device)), [*cells, (build, on_gpu)])
    assert (MismatchKind.CLOSED_BUT_FAILS in troubles(found)) is trouble


def test_a_limitation_is_closed_as_such_and_stays() -> None:
    assert not remarks(reported("closed", status=Status.LIMITATION), line("xxx"))


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
    found = [english(remark.sentence) for remark in remarks(issue, line(verdicts)) if remark.about == "toy#1"]
    assert found == ([sentence] if sentence else [])


def test_a_cure_that_was_claimed_and_cured_nothing_is_a_contradiction() -> None:
    claim = Claim("Clone it.", "toy#1", says="cure", workaround="clone")
    issue = make_issue(claims=(claim,), workarounds=("clone",))
    contradicted = [r for r in remarks(issue, line("xx", clone="ii")) if r.trouble is MismatchKind.CONTRADICTED]
    assert [english(remark.sentence) for remark in contradicted] == ['"Clone it." did not cure 2.1.0, 2.2.0']
    assert MismatchKind.CONTRADICTED not in troubles(remarks(issue, line("xx", clone="ie")))


def test_a_workaround_is_useless_only_where_it_helped_on_no_build_of_any_class() -> None:
    found = remarks(make_issue(), line("xxo", clone="iiu", eager="eiu", partly="pii", never="  u"))
    assert [(one.trouble, one.about) for one in found] == [
        (MismatchKind.CURES_NOWHERE, "clone"),
        (MismatchKind.NO_LONGER_NEEDED, "eager, partly"),
    ]


def test_a_decoy_is_remarked_on_only_where_it_helps() -> None:
    claim = Claim("Clone it.", "toy#1", says="cure", workaround="clone")
    issue = make_issue(claims=(claim,), workarounds=("clone",))
    decoy = replace(issue, workarounds=tuple(replace(one, is_decoy=True) for one in issue.workarounds))
    assert not remarks(decoy, line("xx", clone="ii"))
    assert [english(one.sentence) for one in remarks(decoy, line("xx", clone="ie"))] == [
        "clone is marked as a decoy, and helps on 2.2.0"
    ]


def test_nothing_is_called_needless_beside_what_a_pass_does_not_cover() -> None:
    cells = [(build, cell and replace(cell, not_covered=("an argument",))) for build, cell in line("xo", clone="e ")]
    assert MismatchKind.NO_LONGER_NEEDED in troubles(remarks(make_issue(), line("xo", clone="e ")))
    assert MismatchKind.NO_LONGER_NEEDED not in troubles(remarks(make_issue(), cells))


@pytest.mark.parametrize(
    ("verdicts", "cures", "sentence"),
    [
        ("oxxo", "ueeu", "not needed from 2.4.0 on, fixed in 2.4.0: eager"),
        ("x.o", "e u", "not needed from 2.3.0 on, fixed after 2.1.0, by 2.3.0 (2.2.0 not run): eager"),
        ("xo?.", "eu  ", "not needed from 2.2.0 on (2.3.0 cannot say; 2.4.0 not run), fixed in 2.2.0: eager"),
        ("oxox", "ueue", None),
    ],
)
def test_a_cure_is_no_longer_needed_from_the_first_release_that_passes_for_good(
    verdicts: str, cures: str, sentence: str | None
) -> None:
    assert [english(one.sentence) for one in remarks(make_issue(), line(verdicts, eager=cures))] == (
        [sentence] if sentence else []
    )


def test_without_an_answer_nothing_is_remarked() -> None:
    assert not remarks(reported("closed"), line("??", clone="ii"))
