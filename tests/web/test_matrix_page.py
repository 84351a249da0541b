"""The matrix: what stands where, what it adds up to, and what the address can ask for."""

from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from app.domain.outcome import Outcome
from app.store import writes
from app.store.session import Engine, unit_of_work
from app.web.pages.matrix import MatrixPage, Row
from app.web.signs import Sign
from tests.conftest import CountStatements
from tests.make import HARDWARE, NOON, make_build
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, BUILDS, CPU_ONLY, GOOD, ISSUES, MISMATCHED, NEW, OLD, Asked


def page_of(client: TestClient, address: str = "/?columns=releases") -> MatrixPage:
    return shown(client, address, MatrixPage)


def row_of(page: MatrixPage, issue: str) -> Row:
    return next(row for group in page.groups for row in group.rows if row.issue.id == issue)


def signs_of(page: MatrixPage, issue: str) -> dict[str, Sign]:
    return {square.head.id: square.sign for square in row_of(page, issue).squares}


def test_each_cell_has_the_sign_of_its_verdict(client: TestClient) -> None:
    page = page_of(client)
    assert signs_of(page, "pytorch-151290") == {
        OLD.id: Sign.PASSES,
        BAD.id: Sign.CURE,
        GOOD.id: Sign.PASSES,
        NEW.id: Sign.NOT_RUN,
    }
    assert signs_of(page, "pytorch-154771") == {
        OLD.id: Sign.FAILS,
        BAD.id: Sign.FLAKY,
        GOOD.id: Sign.UNSURE,
        NEW.id: Sign.NOT_RUN,
    }
    assert signs_of(page, "fla-160")[OLD.id] is Sign.DIFFERENT


def test_a_flaky_cell_says_how_often(client: TestClient) -> None:
    squares = {square.head.id: square for square in row_of(page_of(client), "pytorch-154771").squares}
    assert squares[BAD.id].text == "1/2"


def test_a_cell_has_an_accessible_name_with_verdict_issue_and_build(client: TestClient) -> None:
    text = client.get("/").text
    assert f'aria-label="fails, has a cure: pytorch-151290 on {BAD.id}"' in text
    assert f'aria-label="old: passes: pytorch-151290 on {OLD.id}"' in text


def test_old_results_are_hatched_and_counted(client: TestClient) -> None:
    page = page_of(client)
    stale = {square.head.id for square in row_of(page, "fla-160").squares if square.is_stale}
    assert stale == {OLD.id}
    assert page.totals.stale == 3


def test_the_first_line_says_what_there_is(client: TestClient) -> None:
    text = " ".join(client.get("/?columns=releases").text.split())
    assert "4 issues × 4 builds on cpu-x86_64" in text  # noqa: RUF001 - the sign for times
    assert "9 of 12 cells measured, 1 cannot say, 3 stale · last result" in text
    assert "1 h ago" in text


def test_a_row_ends_with_the_history_of_all_releases_and_the_number_of_cures(client: TestClient) -> None:
    page = page_of(client, f"/?builds={BAD.id.replace('+', '%2B')}")
    assert len(page.heads) == 1
    assert row_of(page, "pytorch-151290").sentence == "fails in 2.7.1, fixed in (2.7.1, 2.8.0] · 1 workaround helps"


def test_issues_that_apply_to_no_column_stand_below_with_the_reason(client: TestClient) -> None:
    page = page_of(client)
    assert [row.issue.id for row in page.elsewhere] == ["pytorch-151589"]
    assert "needs a CUDA GPU" in page.elsewhere[0].sentence
    assert "Inductor Triton" not in {group.component for group in page.groups}


def test_another_hardware_class_is_one_link_away(client: TestClient) -> None:
    page = page_of(client)
    assert [(choice.label, choice.is_chosen) for choice in page.classes] == [(HARDWARE, True), (given.GPU_CLASS, False)]
    other = page_of(client, page.classes[1].address)
    assert signs_of(other, "pytorch-151589")[BAD.id] is Sign.FAILS
    assert {row.issue.id for row in other.elsewhere} == {"pytorch-151290", "pytorch-154771", "fla-160"}


def test_columns_are_the_measured_releases_until_more_are_asked_for(client: TestClient) -> None:
    assert [head.id for head in page_of(client, "/").heads] == [OLD.id, BAD.id, GOOD.id]
    assert [head.id for head in page_of(client).heads] == [OLD.id, BAD.id, GOOD.id, NEW.id]
    everything = page_of(client, "/?columns=all")
    assert {head.id for head in everything.heads} == {build.id for build in BUILDS}
    assert [head.label for head in everything.heads if head.id == MISMATCHED.id] == ["2.7.1 Triton 3.2.0"]


def test_column_feet_count_what_fails_and_passes(client: TestClient) -> None:
    feet = {foot.sign: foot.counts for foot in page_of(client).feet}
    assert feet == {Sign.FAILS: (1, 0, 0, 0), Sign.CURE: (0, 1, 0, 0), Sign.PASSES: (1, 1, 2, 0)}


def test_a_folded_group_shows_the_gravest_sign_of_each_column(client: TestClient) -> None:
    group = next(group for group in page_of(client).groups if group.component == "Inductor C++")
    assert group.heat == (Sign.FAILS, Sign.CURE, Sign.UNSURE, Sign.NOT_RUN)


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
    page = page_of(client, f"/?{query}")
    assert {row.issue.id for group in page.groups for row in group.rows} == shown


def test_a_filter_that_nothing_passes_says_so_and_leads_back(client: TestClient) -> None:
    text = client.get("/?q=nothing+like+it&columns=minors").text
    assert "No issue matches this filter." in text
    assert 'href="/?columns=minors"' in text


def test_the_filter_form_keeps_what_it_does_not_show(client: TestClient) -> None:
    assert page_of(client, f"/?hardware={given.GPU_CLASS}&columns=all&q=x").kept == (
        ("hardware", given.GPU_CLASS),
        ("columns", "all"),
    )


def test_an_empty_store_says_the_one_command_that_fills_it(own: TestClient) -> None:
    assert "knowngood up" in own.get("/").text


def test_a_catalogue_without_results_shows_its_rows_and_the_command(own: TestClient, sqlite_engine: Engine) -> None:
    with unit_of_work(sqlite_engine) as s:
        writes.save_catalogue(s, ISSUES, BUILDS, NOON)
    text = own.get("/").text
    assert "create_block_mask fails" in text
    assert "knowngood up" in text


def test_a_run_that_goes_on_is_announced_and_followed(own: TestClient, sqlite_engine: Engine) -> None:
    with unit_of_work(sqlite_engine) as s:
        writes.save_catalogue(s, ISSUES, BUILDS, NOON)
    run = given.queue(sqlite_engine, Asked([BAD], given.NOW - timedelta(minutes=1)))
    text = own.get("/").text
    assert "Measuring now: 0 of 9 attempts done." in text
    assert f'href="/runs/{run}"' in text
    assert 'data-live="/api/v1/events?after=' in text


BAD_312, GOOD_312 = (make_build(plain.torch, pinned_triton=plain.pinned_triton, python="3.12") for plain in (BAD, GOOD))


@pytest.fixture
def mixed(own: TestClient, sqlite_engine: Engine) -> TestClient:
    """2.7.1 was measured with two Pythons that disagree on one issue, 2.8.0 with another Python than the default."""
    given.save(sqlite_engine, ISSUES, [*BUILDS, BAD_312, GOOD_312])
    given.run(sqlite_engine, Asked([BAD, GOOD_312], NOON))
    given.run(sqlite_engine, Asked([BAD_312], NOON), lambda *_: Outcome.PASS)
    return own


def test_a_column_shows_the_python_that_was_measured_and_leads_to_that_very_cell(mixed: TestClient) -> None:
    page = page_of(mixed, "/?columns=releases&q=fla")
    assert [(head.id, head.python) for head in page.heads] == [
        (OLD.id, "3.11"),
        (BAD.id, "3.11/12"),
        (GOOD.id, "3.12"),
        (NEW.id, "3.11"),
    ]
    shown = {square.head.id: (square.build, square.sign) for square in row_of(page, "fla-160").squares}
    assert shown[GOOD.id] == (GOOD_312.id, Sign.PASSES)
    assert shown[BAD.id] == (BAD.id, Sign.PASSES)
    assert shown[NEW.id] == (NEW.id, Sign.NOT_RUN)
    assert page.totals.measured == 2
    text = mixed.get("/?q=fla").text
    assert f'/cells/fla-160/{GOOD_312.id.replace("+", "%2B")}?hardware={HARDWARE}"' in text
    assert f'aria-label="passes: fla-160 on {GOOD_312.id}"' in text
    assert "<span>Python</span>" in text


def test_pythons_that_disagree_are_columns_of_their_own_in_every_row(mixed: TestClient) -> None:
    page = page_of(mixed, "/")
    assert [(head.id, head.label) for head in page.heads] == [
        (BAD.id, "2.7.1"),
        (BAD_312.id, "2.7.1 py3.12"),
        (GOOD.id, "2.8.0"),
    ]
    assert signs_of(page, "pytorch-151290") == {BAD.id: Sign.CURE, BAD_312.id: Sign.PASSES, GOOD.id: Sign.PASSES}
    assert signs_of(page, "fla-160") == {BAD.id: Sign.PASSES, BAD_312.id: Sign.PASSES, GOOD.id: Sign.PASSES}
    assert row_of(page, "pytorch-151290").sentence.startswith("passes on 2.8.0, the one measured")


def test_all_columns_and_builds_that_are_named_are_never_folded(mixed: TestClient) -> None:
    everything = [head.id for head in page_of(mixed, "/?columns=all&q=fla").heads]
    assert everything == [OLD.id, CPU_ONLY.id, BAD.id, BAD_312.id, MISMATCHED.id, GOOD.id, GOOD_312.id, NEW.id]
    named = page_of(mixed, f"/?builds={GOOD.id},{GOOD_312.id}&q=fla".replace("+", "%2B"))
    assert [head.id for head in named.heads] == [GOOD.id, GOOD_312.id]


def test_the_choices_of_columns_count_what_they_show(mixed: TestClient) -> None:
    for choice in page_of(mixed, "/").columns:
        assert choice.label.endswith(f"({len(page_of(mixed, choice.address).heads)})")


def test_python_is_named_only_where_one_is_not_the_default(client: TestClient) -> None:
    assert not page_of(client).names_python
    assert "<span>Python</span>" not in client.get("/").text


def test_a_matrix_takes_six_queries_however_large(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get("/?columns=all")
    assert len(said) == 6, said  # generation, classes, issues, builds, cells, the run that goes on


def test_words_and_titles_are_chinese_where_asked_for(client: TestClient) -> None:
    text = client.get("/?lang=zh").text
    assert '<html lang="zh">' in text
    assert "create_block_mask 编译失败" in text
    assert f'aria-label="失败，有解法: pytorch-151290 on {BAD.id}"' in text  # noqa: RUF001 - Chinese
