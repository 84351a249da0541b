"""What the lists of the wheels say of a GPU, at every door alike: refusals by the very wheel's list, and no passes."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from knowngood.ask.explain.explaining import explain_paste
from knowngood.ask.explain.matcher import make_failure_library
from knowngood.ask.lookup.service import answer_environment
from knowngood.ask.search.service import SearchIndex, search
from knowngood.domain.builds.architectures import WheelCode
from knowngood.domain.message import english
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.move.upgrade.ranking import advise
from knowngood.move.upgrade.reasons import UpgradeDecision
from knowngood.move.upgrade.request import UpgradeRequest, gpus_of, read_upgrade, start_name, start_of
from knowngood.move.upgrade.wording import answer, left_out_by_reason
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.knowledge.snapshot import read_shipped

NOW = datetime(2026, 11, 27, tzinfo=UTC)
TIMES = Recorded()
NEWER = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120"
NONE_120 = "this wheel holds no code for sm_120; the first tested build that does is 2.7.1 (CUDA 12.8)"
NONE_70 = "this wheel holds no code for sm_70; the newest tested build that does is 2.10.0 (CUDA 12.8)"
OPEN_120 = "not known whether this wheel has code for sm_120"
TABLE = [
    ("2.6.0+cu124", ("RTX 5090",), (NONE_120,)),
    ("2.7.1+cu126", ("RTX 5090",), (NONE_120,)),
    ("2.7.1+cu128", ("RTX 5090",), ()),
    ("2.8.0+cu128", ("RTX 5090",), ()),
    ("2.7.1+cu118", ("RTX 5090",), (OPEN_120,)),
    ("2.15.0+cu132", ("V100",), (NONE_70,)),
    ("2.10.0+cu128", ("V100",), ()),
    ("2.6.0+cu124", ("H20",), ()),
    ("2.6.0+cu124", ("H100", "RTX 5090"), (NONE_120,)),
]


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    """What is shipped, and a list of 2.7.1+cu128 that its tests read."""
    shipped = read_shipped().knowledge
    builds = [one for one in shipped.known.builds.values() if one.torch == "2.7.1+cu128"]
    issue, cell = next(iter(shipped.known.cells.items()))
    cells = {**shipped.known.cells, (issue[0], builds[0].id, "cpu-x86_64"): replace(cell, build=builds[0].id)}
    wheels = {**shipped.known.wheels, "2.7.1+cu128": WheelCode("2.7.1+cu128", tuple(NEWER.split()), NOW)}
    known = replace(shipped.known, cells=cells, wheels=wheels)
    return replace(shipped, known=known, tested=known.tested)


def pasted(torch: str, gpus: tuple[str, ...]) -> str:
    named = "".join(f"GPU {at}: NVIDIA {gpu}\n" for at, gpu in enumerate(gpus))
    return f"PyTorch version: {torch}\nPython version: 3.11.9\nGPU models and configuration: \n{named}"


@pytest.mark.parametrize(("torch", "gpus", "said"), TABLE)
def test_a_pasted_environment_is_told_the_same_at_every_door(
    knowledge: Knowledge, torch: str, gpus: tuple[str, ...], said: tuple[str, ...]
) -> None:
    text, known = pasted(torch, gpus), knowledge.known
    several = tuple(f"several kinds of GPU are named ({', '.join(gpus)}), and the worst counts" for _ in gpus[1:])
    asked = GateRequest(environment=AttachedFile(text), issues=("all",))
    ruling = rule(asked, knowledge, NOW)
    told = (*(one.why for one in ruling.refusals), *ruling.notes)
    assert tuple(one for one in told if "code for" in one or "several" in one) == (*said, *several)
    of_env = answer_environment(asked, knowledge, NOW).ruling
    assert of_env.refusals == ruling.refusals
    found = explain_paste(text, make_failure_library((), {}), knowledge)
    assert tuple(map(english, found.wheel)) == (*said, *several)
    sought = english(search(text, known, SearchIndex({})).note)
    assert (f"named ({', '.join(gpus)}), and the worst counts: RTX 5090." in sought) is bool(several)
    start = start_of("", text, "", knowledge)
    question = read_upgrade(UpgradeRequest(start_name(start), hardware=gpus_of(start)), knowledge, TIMES)
    notes = [english(one) for one in question.notes[: len(said) + len(several)]]
    assert notes == [*(f"where you are: {one}" for one in said), *several]


TOO_OLD = (
    "this wheel is built for CUDA 13.0, which needs driver 580 or newer, and {driver} is there; "
    "the newest tested build that this driver runs is 2.10.0 (CUDA 12.8)"
)


@pytest.mark.parametrize(
    ("torch", "driver", "usable", "is_too_old"),
    [
        ("2.11.0+cu130", "550.54.15", "False", True),
        ("2.11.0+cu130", "579.99", "False", True),
        ("2.11.0+cu130", "580.65.06", "False", False),
        ("2.11.0+cu130", "550.54.15", "True", False),  # the container brings newer libraries of CUDA
        ("2.11.0+cu130", "550.54.15\nDriver Version: 535.104", "False", True),  # collect_env's own line is surer
        ("2.10.0+cu128", "525.60.13", "False", False),
        ("2.11.0+cu130", "Could not collect", "False", False),
    ],
)
def test_a_driver_that_is_too_old_for_the_wheel_is_told_at_every_door(
    knowledge: Knowledge, torch: str, driver: str, usable: str, *, is_too_old: bool
) -> None:
    text = f"{pasted(torch, ('H100',))}Is CUDA available: {usable}\nNvidia driver version: {driver}\n"
    said = [TOO_OLD.format(driver=driver.splitlines()[0])] if is_too_old else []
    ruling = rule(GateRequest(environment=AttachedFile(text), issues=("all",)), knowledge, NOW)
    assert [(one.code, one.hardware, one.why) for one in ruling.refusals] == [
        ("driver_too_old", "cuda-sm_90", sentence) for sentence in said
    ]
    assert [note for note in ruling.notes if "driver" in note] == []
    found = explain_paste(text, make_failure_library((), {}), knowledge)
    assert [english(one) for one in found.wheel] == said
    start = start_of("", text, "", knowledge)
    question = read_upgrade(
        UpgradeRequest(start_name(start), hardware=("H100",), driver=start.driver), knowledge, TIMES
    )
    assert [english(one) for one in question.notes if "driver" in english(one)] == [
        f"where you are: {one}" for one in said
    ]
    advice = advise(question, knowledge.known)
    assert ("is built for CUDA 13.0" in english(answer(advice))) is is_too_old


def test_nobody_is_told_to_stay_on_a_build_that_the_driver_does_not_run(knowledge: Knowledge) -> None:
    """Without the driver, or with a new one, the answer to the same question is another: the last release stays."""
    for driver, decision in (("", UpgradeDecision.STAY), ("580.65", UpgradeDecision.STAY), ("550.54", None)):
        asked = UpgradeRequest("torch-2.15.0+cu132~py312", component=("Dynamo",), hardware=("H100",), driver=driver)
        advice = advise(read_upgrade(asked, knowledge, TIMES), knowledge.known)
        assert advice.decision is (decision or UpgradeDecision.CANNOT_SAY)


def test_a_driver_refuses_nothing_on_the_processor(knowledge: Knowledge) -> None:
    text = f"{pasted('2.11.0+cu130', ())}Nvidia driver version: 550.54.15\n"
    asked = GateRequest(environment=AttachedFile(text), issues=("all",), hardware=("cpu-x86_64",))
    assert rule(asked, knowledge, NOW).refusals == ()


@pytest.mark.parametrize(("gpu", "left_out"), [("RTX 5090", "2.7.1+cu126"), ("V100", "2.11.0+cu130")])
def test_an_upgrade_leaves_out_what_holds_no_code_and_recommends_nothing_unmeasured(
    knowledge: Knowledge, gpu: str, left_out: str
) -> None:
    for issues in (("all",), tuple(one.id for one in knowledge.known.issues.values() if one.requires.device == "any")):
        asked = UpgradeRequest("2.6.0+cu124", issues=issues, hardware=(gpu,))
        advice = advise(read_upgrade(asked, knowledge, TIMES), knowledge.known)
        assert (advice.decision, advice.best) == (UpgradeDecision.CANNOT_SAY, None)
        by_reason = left_out_by_reason(advice)
        reason = next(one for one, ids in by_reason.items() if left_out in ids)
        assert english(reason) == f"holds no code for {'sm_120' if gpu != 'V100' else 'sm_70'}"
        assert not {one.build.torch for one in advice.candidates} & {left_out}


@pytest.mark.parametrize(
    ("gpu", "said"),
    [
        (
            "V100",
            "Nothing was measured on a V100; the newest tested wheel that holds code for it is 2.10.0 (CUDA 12.8).",
        ),
        ("rtx 5090", "Nothing was measured on an RTX 5090; the newest tested wheel that holds code for it is 2.15.0"),
        (
            "sm_70",
            "Nothing was measured on sm_70; the newest tested wheel that holds code for it is 2.10.0 (CUDA 12.8).",
        ),
    ],
)
def test_an_upgrade_on_a_gpu_that_nobody_measured_cannot_say(knowledge: Knowledge, gpu: str, said: str) -> None:
    advice = advise(read_upgrade(UpgradeRequest("2.6.0", hardware=(gpu,)), knowledge, TIMES), knowledge.known)
    assert english(answer(advice)).startswith(f"Cannot say yet. {said}")


@pytest.mark.parametrize("text", ["RTX 5090 sm_120 torch version", "sm_120", "which torch for an RTX 5090"])
def test_a_search_for_a_gpu_is_answered_from_the_lists_with_their_days(knowledge: Knowledge, text: str) -> None:
    hit = search(text, knowledge.known, SearchIndex(knowledge.known.issues)).hits[0]
    told = english(hit.told)
    holding, lacking = told.partition("; these hold none: ")[::2]
    assert "2.8.0 (CUDA 12.8)" in holding
    assert "2.7.1 (CUDA 12.6)" in lacking
    assert "(read in them from 2026-11-21 to 2026-11-27)" in lacking


def test_a_search_for_a_gpu_that_was_measured_has_the_lists_too(knowledge: Knowledge) -> None:
    told = english(search("H100", knowledge.known, SearchIndex({})).hits[0].told)
    assert re.match(
        r"\d+ of \d+ issues are measured there\. Of the wheels tested here these hold code for sm_90: ", told
    )
    assert told.endswith("these hold none: - (read in them from 2026-11-21 to 2026-11-27).")


def test_without_lists_a_search_says_no_more_than_that_nobody_measured(knowledge: Knowledge) -> None:
    known = replace(knowledge.known, wheels={})
    told = english(search("sm_120", known, SearchIndex({})).hits[0].told)
    assert told.startswith("Nobody has measured this class here yet")


# -- over HTTP, from a store -------------------------------------------------------------------------------------------


SHIPPED_120 = "this wheel holds no code for sm_120; the first tested build that does is 2.8.0 (CUDA 12.8)"


@pytest.mark.parametrize(("torch", "holds"), [("2.6.0+cu124", False), ("2.7.1+cu126", False), ("2.8.0+cu128", True)])
def test_programs_are_told_the_same(shipped_client: TestClient, torch: str, *, holds: bool) -> None:
    def got(path: str, **asked: object) -> Mapping[str, object]:
        answered = shipped_client.post(path, json=asked) if asked else shipped_client.get(path)
        assert answered.status_code == 200, answered.text
        return answered.json()  # type: ignore[no-any-return]

    text = pasted(torch, ("RTX 5090",))
    ruling = got("/api/v1/gate", environment={"name": "", "content": text}, issues=["all"])
    assert [one["code"] for one in ruling["refusals"]] == ([] if holds else ["gpu_not_served"])  # type: ignore[attr-defined]
    assert got("/api/v1/errors", text=text)["wheel"] == ([] if holds else [SHIPPED_120])
    upgrade = got(f"/api/v1/upgrade?from={torch.replace('+', '%2B')}&hardware=RTX+5090")
    assert (upgrade["decision"], upgrade["build"]) == ("cannot_say", None)
    build = got(f"/api/v1/builds/torch-{torch.replace('+', '%2B')}")["architectures"]
    assert ("sm_120" in build["names"], build["read_at"][:10]) == (holds, "2026-11-21")  # type: ignore[index]


def test_pages_show_what_was_read_and_what_was_not(shipped_client: TestClient) -> None:
    page = shipped_client.get("/releases/2.8.0").text
    assert "sm_70, sm_75, sm_80, sm_86, sm_90, sm_100, sm_120; read in this wheel on 2026-11-21" in page
    assert "nobody read which GPUs" in shipped_client.get("/releases/2.7.1%2Bcu128").text
    assert shipped_client.get("/api/v1/builds/torch-2.7.1%2Bcu128").json()["architectures"] is None
    upgrade = shipped_client.get("/upgrade?from=2.6.0&hardware=V100").text
    assert (
        "Nothing was measured on a V100; the newest tested wheel that holds code for it is 2.10.0 (CUDA 12.8)."
        in upgrade
    )
    assert "holds no code for sm_70" in upgrade
    assert "2.8.0 (CUDA 12.8), 2.9.0 (CUDA 12.8)" in shipped_client.get("/search?q=RTX+5090+sm_120+torch+version").text
    answered = shipped_client.post("/errors", data={"text": pasted("2.6.0+cu124", ("RTX 5090",))}).text
    assert f"T{SHIPPED_120[1:]}" in answered
    assert f"T{SHIPPED_120[1:]}" in shipped_client.get("/?mine=2.6.0&gpu=RTX+5090").text
    assert "holds no code" not in shipped_client.get("/?mine=2.8.0&gpu=RTX+5090").text
    sent = shipped_client.post("/upgrade", data={"environment": pasted("2.6.0+cu124", ("RTX 5090",))})
    assert "hardware=RTX+5090" in sent.headers["location"]


def test_pages_say_it_in_chinese(shipped_client: TestClient) -> None:
    chinese = {"accept-language": "zh"}
    text = shipped_client.post("/errors", data={"text": pasted("2.6.0+cu124", ("RTX 5090",))}, headers=chinese).text
    assert "这个 wheel 不含 sm_120 的代码" in text
    assert "在 V100 上什么也没有测过" in shipped_client.get("/upgrade?from=2.6.0&hardware=V100", headers=chinese).text
