"""Sentences that once said more than the cells behind them, each asked again over the evidence that the product ships.

A review of 0.1.0 found them. What is asserted is the answer of the rule, from cells as they are stored now: shipped
evidence may grow without a word here being changed.
"""

import json
import os
import re
from collections import defaultdict
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console
from starlette.testclient import TestClient

from knowngood.cli.exit_codes import Exit
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.hardware_classes import with_isa_classes
from knowngood.domain.issue import CPU_PATH, Device, LinkKind, inapplicable
from knowngood.domain.message import english
from knowngood.domain.verdicts.inference import holds
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import CONCLUSIVE, Assurance, Cell, Verdict, WorkaroundVerdict
from knowngood.gate.asking import CODES
from knowngood.main import main
from knowngood.matrix.overview.table import print_matrix
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.tables import attempts
from knowngood.web.urls import MATRIX
from tests.commands.given import run_here
from tests.web.asking import answer_at

CPU, GPU = "cpu-x86_64", "cuda-sm_90"
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
TAKES_MORE = {Verdict.BIGGER, Verdict.MORE_WORK, Verdict.SLOWER}
FAILING = {Verdict.AFFECTED, Verdict.FLAKY}
FAILS = {*FAILING, Verdict.DIFFERENT_FAILURE}
OLD = "torch-2.5.1+cu124"
HARDLY_MEASURED = "torch-2.4.1+cu121"  # on a GPU


@pytest.fixture(scope="module")
def known(shipped: Engine) -> Known:
    with reading(shipped) as s:
        return load_known(s, NOW)


def get(shipped_client: TestClient, path: str, **asked: Any) -> dict[str, Any]:
    body: dict[str, Any] = answer_at(shipped_client, f"/api/v1/{path}", **asked)
    return body


def gate(shipped_client: TestClient, **asked: Any) -> dict[str, Any]:
    response = shipped_client.post("/api/v1/gate", json=asked)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def reason_of(ruling: dict[str, Any]) -> dict[str, Any]:
    (reason,) = ruling["reasons"]
    return dict(reason)


# -- workarounds -------------------------------------------------------------------------------------------------------


def test_a_workaround_that_was_not_run_with_a_failing_variant_lets_nothing_pass(
    shipped_client: TestClient, known: Known
) -> None:
    issue, build = "deepmd-kit-3910", "torch-2.8.0+cu128"
    cell = known.cells[issue, build, CPU]
    assert {one.variant for one in cell.variants if one.verdict in FAILING} == {
        "transposed_gradient",
        "transposed_features",
    }
    asked = {"build": build, "hardware": [CPU], "issues": [issue]}
    ruling = gate(shipped_client, **asked, applied=[f"{issue}=upstream_fix"])
    assert CODES[ruling["decision"]] == 1
    assert "helps here with some variants only" in reason_of(ruling)["why"]
    assert "transposed_features" in reason_of(ruling)["why"]
    assert gate(shipped_client, **asked, applied=[f"{issue}=op_contiguous"])["decision"] == "pass"


def test_no_shipped_workaround_is_effective_beside_a_failing_variant_that_it_did_not_pass_with(
    shipped: Engine, known: Known
) -> None:
    """From the attempts themselves: each with what it counts as."""
    said: dict[tuple[str, ...], list[str]] = defaultdict(list)
    named = [attempts.c[name] for name in ("issue", "build", "hardware", "arm", "variant", "counts_as")]
    with shipped.connect() as connection:
        for *place, outcome in connection.execute(sa.select(*named).where(attempts.c.counts_as.is_not(None))):
            said[tuple(place)].append(outcome)
    nothing = {"env_error", "harness_error", "cancelled", "not_applicable"}
    seen = 0
    for key, cell in known.cells.items():
        if cell.verdict in TAKES_MORE:  # told by amounts: each of its attempts passed
            continue
        failing = [one.variant for one in cell.variants if one.verdict in FAILING]
        classes = with_isa_classes(key[2:])  # what was tried with each ISA need not be tried on the whole class
        for arm, finding in cell.workarounds.items():
            passed = [
                {one for class_ in classes for one in said[(*key[:2], class_, arm, variant)]} - nothing == {"pass"}
                for variant in failing
            ]
            if finding.verdict is WorkaroundVerdict.EFFECTIVE:
                assert passed, (key, arm)
                assert all(passed), (key, arm)
                seen += 1
            elif finding.verdict in {WorkaroundVerdict.PARTIAL, WorkaroundVerdict.INEFFECTIVE}:
                assert not all(passed), (key, arm)
                assert any(passed) is (finding.verdict is WorkaroundVerdict.PARTIAL), (key, arm)
    assert seen > 1000


# -- intervals beside upstream's word ----------------------------------------------------------------------------------


def test_a_fix_is_not_claimed_without_the_upstream_claim_that_later_builds_are_affected(
    shipped_client: TestClient, known: Known
) -> None:
    """pytorch-193183 passed on 2.10.0 and 2.11.0 here, too seldom to tell; the report says that 2.12 and 2.13 are
    wrong.
    """
    issue = "pytorch-193183"
    (about,) = [claim.about for claim in known.issues[issue].claims if claim.about.startswith(">=2.12")]
    assert about == ">=2.12,<2.14"
    inside = [cell for build, cell in known.measured(issue, GPU) if build.minor in {"2.12", "2.13"} and is_answer(cell)]
    if any(cell.verdict in FAILING for cell in inside):
        spans = known.history(issue, GPU).spans
        assert len(spans) > 1 or {"2.10.0", "2.11.0"} <= {one.name for one in spans[0].within}
        return
    failing = [build.id for build, cell in known.measured(issue, GPU) if cell.verdict in FAILING]
    assert failing
    for build in failing:
        reason = reason_of(gate(shipped_client, build=build, hardware=[GPU], issues=[issue]))
        assert reason["first_fixed"]
        assert any(names_both(doubt) for doubt in reason["fix_doubts"]), reason["fix_doubts"]
    told = [one["sentence"] for one in get(shipped_client, "hygiene")["remarks"] if one["issue"] == issue]
    claimed = [sentence for sentence in told if "not needed from" in sentence]
    assert all(names_both(sentence) for sentence in claimed), claimed


def is_answer(cell: Cell) -> bool:
    return cell.verdict in CONCLUSIVE


def names_both(sentence: str) -> bool:
    return "upstream" in sentence and "2.12" in sentence


def test_a_history_is_of_the_whole_line_whatever_columns_are_asked_for(known: Known) -> None:
    """Of every row that passes on both columns and fails on a third build, none "passes on all"."""
    columns = ["torch-2.6.0+cu124", "torch-2.7.1+cu126"]
    rows = [
        issue
        for issue in known.issues.values()
        if all(verdict_of(known, issue.id, build) is Verdict.NOT_AFFECTED for build in columns)
        and any(cell.verdict in FAILING and not build.is_mismatched for build, cell in known.measured(issue.id, CPU))
    ]
    assert rows
    out = StringIO()
    print_matrix(Console(file=out, width=400), rows, [known.builds[id_] for id_ in columns], CPU, known)
    assert "passes on" not in out.getvalue()
    for issue in rows:
        (line,) = [line for line in out.getvalue().splitlines() if line.startswith(f"{issue.id} ")]
        assert english(known.history(issue.id, CPU).sentence) in line


def test_a_row_that_fails_beside_another_triton_alone_says_so_after_its_passes(known: Known) -> None:
    sentence = english(known.history("triton-7835", CPU).sentence)
    assert re.fullmatch(r"passes on all \d+ measured \(fails on torch 2\.8\.0 \(CUDA 12\.8, Triton .*\)\)", sentence)


def verdict_of(known: Known, issue: str, build: str, hardware: str = CPU) -> Verdict | None:
    cell = known.cells.get((issue, build, hardware))
    return cell.verdict if cell else None


# -- upgrade and compare -----------------------------------------------------------------------------------------------

FREEZE = "torch==2.5.1+cu124\ntriton==3.1.0\nnumpy==1.26.4\n"


def test_an_upgrade_is_not_held_up_by_a_row_that_could_not_exist_before(
    shipped_client: TestClient, known: Known
) -> None:
    """torchao 0.12 asks for torch 2.8: `ao-2901` cannot exist on 2.5.1, and so is nobody's loss. What is recommended
    loses nothing that no workaround helps with there.
    """
    assert known.cell(known.issues["ao-2901"], known.builds[OLD], CPU).verdict is Verdict.NOT_APPLICABLE
    advice = get(shipped_client, "upgrade", **{"from": OLD, "hardware": CPU})
    assert advice["decision"] == "go", advice["answer"]
    best = advice["build"]
    compared = get(shipped_client, "compare", a=OLD, b=best, hardware=CPU)
    by_group: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for pair in compared["pairs"]:
        by_group[pair["group"]].append(pair)
    assert all("effective" in pair["after"]["workarounds"].values() for pair in by_group["newly_broken"])
    gained = by_group["fixed"]
    assert gained
    for pair in gained:
        assert pair["before"]["verdict"] in FAILS | TAKES_MORE
        assert pair["after"]["verdict"] == Verdict.NOT_AFFECTED
    assert re.search(rf"\b{len(gained)}\b", advice["answer"]), advice["answer"]


def test_a_row_of_a_package_that_the_environment_lacks_takes_no_part(shipped: Engine, tmp_path: Path) -> None:
    """`ao-2901` concerns who has torchao; the first of these freezes has none."""
    address = shipped.url.render_as_string(hide_password=False)
    settings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "KNOWNGOOD_DATABASE_URL": address}
    for freeze, is_watched in ((FREEZE, False), (f"{FREEZE}torchao==0.12.0\n", True)):
        (tmp_path / "requirements.txt").write_text(freeze)
        command = ["upgrade", "-r", str(tmp_path / "requirements.txt"), "--hardware", CPU, "--json"]
        told = run_here(command, {**settings, "KNOWNGOOD_DATA_DIR": str(tmp_path)}, folder=tmp_path)
        assert told.returncode == 0, told.stderr
        assert ("ao-2901" in json.loads(told.stdout)["watched"]) is is_watched


@pytest.mark.parametrize("hardware", [CPU, GPU])
def test_every_loss_is_a_pass_that_became_a_failure(shipped_client: TestClient, known: Known, hardware: str) -> None:
    """Between the build one is on and some others: recomputed from both cells of each pair."""
    others = sorted(build for build in {build for _, build, class_ in known.cells if class_ == hardware} - {OLD})
    for build in others[::6]:
        for pair in get(shipped_client, "compare", a=OLD, b=build, hardware=hardware)["pairs"]:
            before, after = pair["before"]["verdict"], pair["after"]["verdict"]
            if pair["group"] == "newly_broken":
                assert (before, after in FAILS) == (Verdict.NOT_AFFECTED, True), pair["issue"]
            if pair["group"] == "fixed":
                assert (before in FAILS | TAKES_MORE, after) == (True, Verdict.NOT_AFFECTED), pair["issue"]


def test_an_upgrade_from_a_build_that_is_hardly_measured_says_so_first(
    shipped_client: TestClient, known: Known
) -> None:
    conclusive, applicable = coverage(known, HARDLY_MEASURED, GPU)
    assert conclusive / applicable < 0.5
    advice = get(shipped_client, "upgrade", **{"from": HARDLY_MEASURED, "hardware": GPU})
    assert advice["decision"] == "cannot_say", advice["answer"]
    verdict, reason, *_ = re.split(r"(?<=[.:;])\s", advice["answer"])
    assert verdict == "Cannot say yet."
    assert plain_name(HARDLY_MEASURED) in reason
    assert advice["build"] is None


def coverage(known: Known, build: str, hardware: str) -> tuple[int, int]:
    """Rows with an answer, and those that apply, of the rows that are run on this very class."""
    rows = [issue for issue in known.issues.values() if inapplicable(issue, known.builds[build], hardware) is None]
    cells = [known.cell(issue, known.builds[build], hardware) for issue in rows]
    applicable = [cell for cell in cells if cell.verdict is not Verdict.NOT_APPLICABLE]
    return sum(1 for cell in applicable if is_answer(cell)), len(applicable)


def test_an_answer_that_names_no_build_comes_with_no_diff(shipped_client: TestClient, known: Known) -> None:
    """Neither "stay" nor "cannot say" prints the text of an upgrade to some other build."""
    newest = max((build for build in known.builds.values() if not build.is_mismatched), key=lambda one: one.build_id)
    for start, hardware in ((HARDLY_MEASURED, GPU), (newest.id, CPU)):
        asked = {"from": start, "hardware": hardware}
        advice = get(shipped_client, "upgrade", **asked)
        assert advice["decision"] != "go"
        page = shipped_client.get("/upgrade", params=asked).text
        assert "## Upgrade torch" not in page
        assert not re.search(r"(?m)^[-+]torch==", page)


def test_what_was_not_run_before_is_not_called_a_failure_that_was_not_known(
    shipped_client: TestClient, known: Known
) -> None:
    old, new = "torch-2.7.1+cu126", "torch-2.8.0+cu128"
    asked = {"a": old, "b": new, "hardware": GPU}
    compared = get(shipped_client, "compare", **asked)
    unknown = [
        pair["issue"]
        for pair in compared["pairs"]
        if pair["after"]["verdict"] in FAILS and pair["before"]["verdict"] not in {*CONCLUSIVE, "not_applicable"}
    ]
    assert "not known before" not in re.sub(r"\d+ not known before", "", compared["sentence"])
    for pair in compared["pairs"]:
        if pair["issue"] in unknown:
            assert pair["group"] == "not_known_before", pair["issue"]
    counted = sum(count for group, count in compared["groups"].items() if group != "nowhere")
    assert counted + compared["groups"].get("nowhere", 0) == len(compared["pairs"])


# -- Python ------------------------------------------------------------------------------------------------------------

UV_LOCK = """\
version = 1
requires-python = ">={python}"

[[package]]
name = "app"
version = "0.1.0"
source = {{ virtual = "." }}
dependencies = [{{ name = "torch" }}]

[[package]]
name = "torch"
version = "2.5.1"
source = {{ registry = 'https://pypi.org/simple' }}
"""


def test_a_lock_file_for_python_3_13_is_judged_by_the_cells_of_3_13(shipped_client: TestClient, known: Known) -> None:
    issue = "pytorch-144048"
    assert verdict_of(known, issue, f"{OLD}~py313") is Verdict.AFFECTED
    asked = {"hardware": [CPU], "issues": [issue]}
    of_313 = {"name": "uv.lock", "content": UV_LOCK.format(python="3.13")}
    blocked = gate(shipped_client, **asked, environment=of_313)
    assert (blocked["decision"], blocked["build"]) == ("block", f"{OLD}~py313")
    open_ = gate(shipped_client, **asked, environment={"name": "uv.lock", "content": UV_LOCK.format(python="3.10")})
    assert open_["decision"] == "insufficient_evidence"
    assert "say --python" in reason_of(open_)["why"]


@pytest.mark.parametrize("wheel", ["torch-2.15.0+cu132", "torch-2.6.0+cu124"])
def test_one_rule_says_where_another_python_s_cell_stands_in(
    known: Known, shipped_client: TestClient, wheel: str
) -> None:
    """Recomputed: whether something else was measured on that Python plays no part."""
    python = known.builds[f"{wheel}~py312"]
    smoked = any(
        cell.verdict is Verdict.NOT_AFFECTED
        for (issue, build, _), cell in known.cells.items()
        if build == python.id and known.issues[issue].is_smoke
    )
    checked = 0
    for issue in known.issues.values():
        if issue.requires.python or issue.is_smoke or (issue.id, python.id, CPU) in known.cells:
            continue
        ground = known.cells.get((issue.id, wheel, CPU))
        others = [
            cell.verdict
            for (row, build, class_), cell in known.cells.items()
            if row == issue.id and class_ == CPU and build.startswith(f"{wheel}~py") and is_answer(cell)
        ]
        if ground is None or not is_answer(ground):
            continue
        wanted = smoked and holds(known.claims.agreement_of("3.11", "3.12")) and {*others} <= {ground.verdict}
        claim = get(shipped_client, f"cells/{issue.id}/{python.id}", hardware=CPU)
        assert claim["assurance"] == (Assurance.INFERRED if wanted else Assurance.NOT_KNOWN), issue.id
        if wanted:
            assert claim["verdict"] == ground.verdict
            (ground_told,) = claim["grounds"]
            assert ground_told["build"] in {wheel, f"{wheel}~py310", f"{wheel}~py313"}
        checked += 1
        if checked == 12:
            break
    assert checked


# -- a fresh installation, the first page, hygiene, a claim ------------------------------------------------------------


def test_a_fresh_installation_does_not_say_that_nothing_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """The evidence lies in the package: it answers, or the way to it is named."""
    monkeypatch.setenv("KNOWNGOOD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.delenv("KNOWNGOOD_DATABASE_URL", raising=False)
    asked = ("gate", "--build", OLD, "--issues", "xla-8464", "--hardware", CPU)
    monkeypatch.setattr("sys.argv", ["knowngood", *asked])
    with pytest.raises(SystemExit) as ended:
        main()
    code = ended.value.code
    told = capfdbinary.readouterr()
    words = (told.out + told.err).decode()
    assert "was never measured" not in words
    assert code == Exit.FINDING or ("shipped" in words and "knowngood import" in words), words


def test_rows_about_the_cpu_path_are_not_said_not_to_apply_on_a_gpu(shipped_client: TestClient, known: Known) -> None:
    on_cpu = {one.id for one in known.issues.values() if one.requires.device is Device.CPU}
    page = re.sub(r"<[^>]+>", " ", shipped_client.get(MATRIX, params={"hardware": GPU}).text)
    said = [int(number) for number in re.findall(r"(\d+)\s+(?:more )?do(?:es)? not apply", page)]
    said += [int(number) for number in re.findall(rf"Do not apply on {GPU}\s+(\d+)", page)]
    assert all(number <= len(known.issues) - len(on_cpu) for number in said), said
    assert re.search(r"concerns? the CPU path", page, re.IGNORECASE)


def test_rows_that_name_no_device_are_answered_for_a_gpu_by_the_cpu_which_is_known_to_agree(
    shipped_client: TestClient, known: Known
) -> None:
    assert known.claims.carries_to_gpus
    rows = [one for one in known.issues.values() if one.requires.device is Device.ANY]
    answered = [
        (issue.id, build)
        for issue in rows
        for build, cell in known.measured(issue.id, CPU)
        if is_answer(cell) and build.cuda and (issue.id, build.id, GPU) not in known.cells
    ]
    assert answered
    for issue_id, build in answered[:: max(1, len(answered) // 10)]:
        claim, of_cpu = (get(shipped_client, f"cells/{issue_id}/{build.id}", hardware=class_) for class_ in (GPU, CPU))
        assert (claim["verdict"], claim["assurance"]) == (of_cpu["verdict"], Assurance.INFERRED)
        assert [(one["rule"], one["build"], one["hardware"]) for one in claim["grounds"]] == [("device", build.id, CPU)]


def test_other_cpu_rows_say_on_a_gpu_where_to_look(known: Known) -> None:
    build = known.builds[OLD]
    rows = [one for one in known.issues.values() if one.requires.device is Device.CPU]
    told = {known.cell(issue, build, GPU).reason for issue in rows if not known.cells.get((issue.id, OLD, GPU))}
    assert CPU_PATH in told


def test_the_day_on_which_a_thread_was_looked_at_is_not_the_day_it_was_closed(
    shipped_client: TestClient, known: Known
) -> None:
    seen = {
        f"{link.seen:%Y-%m-%d}"
        for issue in known.issues.values()
        for link in issue.links
        if link.kind is LinkKind.REPORT and link.state and link.seen
    }
    told = [one["sentence"] for one in get(shipped_client, "hygiene")["remarks"]]
    dated = [sentence for sentence in told if any(day in sentence for day in seen)]
    assert dated
    for sentence in dated:
        assert ", seen on" in sentence
        assert not re.search(r"(closed|open) upstream on", sentence)


def test_the_claim_of_xla_8464_is_what_its_thread_says(known: Known) -> None:
    """A previous version of the plugin printed 4 and 4; the one of the report refuses donated buffers."""
    (claim,) = [one for one in known.issues["xla-8464"].claims if one.source.startswith("pytorch/xla#8464")]
    assert "previous" in claim.text
    assert "donated" in claim.text
