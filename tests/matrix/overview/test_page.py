"""The matrix: what stands where, what it adds up to, and what the address can ask for."""

import csv
import html
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from types import SimpleNamespace

import pytest
from starlette.testclient import TestClient

from knowngood.domain.access import Actor
from knowngood.domain.message import english
from knowngood.domain.verdicts.matrix import Column
from knowngood.domain.verdicts.outcome import Outcome
from knowngood.domain.verdicts.status import FAILING_PROSPECTS, Prospect
from knowngood.domain.verdicts.verdict import CellKey
from knowngood.domain.verdicts.voids import NoteKind
from knowngood.domain.vocabulary import StatusLabel
from knowngood.matrix.overview.page import Row
from knowngood.matrix.overview.totals import bars_of, counted
from knowngood.store.catalogue import save_catalogue
from knowngood.store.engine import Engine, unit_of_work
from knowngood.store.evidence.notes import add_note
from knowngood.web.html.grid import heads_of
from knowngood.web.html.i18n import Language
from knowngood.web.html.status_labels import LEGEND_LINE
from knowngood.web.urls import MATRIX
from tests.fixtures.databases import CountStatements, StoreWith
from tests.make import HARDWARE, NOON, make_build, make_issue
from tests.web import given
from tests.web.asking import app_of, client_of, client_state, page_at
from tests.web.given import BAD, BUILDS, CPU_ONLY, GOOD, ISSUES, MASK, MISMATCHED, NEW, OLD, SILENT, Asked


def page_of(client: TestClient, address: str = f"{MATRIX}?columns=releases") -> SimpleNamespace:
    return page_at(client, address)


def row_of(page: SimpleNamespace, issue: str) -> Row:
    row: Row = next(row for group in page.groups for row in group.rows if row.issue.id == issue)
    return row


def signs_of(page: SimpleNamespace, issue: str) -> dict[str, StatusLabel]:
    return {square.head.id: square.sign for square in row_of(page, issue).squares}


def test_each_cell_has_the_sign_of_its_verdict(client: TestClient) -> None:
    page = page_of(client)
    assert signs_of(page, "pytorch-151290") == {
        OLD.id: StatusLabel.PASSES,
        BAD.id: StatusLabel.WORKAROUND,
        GOOD.id: StatusLabel.PASSES,
        NEW.id: StatusLabel.NOT_RUN,
    }
    assert signs_of(page, "pytorch-154771") == {
        OLD.id: StatusLabel.FAILS,
        BAD.id: StatusLabel.FLAKY,
        GOOD.id: StatusLabel.UNSURE,
        NEW.id: StatusLabel.NOT_RUN,
    }
    assert signs_of(page, "fla-160")[OLD.id] is StatusLabel.DIFFERENT


def test_a_flaky_cell_says_how_often(client: TestClient) -> None:
    squares = {square.head.id: square for square in row_of(page_of(client), "pytorch-154771").squares}
    assert squares[BAD.id].text == "1/2"


def test_a_cell_has_an_accessible_name_with_verdict_issue_and_build(client: TestClient) -> None:
    text = client.get(MATRIX).text
    assert f'aria-label="fails, has a workaround: pytorch-151290 on {BAD.id}"' in text
    assert f'aria-label="old: passes: pytorch-151290 on {OLD.id}"' in text


def test_old_results_are_hatched_and_counted(client: TestClient) -> None:
    page = page_of(client)
    stale = {square.head.id for square in row_of(page, "fla-160").squares if square.is_stale}
    assert stale == {OLD.id}
    assert page.totals.stale == 3


def test_the_first_line_says_what_there_is(client: TestClient) -> None:
    text = " ".join(client.get(f"{MATRIX}?columns=releases").text.split())
    assert "4 issues × 4 builds on cpu-x86_64" in text  # noqa: RUF001 - the sign for times
    assert "9 of 12 cells measured, 1 cannot say, 3 stale · last result" in text
    assert "1 h ago" in text


def test_a_row_ends_with_the_history_of_all_releases_and_the_number_of_cures(client: TestClient) -> None:
    page = page_of(client, f"{MATRIX}?builds={BAD.id.replace('+', '%2B')}")
    assert len(page.heads) == 1
    assert english(row_of(page, "pytorch-151290").sentence) == "fails in 2.7.1, fixed in 2.8.0 · 1 workaround helps"


def test_issues_that_apply_to_no_column_stand_below_with_the_reason(client: TestClient) -> None:
    page = page_of(client)
    assert [row.issue.id for row in page.elsewhere] == ["pytorch-151589"]
    assert "needs a CUDA GPU" in english(page.elsewhere[0].sentence)
    assert "Inductor Triton" not in {group.name for group in page.groups}


def test_another_hardware_class_is_one_link_away(client: TestClient) -> None:
    page = page_of(client)
    assert [(choice.label, choice.is_chosen) for choice in page.classes] == [("CPU", True), ("H100", False)]
    other = page_of(client, page.classes[1].address)
    assert signs_of(other, "pytorch-151589")[BAD.id] is StatusLabel.FAILS
    assert {row.issue.id for row in other.on_cpu} == {"pytorch-151290", "pytorch-154771", "fla-160"}
    assert other.elsewhere == ()


def test_columns_are_the_measured_releases_until_more_are_asked_for(client: TestClient) -> None:
    assert [head.id for head in page_of(client, MATRIX).heads] == [OLD.id, BAD.id, GOOD.id]
    assert [head.id for head in page_of(client).heads] == [OLD.id, BAD.id, GOOD.id, NEW.id]
    everything = page_of(client, f"{MATRIX}?columns=all")
    assert {head.id for head in everything.heads} == {build.id for build in BUILDS}
    assert [head.label for head in everything.heads if head.id == MISMATCHED.id] == ["2.7.1 Triton 3.2.0"]


def test_the_lines_under_the_heads_count_each_column(client: TestClient) -> None:
    page = page_of(client)
    assert {line.prospect: line.counts for line in page.column_totals} == {
        Prospect.PASSES: (1, 1, 2, 0),
        Prospect.NEEDS_WORKAROUND: (0, 1, 0, 0),
        Prospect.FAILS: (2, 1, 0, 0),  # a different failure is one, and so is what is flaky
        Prospect.NOT_KNOWN: (0, 0, 1, 3),
    }
    text = client.get(f"{MATRIX}?columns=releases").text
    assert text.index("</thead>") < text.index('<tbody class="totals">') < text.index('<tbody id="group-1"')


def test_what_does_not_apply_is_counted_nowhere(client: TestClient) -> None:
    """`pytorch-151589` needs a GPU."""
    page = page_of(client)
    applying = [row for group in page.groups for row in group.rows]
    assert {sum(counts) for counts in zip(*(line.counts for line in page.column_totals), strict=True)} == {
        len(applying)
    }


def test_a_folded_group_shows_how_its_rows_stand_in_each_column(client: TestClient) -> None:
    group = next(group for group in page_of(client, BY_COMPONENT).groups if group.name == "Inductor C++")
    assert [re.findall("<title>(.*?)</title>", bar) for bar in group.bars] == [
        ["passes: 1, fails: 1"],
        ["needs a workaround: 1, fails: 1"],
        ["passes: 1, not known: 1"],
        ["not known: 2"],
    ]
    assert 'viewBox="0 0 2 1"' in group.bars[0]
    assert re.findall(r'<rect class="(\w+)" x="(\d)" width="(\d)"', group.bars[0]) == [
        ("passes", "0", "1"),
        ("fails", "1", "1"),
    ]


def test_a_column_that_nothing_applies_to_has_no_bar() -> None:
    assert bars_of(counted([[Prospect.DOES_NOT_APPLY, Prospect.PASSES]], 2), Language.ENGLISH)[0] == ""


def test_the_signs_stand_in_one_line_of_their_own_words(client: TestClient) -> None:
    line = re.search('class="legend-line".*?</div>', client.get(MATRIX).text, re.DOTALL)
    assert line is not None
    for term in LEGEND_LINE:
        assert f"</svg>{term.word}</span>" in line[0]
    assert 'href="#legend"' in line[0]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        pytest.param("q=wrong+BMM", {"pytorch-154771"}, id="words of the title in any order and case"),
        pytest.param("q=fla", {"fla-160"}, id="part of an id"),
        pytest.param("component=Dynamo", {"fla-160"}, id="a component"),
        pytest.param("verdict=different_failure", {"fla-160"}, id="a verdict somewhere in the row"),
        pytest.param("issues=fla-160,pytorch-154771", {"fla-160", "pytorch-154771"}, id="a comma-separated list"),
        pytest.param("issues=fla-160&issues=pytorch-154771", {"fla-160", "pytorch-154771"}, id="a repeated parameter"),
        pytest.param("q=fla&component=&verdict=", {"fla-160"}, id="a form sends what was left open as empty"),
        pytest.param("q=nothing+like+it", set(), id="nothing"),
    ],
)
def test_a_filter_keeps_the_rows_asked_for(client: TestClient, query: str, shown: set[str]) -> None:
    page = page_of(client, f"{MATRIX}?{query}")
    assert {row.issue.id for group in page.groups for row in group.rows} == shown


def test_a_view_of_what_fails_on_a_build_says_so_in_words_and_counts_what_stands_over_its_column(
    client: TestClient,
) -> None:
    head = next(head for head in page_of(client).heads if head.id == BAD.id)
    link = html.unescape(re.findall(r'<a class="narrows" href="([^"]+)"', client.get(MATRIX).text)[1])
    assert link == f"{MATRIX}?fails={head.build.replace('+', '%2B')}"
    for asked in (link, f"{MATRIX}?fails=2.7.1"):
        page = page_of(client, asked)
        over = {line.prospect: line.counts[[one.id for one in page.heads].index(BAD.id)] for line in page.column_totals}
        assert page.issue_count == sum(over[prospect] for prospect in FAILING_PROSPECTS if prospect in over) == 2
        text = " ".join(client.get(asked).text.split())
        assert "2 of 4 issues fail on 2.7.1, CPU; none was left unrun." in text
        twin = client.get(page.json_address.replace("columns=releases", "columns=measured")).json()
        assert {issue["id"] for issue in twin["issues"]} == {MASK.id, SILENT.id}
    assert client.get(f"{MATRIX}?fails=nonsense").status_code == 422


def test_a_filter_that_nothing_passes_says_so_and_leads_back(client: TestClient) -> None:
    text = client.get(f"{MATRIX}?q=nothing+like+it&columns=minors").text
    assert "No issue matches this filter on CPU." in text
    assert f'href="{MATRIX}?columns=minors"' in text


def test_the_query_form_keeps_what_it_does_not_show(client: TestClient) -> None:
    asked = f"{MATRIX}?hardware={given.GPU_CLASS}&columns=all&q=x&component=Dynamo&fold=Dynamo"
    assert set(page_of(client, asked).query.hidden_fields) == {
        ("hardware", given.GPU_CLASS),
        ("columns", "all"),
        ("component", "Dynamo"),
        ("fold", "Dynamo"),
    }


BY_COMPONENT = f"{MATRIX}?columns=releases&sort=component"


def anchors(text: str) -> list[str]:
    """Addresses of every link of a page, as a browser reads them."""
    return [html.unescape(found) for found in re.findall(r'<a [^>]*href="([^"]*)"', text)]


def test_a_group_is_folded_by_its_link_and_opened_by_it_again(client: TestClient) -> None:
    opened = next(group for group in page_of(client, BY_COMPONENT).groups if group.name == "Inductor C++")
    assert not opened.fold.is_folded
    address, _, anchor = opened.fold.address.partition("#")
    text = client.get(address).text
    assert f'id="{anchor}"' in text
    assert "bmm gives wrong numbers" not in text
    assert "NameError: name" in text
    assert '<svg class="stack"' in text
    page = page_of(client, address)
    folded = next(group for group in page.groups if group.name == "Inductor C++")
    assert folded.fold.is_folded
    assert folded.fold.count == 2
    assert (page.issue_count, page.totals) == (4, page_of(client, BY_COMPONENT).totals)
    assert page_of(client, folded.fold.address) == page_of(client, BY_COMPONENT)


def test_all_groups_are_folded_by_one_link_and_any_one_is_opened_then(client: TestClient) -> None:
    folded = page_of(client, page_of(client, BY_COMPONENT).fold_all.address)
    assert all(group.fold.is_folded for group in folded.groups)
    assert folded.fold_all.is_chosen
    one = page_of(client, folded.groups[0].fold.address)
    assert [group.fold.is_folded for group in one.groups] == [False, True]
    assert not any(group.fold.is_folded for group in page_of(client, folded.fold_all.address).groups)


@pytest.fixture
def large(own_engine: Engine) -> TestClient:
    """Components of 10, 60, 100 and 1 issues on 100 builds: the second ends at 7,000 cells, the third at 17,000."""
    sizes = {"Autograd": 10, "Compiler": 60, "Distributed": 100, "Export": 1}
    issues = [make_issue(f"toy-{name}-{n}", component=name) for name, size in sizes.items() for n in range(size)]
    given.save(own_engine, issues, [make_build(f"2.{minor}.0+cu124") for minor in range(100)])
    return client_of(own_engine)


def test_a_view_too_large_begins_with_its_later_groups_folded(large: TestClient) -> None:
    page = page_of(large, f"{MATRIX}?columns=all&sort=component")
    assert [group.fold.is_folded for group in page.groups] == [False, False, True, True]
    assert "begins with its later groups folded" in large.get(f"{MATRIX}?columns=all&sort=component").text
    assert "begins with its later groups folded" not in large.get(f"{MATRIX}?columns=all&fold=none").text
    assert not any(group.fold.is_folded for group in page_of(large, f"{MATRIX}?columns=all&component=Compiler").groups)
    assert not any(group.fold.is_folded for group in page_of(large, f"{MATRIX}?builds=torch-2.7.0%2Bcu124").groups)


def test_any_group_of_a_large_view_is_opened_and_all_of_them(large: TestClient) -> None:
    page = page_of(large, f"{MATRIX}?columns=all&sort=component")
    third = page_of(large, page.groups[2].fold.address)
    assert [group.fold.is_folded for group in third.groups] == [False, False, False, True]
    opened = page_of(large, third.groups[3].fold.address)
    assert (opened.query.fold, [group.fold.is_folded for group in opened.groups]) == (["none"], [False] * 4)
    assert page_of(large, page.fold_all.address) == opened
    folded = page_of(large, opened.fold_all.address)
    assert all(group.fold.is_folded for group in folded.groups)
    assert page_of(large, folded.fold_all.address) == opened


def test_a_large_view_of_one_group_shows_it(own_engine: Engine) -> None:
    issues = [make_issue(f"toy-{n}") for n in range(130)]
    given.save(own_engine, issues, [make_build(f"2.{minor}.0+cu124") for minor in range(100)])
    (group,) = page_of(client_of(own_engine), f"{MATRIX}?columns=all").groups
    assert not group.fold.is_folded


def test_a_fold_of_what_is_not_there_folds_nothing(client: TestClient) -> None:
    assert not any(group.fold.is_folded for group in page_of(client, f"{MATRIX}?fold=Nobody").groups)


def test_the_address_of_a_view_names_all_that_it_shows(client: TestClient) -> None:
    page = page_of(client, f"{MATRIX}?q=fla&fold=Dynamo&columns=minors&python=3.11")
    assert MATRIX + page.query.asking(hardware=HARDWARE) == (
        f"{MATRIX}?python=3.11&q=fla&hardware={HARDWARE}&columns=minors&fold=Dynamo"
    )
    again = page_of(client, MATRIX + page.query.asking(hardware=HARDWARE))
    assert [(group.rows, group.fold.is_folded) for group in again.groups] == [
        (group.rows, group.fold.is_folded) for group in page.groups
    ]


def test_every_link_of_the_page_leads_somewhere(client: TestClient) -> None:
    for address in set(anchors(client.get(f"{MATRIX}?columns=all&q=bmm").text)):
        if address.startswith("/") and not address.startswith(("/preferences", "/upgrade", "/errors", "/compare")):
            assert client.get(address, follow_redirects=True).status_code == 200, address


def test_what_is_downloaded_is_what_the_page_shows(client: TestClient) -> None:
    page = page_of(client, f"{MATRIX}?q=bmm&columns=releases&fold=Inductor+C%2B%2B")
    lines = list(csv.DictReader(StringIO(client.get(page.csv_address).text)))
    assert {line["issue"] for line in lines} == {"pytorch-154771"}
    assert [line["build"] for line in lines] == [head.id for head in page.heads]
    twin = client.get(page.json_address).json()
    assert [cell["build"] for cell in twin["cells"]] == [head.id for head in page.heads]


def test_named_builds_are_named_at_every_door(client: TestClient) -> None:
    page = page_of(client, f"{MATRIX}?builds={MISMATCHED.id}&q=fla".replace("+", "%2B"))
    for address in (page.csv_address, page.markdown_address, page.json_address):
        answer = client.get(address)
        assert answer.status_code == 200
        assert GOOD.id not in answer.text


def test_the_markdown_has_a_sign_for_each_cell_and_says_what_it_means(client: TestClient) -> None:
    text = client.get(page_of(client, f"{MATRIX}?columns=releases").markdown_address).text
    title, head, rule, *rest = [line for line in text.splitlines() if line]
    assert title.startswith("**3 issues × 4 builds on cpu-x86\\_64**")  # noqa: RUF001 - the sign for times
    assert "1 more do not apply there." in title
    assert head == "| issue | 2.5.1 cu124 | 2.7.1 cu126 | 2.8.0 cu128 | 2.9.0 cu128 | history |"
    assert rule == "| :-- | :-: | :-: | :-: | :-: | :-- |"
    silent = next(line for line in rest if "154771" in line)
    assert silent == (
        "| [bmm gives wrong numbers](http://testserver/issues/pytorch-154771) pytorch-154771 ∆ "
        f"| ✕° | \\~ | ? |  | {english(row_of(page_of(client), 'pytorch-154771').sentence)} |"
    )
    assert rest[-1] == (
        "✓ passes · ✕' fails, has a workaround · ✕ fails, no workaround found · ≠ fails differently · "
        "\\~ flaky · ? cannot say · (empty) not run · ° old: to be run again · ∆ wrong numbers without an error"
    )


def test_a_very_large_matrix_has_characters_for_drawings(own: TestClient, own_engine: Engine) -> None:
    issues = [make_issue(f"toy-{n}") for n in range(1, 202)]
    builds = [make_build(f"2.{minor}.0+cu124") for minor in range(1, 41)]
    given.save(own_engine, issues, builds)
    large, small = own.get(MATRIX), own.get(f"{MATRIX}?issues=toy-1")
    assert '<table class="matrix plain many"' in large.text
    assert '"><svg><use href="#s-notrun"/></svg></a>' not in large.text
    assert '"><svg><use href="#s-notrun"/></svg></a>' in small.text


def test_an_empty_store_says_the_one_command_that_fills_it(own: TestClient) -> None:
    assert "knowngood up" in own.get(MATRIX).text


def test_a_catalogue_without_results_shows_its_rows_and_the_command(own: TestClient, own_engine: Engine) -> None:
    with unit_of_work(own_engine) as s:
        save_catalogue(s, ISSUES, BUILDS, NOON)
    text = own.get(MATRIX).text
    assert "create_block_mask fails" in text
    assert "knowngood up" in text


def test_a_run_that_goes_on_is_announced_and_followed(own: TestClient, own_engine: Engine) -> None:
    with unit_of_work(own_engine) as s:
        save_catalogue(s, ISSUES, BUILDS, NOON)
    run = given.queue(own_engine, Asked([BAD], given.NOW - timedelta(minutes=1)))
    text = own.get(MATRIX).text
    assert "Measuring now: 0 of 9 attempts done." in text
    assert f'href="/runs/{run}"' in text
    assert 'data-live="/api/v1/events?after=' in text


BAD_312, GOOD_312 = (make_build(plain.torch, pinned_triton=plain.pinned_triton, python="3.12") for plain in (BAD, GOOD))


def _with_pythons(engine: Engine) -> None:
    """2.7.1 was measured with two Pythons that disagree on one issue, 2.8.0 with another Python than the default."""
    given.save(engine, ISSUES, [*BUILDS, BAD_312, GOOD_312])
    given.run(engine, Asked([BAD, GOOD_312], NOON))
    given.run(engine, Asked([BAD_312], NOON), lambda *_: Outcome.PASS)


@pytest.fixture
def mixed(store_with: StoreWith) -> TestClient:
    return client_of(store_with(_with_pythons))


def test_a_column_shows_the_python_that_was_measured_and_leads_to_that_very_cell(mixed: TestClient) -> None:
    page = page_of(mixed, f"{MATRIX}?columns=releases&q=fla")
    assert [(head.id, head.python) for head in page.heads] == [
        (OLD.id, "3.11"),
        (BAD.id, "3.11/12"),
        (GOOD_312.id, "3.12"),
        (NEW.id, "3.11"),
    ]
    shown = {square.head.id: (square.build, square.sign) for square in row_of(page, "fla-160").squares}
    assert shown[GOOD_312.id] == (GOOD_312.id, StatusLabel.PASSES)
    assert shown[BAD.id] == (BAD.id, StatusLabel.PASSES)
    assert shown[NEW.id] == (NEW.id, StatusLabel.NOT_RUN)
    assert page.totals.measured == 2
    text = mixed.get(f"{MATRIX}?q=fla").text
    assert f'/cells/fla-160/{GOOD_312.id.replace("+", "%2B")}?hardware={HARDWARE}"' in text
    assert f'aria-label="passes: fla-160 on {GOOD_312.id}"' in text
    assert "<span>Python</span>" in text


@pytest.mark.parametrize(
    ("pythons", "told"),
    [
        (["3.12"], "3.12"),
        (["3.11", "3.10"], "3.10/11"),
        (["3.11", "3.10", "3.12", "3.13"], "3.10\N{EN DASH}13"),
        (["3.11", "3.9", "3.12"], "3.9/11/12"),
    ],
)
def test_pythons_that_share_a_column_are_named_in_its_width(pythons: list[str], told: str) -> None:
    twins = tuple(make_build(BAD.torch, python=python) for python in pythons)
    (head,) = heads_of([Column(twins)], {twin.id for twin in twins})
    assert head.python == told


def test_pythons_that_disagree_share_a_column_and_their_cell_has_a_dot(mixed: TestClient) -> None:
    page = page_of(mixed, MATRIX)
    assert [(head.id, head.label) for head in page.heads] == [(BAD.id, "2.7.1"), (GOOD_312.id, "2.8.0")]
    (differs, _), (agrees, _) = (row_of(page, id_).squares for id_ in ("pytorch-151290", "fla-160"))
    assert (differs.sign, differs.text) == (StatusLabel.UNSURE, "·")
    assert (agrees.sign, agrees.text) == (StatusLabel.PASSES, "")
    sentence = "passes on 2.8.0, the one with an answer (2.7.1 differs by Python) · 1 workaround helps"
    assert english(row_of(page, "pytorch-151290").sentence) == sentence


def test_the_counts_over_a_column_are_those_of_the_page_of_its_release(mixed: TestClient) -> None:
    page = page_of(mixed, f"{MATRIX}?columns=releases")
    lines = {line.prospect: line.counts for line in page.column_totals}
    for at, head in enumerate(page.heads):
        (standing,) = mixed.get(f"/api/v1/releases/{head.release}").json()["standings"]
        failing = lines[Prospect.NEEDS_WORKAROUND][at] + lines[Prospect.FAILS][at]
        counts = failing, lines[Prospect.PASSES][at], lines[Prospect.NOT_KNOWN][at]
        assert counts == (standing["fails"], standing["passes"], standing["not_known"])


def test_all_columns_and_builds_that_are_named_are_never_folded(mixed: TestClient) -> None:
    everything = [head.id for head in page_of(mixed, f"{MATRIX}?columns=all&q=fla").heads]
    assert everything == [OLD.id, CPU_ONLY.id, BAD.id, BAD_312.id, MISMATCHED.id, GOOD.id, GOOD_312.id, NEW.id]
    named = page_of(mixed, f"{MATRIX}?builds={GOOD.id},{GOOD_312.id}&q=fla".replace("+", "%2B"))
    assert [head.id for head in named.heads] == [GOOD.id, GOOD_312.id]


def test_the_choices_of_columns_count_what_they_show(mixed: TestClient) -> None:
    for choice in page_of(mixed, MATRIX).columns:
        assert choice.label.endswith(f"({len(page_of(mixed, choice.address).heads)})")


def test_one_python_alone_is_a_link_away(mixed: TestClient) -> None:
    page = page_of(mixed, MATRIX)
    assert [(one.label, one.is_chosen) for one in page.pythons] == [("all", True), ("3.11", False), ("3.12", False)]
    alone = page_of(mixed, page.pythons[2].address)
    assert [head.id for head in alone.heads] == [BAD_312.id, GOOD_312.id]
    assert signs_of(alone, "pytorch-151290") == {BAD_312.id: StatusLabel.PASSES, GOOD_312.id: StatusLabel.PASSES}
    told = "passes on 2.8.0, the one with an answer (2.7.1 differs by Python) · 1 workaround helps"
    assert english(row_of(page, "pytorch-151290").sentence) == english(row_of(alone, "pytorch-151290").sentence) == told
    lines = csv.DictReader(StringIO(mixed.get(alone.csv_address).text))
    assert {line["python"] for line in lines} == {"3.12"}


def test_a_python_that_no_build_has_is_refused_with_those_there_are(mixed: TestClient) -> None:
    answer = mixed.get(f"{MATRIX}?python=3.13")
    assert answer.status_code == 422
    assert "no Python is called" in html.unescape(answer.text)


def test_python_is_no_choice_where_one_was_measured(client: TestClient) -> None:
    assert page_of(client).pythons == ()


def test_python_is_named_only_where_one_is_not_the_default(client: TestClient) -> None:
    assert not page_of(client).names_python
    assert "<span>Python</span>" not in client.get(MATRIX).text


def test_a_matrix_takes_twelve_queries_however_large_and_four_where_all_that_is_known_is_kept(
    notebook: Engine, count_statements: CountStatements
) -> None:
    client = client_of(notebook)
    # The generation twice, classes, the run that goes on; what is known: cells, issues twice, builds, watch lists,
    # what workarounds cost, what wheels hold code for (whether it changed, and it), which the first page reads.
    for number in (12, 4):
        with count_statements(notebook) as said:
            client.get(f"{MATRIX}?columns=all")
        assert len(said) == number, said


VIEWS = (
    MATRIX,
    f"{MATRIX}?columns=all",
    f"{MATRIX}?columns=all&lang=zh",
    f"{MATRIX}?columns=minors&q=2",
    f"{MATRIX}?hardware={given.GPU_CLASS}",
)


def test_a_page_made_of_what_was_kept_is_the_one_made_anew(own: TestClient, own_engine: Engine) -> None:
    """After whatever it shows has changed: a result, a note, a title, a build, and the time."""
    now = [given.NOW]  # the clock of both

    def told(client: TestClient) -> list[str]:
        app_of(client).state.state = replace(client_state(client), clock=lambda: now[0])
        return [client.get(address).text for address in VIEWS]

    def wait() -> None:
        now[0] = NOON + timedelta(days=180, minutes=1)

    def note(kind: NoteKind) -> Callable[[], None]:
        return lambda: _say(own_engine, CellKey(given.DYNAMO.id, OLD.id, HARDWARE), kind)

    retold = [replace(given.MASK, title="Other <words>", title_zh=""), *ISSUES[1:]]
    changes = (
        lambda: given.fill(own_engine),
        lambda: given.run(own_engine, Asked([NEW], NOON + timedelta(hours=2), issues=[given.MASK])),
        note(NoteKind.VOID),
        note(NoteKind.RESTORE),
        lambda: given.save(own_engine, retold, BUILDS),
        lambda: given.save(own_engine, retold, [replace(BAD, note="Another note."), *BUILDS[2:]]),
        lambda: given.save(own_engine, retold[1:], BUILDS),
        wait,
    )
    before = told(own)
    for change in changes:
        change()
        after = told(own)
        assert after != before
        assert after == told(client_of(own_engine))
        before = after


def _say(engine: Engine, cell: CellKey, kind: NoteKind) -> None:
    with unit_of_work(engine) as s:
        add_note(s, cell, kind, "a torn disk", by=Actor("Ada"), now=NOON + timedelta(hours=2))


def test_words_and_titles_are_chinese_where_asked_for(client: TestClient) -> None:
    text = client.get(f"{MATRIX}?lang=zh").text
    assert '<html lang="zh">' in text
    assert "create_block_mask 编译失败" in text
    assert f'aria-label="失败，有解法: pytorch-151290 on {BAD.id}"' in text  # noqa: RUF001 - Chinese
