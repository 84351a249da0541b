"""The issue page: the sentence first, the cure for the reader's build, claims beside measurements."""

from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from app.domain.outcome import Outcome
from app.domain.verdict import WorkaroundVerdict
from app.store.session import Engine
from app.web.pages.issue import IssuePage
from app.web.signs import Sign
from tests.conftest import CountStatements
from tests.make import HARDWARE, NOON, make_build
from tests.web import given
from tests.web.asking import shown
from tests.web.given import BAD, BUILDS, GOOD, ISSUES, MASK, MISMATCHED, NEW, OLD, Asked

ADDRESS = f"/issues/{MASK.id}"


def page_of(client: TestClient, address: str = ADDRESS) -> IssuePage:
    return shown(client, address, IssuePage)


def test_the_first_line_says_where_it_fails_and_how_many_cures_there_are(client: TestClient) -> None:
    text = " ".join(client.get(ADDRESS).text.split())
    assert "Fails in 2.7.1, fixed in (2.7.1, 2.8.0]." in text
    assert f"1 of 2 workarounds work on {BAD.id}." in text


def test_the_newest_failing_release_is_chosen_and_its_cures_come_first(client: TestClient) -> None:
    page = page_of(client)
    assert page.build == BAD
    assert [(remedy.id, remedy.verdict, remedy.rank) for remedy in page.remedies] == [
        ("eager_mask", WorkaroundVerdict.EFFECTIVE, 1),
        ("flags", WorkaroundVerdict.INEFFECTIVE, 0),
    ]


def test_a_workaround_for_other_releases_is_named_and_not_offered(own: TestClient, sqlite_engine: Engine) -> None:
    arms = tuple(replace(arm, applies_to=">=2.8") if arm.id == "flags" else arm for arm in MASK.arms)
    issue = replace(MASK, arms=arms)
    given.save(sqlite_engine, [issue], [BAD, GOOD])
    unmeasured = page_of(own, f"{ADDRESS}?build={BAD.id.replace('+', '%2B')}")
    given.run(sqlite_engine, Asked([BAD], NOON, issues=[issue]))
    for page in (unmeasured, page_of(own)):
        assert [remedy.id for remedy in page.remedies] == ["eager_mask"]
        assert [(one.id, one.note) for one in page.elsewhere] == [
            ("flags", "does not apply to this build: this workaround is for torch >=2.8")
        ]
    text = " ".join(own.get(ADDRESS).text.split())
    assert f"1 of 1 workarounds work on {BAD.id}." in text
    assert "Change the compiler: does not apply to this build" in text
    cell = f"/cells/{MASK.id}/{BAD.id.replace('+', '%2B')}"
    assert "Change the compiler: does not apply to this build" in " ".join(own.get(cell).text.split())
    told = own.get(f"/api/v1{cell}").json()
    assert [(one["id"], one["applies"]) for one in told["findings"]] == [("eager_mask", True), ("flags", False)]
    assert told["workarounds"] == {"eager_mask": "effective", "flags": "unverified"}


def test_a_reader_names_the_build_with_plus_percent_or_space(client: TestClient) -> None:
    for written in ("torch-2.8.0%2Bcu128", "torch-2.8.0+cu128", "torch-2.8.0%20cu128"):
        page = page_of(client, f"{ADDRESS}?build={written}")
        assert page.build == GOOD
        assert page.sign is Sign.PASSES
    assert "Nothing to do on this build." in client.get(f"{ADDRESS}?build=torch-2.8.0%2Bcu128").text


def test_a_strip_has_a_square_for_every_release_and_what_was_measured_beside_them(client: TestClient) -> None:
    (strip,) = page_of(client).strips
    assert strip.hardware == HARDWARE
    assert {square.head.id for square in strip.squares} == {OLD.id, BAD.id, GOOD.id, NEW.id}


def test_a_strip_folds_pythons_where_they_agree_on_this_issue(own: TestClient, sqlite_engine: Engine) -> None:
    twins = [make_build(one.torch, pinned_triton=one.pinned_triton, python="3.12") for one in (BAD, GOOD, NEW)]
    given.save(sqlite_engine, ISSUES, [*BUILDS, *twins])
    given.run(sqlite_engine, Asked([BAD, twins[1]], NOON, issues=[MASK]))
    given.run(sqlite_engine, Asked([twins[0]], NOON, issues=[MASK]), lambda *_: Outcome.PASS)
    page = page_of(own)
    (strip,) = page.strips
    assert [(square.head.label, square.build, square.sign) for square in strip.squares] == [
        ("2.5.1", OLD.id, Sign.NOT_RUN),
        ("2.7.1", BAD.id, Sign.CURE),
        ("2.7.1 py3.12", twins[0].id, Sign.PASSES),
        ("2.8.0", twins[1].id, Sign.PASSES),
        ("2.9.0", NEW.id, Sign.NOT_RUN),
    ]
    assert strip.sentence == "Passes on 2.8.0, the one measured"
    assert page.build == BAD
    assert set(page.builds) == {build.id for build in (*BUILDS, *twins[:2])}


def test_the_build_shown_is_of_the_default_python_where_nothing_else_decides(
    own: TestClient, sqlite_engine: Engine
) -> None:
    twin = make_build(NEW.torch, pinned_triton=NEW.pinned_triton, python="3.13")
    given.save(sqlite_engine, ISSUES, [*BUILDS, twin])
    assert page_of(own).build == NEW
    given.run(sqlite_engine, Asked([twin], NOON, issues=[MASK]), lambda *_: Outcome.PASS)
    assert page_of(own).build == twin


def test_what_a_catalogue_says_is_rendered_and_its_markup_is_inert(client: TestClient) -> None:
    text = client.get(ADDRESS).text
    assert "<strong>C++ error</strong>" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_claims_stand_beside_what_was_measured(client: TestClient) -> None:
    text = client.get(ADDRESS).text
    assert "Fixed by #151887." in text
    assert "2025-04-23" in text
    assert "Measured here" in text


def test_evidence_lists_every_measured_cell_newest_release_first(client: TestClient) -> None:
    evidence = page_of(client).evidence
    assert [line.cell.build for line in evidence] == [GOOD.id, MISMATCHED.id, BAD.id, OLD.id]
    assert evidence[2].cell.line == given.LINE
    assert evidence[3].is_stale


def test_the_repro_is_shown_and_downloaded_as_it_is(client: TestClient) -> None:
    assert page_of(client).repro_address == f"{ADDRESS}/repro.py"
    response = client.get(f"{ADDRESS}/repro.py")
    assert response.text == MASK.script
    assert response.headers["content-type"].startswith("text/x-python")
    assert '<span class="k">def</span>' in client.get(ADDRESS).text


def test_the_commands_to_rerun_name_the_chosen_build(client: TestClient) -> None:
    commands = page_of(client, f"{ADDRESS}?build={OLD.id.replace('+', '%2B')}").commands
    assert commands.ours == f"knowngood run --builds {OLD.id} --issues {MASK.id} --hardware {HARDWARE} --force"
    assert "--exclude-newer 2024-11-30 torch==2.5.1 numpy setuptools" in commands.plain
    assert commands.plain.startswith("curl -O http://testserver/issues/pytorch-151290/repro.py\n")


def test_an_issue_of_gpus_opens_on_the_class_it_was_measured_on(client: TestClient) -> None:
    page = page_of(client, "/issues/pytorch-151589")
    assert page.hardware == given.GPU_CLASS
    assert page.build == BAD


def test_an_issue_that_was_never_run_says_how(own: TestClient, sqlite_engine: Engine) -> None:
    given.save(sqlite_engine, ISSUES, BUILDS)
    text = own.get(ADDRESS).text
    assert "No attempt is stored yet." in text
    assert f"knowngood run --builds {NEW.id} --issues {MASK.id}" in text


def test_a_catalogue_without_builds_is_no_fault(own: TestClient, sqlite_engine: Engine) -> None:
    given.save(sqlite_engine, ISSUES, ())
    response = own.get(ADDRESS)
    assert response.status_code == 422
    assert "knowngood up" in response.text


def test_an_issue_page_takes_four_queries(
    client: TestClient, notebook: Engine, count_statements: CountStatements
) -> None:
    with count_statements(notebook) as said:
        client.get(ADDRESS)
    assert len(said) == 4, said  # generation, the issue, builds, its cells


def test_chinese_readers_get_the_twin_texts_where_there_are_any(client: TestClient) -> None:
    page = page_of(client, f"{ADDRESS}?lang=zh")
    assert page.title == "create_block_mask 编译失败"
    assert page.remedies[0].title == "不编译"
    assert page.remedies[1].title == "Change the compiler"


@pytest.mark.parametrize(
    "address", [f"{ADDRESS}?build=nonsense", f"{ADDRESS}?build=torch-9.9.9", f"{ADDRESS}?hardware=x"]
)
def test_a_build_or_class_we_do_not_have_is_refused_with_words(client: TestClient, address: str) -> None:
    response = client.get(address)
    assert response.status_code == 422
    assert "torch-9.9.9" in response.text or "known" in response.text or "does not start with" in response.text
