"""The note for a pull request: what it tells, in which order, and that nobody's words can become markup."""

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import Issue, Link, LinkKind, Workaround
from knowngood.domain.message import english, quoted
from knowngood.domain.verdicts.inference import PYTHON_RULE
from knowngood.domain.verdicts.paired_time import TimedCost, compared
from knowngood.domain.verdicts.verdict import Basis, Cell, VariantFinding, Verdict
from knowngood.gate.renderers.common import one_line
from knowngood.move.upgrade.candidates import Candidate, UpgradeQuestion
from knowngood.move.upgrade.constraints import Constraints
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.renderers import LONGEST, migration_note, upgrade_text
from knowngood.move.upgrade.wording import requirements, steps
from tests.gate.given_gate import TORCH_25, TORCH_26, TORCH_27, make_cell, make_known
from tests.gate.rulings import texts
from tests.make import NOON, make_build, make_issue

FAILS, PASSES = Verdict.AFFECTED, Verdict.NOT_AFFECTED
GITHUB = MarkdownIt("gfm-like", {"linkify": False, "html": True})
SERVER = "https://known.example"


def run_twice(verdict: Verdict, issue: str, build: Build, **changes: Any) -> Cell:
    variants = (VariantFinding("default", verdict, quoted(""), 2 if verdict is FAILS else 0, changes.pop("runs", 2)),)
    return make_cell(verdict, issue, build, variants=variants, **changes)


def advice_on(
    issues: list[Issue], verdicts: dict[str, tuple[Verdict, Verdict]], **cures: dict[str, str]
) -> UpgradeAdvice:
    """From 2.5.1 to 2.6.0; `cures` are those of issues there (`b=`) and where one is (`b_before=`)."""
    cells = []
    for id_, (before, after) in verdicts.items():
        cells.append(run_twice(before, id_, TORCH_25, cures=cures.get(f"{id_}_before", {})))
        cells.append(run_twice(after, id_, TORCH_26, cures=cures.get(id_, {})))
    known = make_known(cells, *issues, builds=(TORCH_25, TORCH_26))
    return advise(
        UpgradeQuestion(TORCH_25, tuple(sorted(issues, key=lambda one: one.id)), Constraints(python="3.11")), known
    )


def everything() -> UpgradeAdvice:
    rows = {
        "a": (FAILS, PASSES),
        "b": (FAILS, FAILS),
        "c": (FAILS, FAILS),
        "d": (PASSES, FAILS),
        "e": (PASSES, Verdict.NOT_RUN),
        "f": (FAILS, PASSES),
        "g": (FAILS, PASSES),
    }
    known = [make_issue(id_, workarounds=("eager", "clone")) for id_ in rows]
    return advice_on(
        known,
        rows,
        a_before={"eager": "e"},
        a={"clone": "h"},
        b_before={"clone": "e", "eager": "e"},
        b={"clone": "e", "eager": "i"},
        d={"eager": "e"},
    )


def note_of(advice: UpgradeAdvice, base: str = SERVER, candidate: Candidate | None = None) -> str:
    return migration_note(advice, candidate or advice.candidates[0], base=base, page="/upgrade?from=2.5.1", now=NOON)


def headings(text: str) -> list[str]:
    tokens = GITHUB.parse(text)
    return [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]


def test_it_tells_what_turned_and_then_what_to_do() -> None:
    assert headings(note_of(everything())) == [
        "Upgrade torch 2.5.1 (CUDA 12.4) to torch 2.6.0 (CUDA 12.4)",
        "Lost: passed, and fails there (1)",
        "Gained: failed, and passes there (3)",
        "Still fails (1)",
        "Workarounds to add (1)",
        "Workarounds to keep (1)",
        "Workarounds no longer needed (1)",
        "Workarounds to take out (2)",
    ]


def test_what_a_workaround_costs_goes_on_in_one_sentence_with_what_it_rests_on() -> None:
    issue = make_issue("d", workarounds=("eager",))
    issue = replace(issue, workarounds=(replace(issue.workarounds[0], trade_off="Slower. Elsewhere it is this way."),))
    note = note_of(advice_on([issue], {"d": (PASSES, FAILS)}, d={"eager": "e"}))
    assert "(Slower. Elsewhere it is this way; " in note


def test_each_workaround_is_added_kept_or_taken_out_for_its_reason() -> None:
    found = steps(everything().candidates[0])
    named = {
        name: [(step.item.issue.id, step.workaround.id, english(step.why)) for step in group]
        for name, group in found.items()
    }
    assert named == {
        "add": [("d", "eager", "")],
        "keep": [("b", "clone", "")],
        "remove": [("a", "eager", "")],
        "avoid": [
            ("b", "eager", "helps now, and does not there: so it was seen"),
            ("a", "clone", "does harm there: so it was seen"),
        ],
    }


def line_of(text: str, title: str) -> str:
    (line,) = [line for line in text.splitlines() if line.startswith(f"- {title} ")]
    return line


def test_it_links_the_evidence_and_is_dated() -> None:
    text = note_of(everything())
    assert f"[measured 2026-11-21](<{SERVER}/cells/a/torch-2.6.0%2Bcu124?hardware=cpu-x86_64>)" in text
    assert text.endswith(f"[Known Good](<{SERVER}/upgrade?from=2.5.1>), 2026-11-21.\n")
    assert "knowngood run --builds torch-2.6.0+cu124 --issues e --hardware cpu-x86_64 --where-affected" in text


def test_an_issue_stands_by_its_title_with_its_thread_and_the_state_it_was_seen_in() -> None:
    thread = "https://github.com/pytorch/pytorch/issues/151290"
    issue = make_issue("a", title="It fails", silent=True)
    links = (Link(LinkKind.REPORT, thread, "pytorch#151290", "closed", date(2026, 11, 20)),)
    text = note_of(advice_on([replace(issue, links=links)], {"a": (FAILS, PASSES)}), base="")
    assert line_of(text, "It fails") == (
        f"- It fails ([pytorch#\u200b151290](<{thread}>), closed as of 2026-11-20; ∆ wrong numbers, no error)"
    )


def test_what_rests_on_one_run_or_is_inferred_is_marked() -> None:
    """With what it is inferred from, and how well that holds."""
    basis = Basis(PYTHON_RULE, f"{TORCH_26.id}~py312", "cpu-x86_64", 149, 150)
    cells = [
        run_twice(FAILS, "a", TORCH_25),
        run_twice(PASSES, "a", TORCH_26, runs=1),
        run_twice(FAILS, "b", TORCH_25),
        run_twice(PASSES, "b", TORCH_26, basis=basis),
    ]
    issues = [make_issue(id_) for id_ in "ab"]
    known = make_known(cells, *issues, builds=(TORCH_25, TORCH_26))
    text = note_of(advise(UpgradeQuestion(TORCH_25, tuple(issues)), known), base="")
    assert "1 run)" in line_of(text, "a fails to compile")
    said = line_of(text, "b fails to compile")
    assert "inferred; " in said
    assert "inferred from torch 2.6.0 (CUDA 12.4, Python 3.12) (these Pythons agreed in 149 of 150 cells)" in said


def test_without_a_server_it_links_the_reports_alone() -> None:
    text = note_of(everything(), base="")
    assert "](</" not in text
    assert "/cells/" not in text
    assert "(<https://github.com/pytorch/pytorch/issues/1>)" in text


def a_team(long: str) -> UpgradeAdvice:
    """Fifteen issues: five of each kind, all with snippets of `long`."""
    rows = {f"i{n}": ((FAILS, PASSES), (FAILS, FAILS), (PASSES, FAILS))[n % 3] for n in range(15)}
    plain = [make_issue(id_, workarounds=("eager",), silent=id_ < "i12") for id_ in rows]
    issues = [replace(one, workarounds=(Workaround("eager", "Run it eagerly", long, "slower"),)) for one in plain]
    helps = {
        f"{id_}{when}": {"eager": "e"}
        for id_, verdicts in rows.items()
        for when, verdict in zip(("_before", ""), verdicts, strict=True)
        if verdict is FAILS
    }
    return advice_on(issues, rows, **helps)


@pytest.mark.parametrize("lines", [1, 5, 12, 40])
def test_the_note_of_a_team_fits_a_pull_request(lines: int) -> None:
    """Snippets are folded in for as long as there is room; the others are a line, which is linked."""
    advice = a_team("\n".join(["```python", *["x = 1"] * lines, "```"]))
    text = note_of(advice)
    assert len(text.splitlines()) <= LONGEST == 80
    assert ("<details><summary>snippet</summary>" in text) is (lines < 40)
    assert text.count("**Run it eagerly**") == 15
    assert f"]({SERVER}" not in text
    assert f"[i4 fails to compile](<{SERVER}/issues/i4>)" in text


@pytest.mark.parametrize(
    ("verdicts", "decision"),
    [
        ({"a": (PASSES, FAILS), "b": (FAILS, FAILS)}, UpgradeDecision.STAY),
        ({"a": (Verdict.NOT_RUN, PASSES)}, UpgradeDecision.CANNOT_SAY),
    ],
)
def test_without_a_recommendation_the_answer_is_no_upgrade(
    verdicts: dict[str, tuple[Verdict, Verdict]], decision: UpgradeDecision
) -> None:
    advice = advice_on([make_issue(id_) for id_ in verdicts], verdicts)
    text = migration_note(advice, None, base=SERVER, page="/upgrade?from=2.5.1", now=NOON)
    assert advice.decision is decision
    assert headings(text) == []
    for told in (text, upgrade_text(advice)):
        assert "torch==" not in told
        assert "requirements" not in told
    assert all(command in text for found in advice.find_out for command in found.commands)


@pytest.mark.parametrize(
    ("build", "lines"),
    [
        (make_build("2.8.0+cu128"), ("torch==2.8.0",)),
        (
            make_build("2.8.0+cu126", origin="cu126"),
            ("--extra-index-url https://download.pytorch.org/whl/cu126", "torch==2.8.0+cu126"),
        ),
        (make_build("2.8.0+cu128", pinned_triton="3.4.0", triton="3.5.1"), ("torch==2.8.0", "triton==3.5.1")),
        (
            make_build("2.8.0+cpu", pinned_triton=None, origin="cpu"),
            ("--extra-index-url https://download.pytorch.org/whl/cpu", "torch==2.8.0+cpu"),
        ),
    ],
)
def test_the_requirements_name_the_very_wheels_that_were_measured(build: Build, lines: tuple[str, ...]) -> None:
    assert requirements(build, {}) == lines


def test_a_new_major_version_of_cuda_names_the_driver_it_needs() -> None:
    later = make_build("2.11.0+cu130")
    known = make_known(
        [run_twice(FAILS, "a", TORCH_27), run_twice(PASSES, "a", later)], make_issue("a"), builds=(TORCH_27, later)
    )
    advice = advise(UpgradeQuestion(TORCH_27, (known.issues["a"],)), known)
    assert "; CUDA 12.6 to 13.0 (needs NVIDIA driver 580 or newer)" in note_of(advice)


def test_a_candidate_that_is_not_recommended_says_so_first() -> None:
    advice = advice_on([make_issue("a")], {"a": (PASSES, FAILS)})
    first = note_of(advice).splitlines()[2]
    assert first.startswith("**Not recommended: 1 lost without a workaround.** The advice is: Stay on")


def hostile(text: str) -> Issue:
    plain = make_issue("a", workarounds=("eager",), title=text or "x")
    body = Workaround("eager", text or "x", f"```python\n{text}\n", text)
    return replace(plain, workarounds=(body,), links=(Link(LinkKind.REPORT, text, text),))


def outer(tokens: list[Token]) -> list[str]:
    return [token.type for token in tokens if token.level == 0 and not token.type.endswith("_close")]


@given(texts)
def test_whatever_words_a_catalogue_holds_the_note_keeps_its_shape(text: str) -> None:
    """The blocks are the same as with plain words, no HTML is in it, and every link leads to a web address."""

    def made(issue: Issue) -> list[Token]:
        rows = {"a": (PASSES, FAILS)}
        return GITHUB.parse(note_of(advice_on([issue], rows, a={"eager": "e"})))

    tokens, plain = made(hostile(text)), made(hostile("plain"))
    assert outer(tokens) == outer(plain)
    for token in tokens:
        for child in token.children or []:
            target: Any = child.attrs.get("href", "") if child.type == "link_open" else ""
            is_ours = token.level > 1  # inside of a block quote the author's own Markdown is at work
            assert is_ours or child.type not in {"html_inline", "image"}
            assert is_ours or not target or str(target).startswith(("https://", "http://"))


@given(texts)
def test_a_terminal_is_told_nothing_but_words(text: str) -> None:
    told = upgrade_text(advice_on([hostile(text)], {"a": (PASSES, FAILS)}, a={"eager": "e"}))
    assert all(one_line(line) == " ".join(line.split()) for line in told.split("\n"))


def test_a_workaround_to_add_says_what_time_it_takes() -> None:
    advice = advice_on([make_issue("b")], {"b": (PASSES, FAILS)}, b={"aot_eager": "e"})
    cost = TimedCost(
        "aot_eager",
        TORCH_26.id,
        "cpu-x86_64",
        "default",
        "calls",
        "Xeon",
        2,
        NOON,
        1,
        1.12,
        2,
        3,
        compared([(1, 1.12, 1)] * 10),
    )
    costing = replace(advice, costs={"b": {"aot_eager": cost}})
    said = [note_of(one) for one in (advice, costing)]
    assert ["costs 12 % of time" in note for note in said] == [False, True]
