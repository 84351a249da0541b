"""What wheels say of themselves refuses an environment at every door alike, and nothing is refused on a guess."""

from datetime import UTC, datetime

import pytest
from starlette.testclient import TestClient

from knowngood.ask.lookup.service import answer_environment
from knowngood.ask.lookup.text import environment_text
from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.message import english
from knowngood.gate.decision import Decision
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.move.upgrade.ranking import UpgradeAdvice, advise
from knowngood.move.upgrade.request import UpgradeRequest, has_of, read_upgrade, start_name, start_of
from knowngood.move.upgrade.wording import answer
from knowngood.store.knowledge.model import Knowledge, Recorded
from knowngood.store.knowledge.snapshot import read_shipped

NOW = datetime(2026, 11, 29, tzinfo=UTC)
EXTRA = "--" + "extra-index-url"  # a rule of the house looks for addresses behind it in every file
CONDA = "name: x\nchannels: [pytorch]\ndependencies:\n  - pytorch=2.5.1\n  - pytorch-cuda=12.4\n  - {}\n"
COLLECTED = "PyTorch version: 2.6.0\nOS: macOS 13.6 (x86_64)\nPython version: 3.11.9\n"

REFUSED = {
    "another torchvision": (
        "torch==2.7.1\ntorchvision==0.23.0",
        "torchvision 0.23.0 asks for torch==2.8.0, and torch is 2.7.1; torchvision 0.22.1 allows it",
    ),
    "a torchvision of PyTorch's own index": (
        "torch==2.7.1+cu126\ntorchvision==0.21.0+cu126",
        "torchvision 0.21.0+cu126 asks for torch==2.6.0, and torch is 2.7.1 (CUDA 12.6); torchvision 0.22.1 allows it",
    ),
    "xformers, whose next torch is another": (
        "torch==2.7.1\nxformers==0.0.29.post2",
        "xformers 0.0.29.post2 asks for torch==2.6.0, and torch is 2.7.1; xformers 0.0.31.post1 allows it",
    ),
    "a server that asks for the patch before": (
        "torch==2.9.1\nvllm==0.12.0",
        "vllm 0.12.0 asks for torch==2.9.0, and torch is 2.9.1; vllm 0.16.0 allows it",
    ),
    "a server of which no release asks for this torch": (
        "torch==2.12.1\nvllm==0.12.0",
        "vllm 0.12.0 asks for torch==2.9.0, and torch is 2.12.1",
    ),
    "an extension by its local version": (
        "torch==2.6.0\ntorch-scatter==2.1.2+pt25cu124",
        "torch-scatter 2.1.2+pt25cu124 was built for torch 2.5, by its own name, and torch is 2.6.0",
    ),
    "an extension beside conda's torch": (
        CONDA.format("pip:\n    - torch-sparse==0.6.18+pt24cu124"),
        "torch-sparse 0.6.18+pt24cu124 was built for torch 2.4, by its own name, and torch is 2.5.1",
    ),
    "an extension that writes the dot": (
        "torch==2.5.1\nflash_attn==2.7.4.post1+cu12torch2.4cxx11abiTRUE",
        "flash-attn 2.7.4.post1+cu12torch2.4cxx11abiTRUE was built for torch 2.4, by its own name, and torch is 2.5.1",
    ),
    "a torch that is older than it asks for": (
        "torch==2.4.0\nflash-linear-attention==0.3.0",
        "flash-linear-attention 0.3.0 asks for torch>=2.5, and torch is 2.4.0",
    ),
    "a Python that is newer than the wheels": (
        "torch==2.8.0  # python 3.14",
        "torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first release that has one",
    ),
    "a platform whose wheels ended": (
        COLLECTED,
        "torch 2.6.0 has no wheel for macOS x86-64; 2.2.2 is the last release that has one",
    ),
    "a release that never came": (
        "torch==2.7.3",
        "the index has no torch 2.7.3; its releases go from 2.1.0 to 2.15.0",
    ),
}

LET_THROUGH = {
    "what goes together": "torch==2.15.0\ntorchvision==0.29.2\ntorchaudio==2.11.1\nbitsandbytes==0.50.2",
    "a requirement without an end": "torch==2.15.0\nxformers==0.0.35",
    "a release that says nothing of torch": "torch==2.8.0\ntorchaudio==2.11.0",
    "a local version that may mean 2.1.0 or 2.10": "torch==2.10.0\nnatten==0.17.0+torch210cu121",
    "the same of 2.1": "torch==2.1.2\nnatten==0.17.0+torch210cu121",
    "a vendor's preview of torch": "torch==2.5.0a0+e000cf0ad9.nv24.10\nflash-linear-attention==0.3.0",
    "conda-forge's torch as pip lists it": "torch==2.5.1.post303\ntorchvision==0.20.1",
    "a package that was built from source": "torch==2.7.1\ntorchvision @ git+https://github.com/pytorch/vision@v0.23.0",
    "conda's package": CONDA.format("torchvision=0.19.0"),
    "two of which a marker chooses": (
        "torch==2.7.1\ntorchvision==0.22.1 ; python_version < '3.12'\ntorchvision==0.23.0 ; python_version >= '3.12'"
    ),
    "a package that the table has not": "torch==2.7.1\nmoshi==0.2.13",
    "a release of torch after the table": "torch==2.99.0  # python 3.14",
    "a wheel of PyTorch's own index": "torch==2.8.0+cu129  # python 3.14",
    "an index beside PyPI": f"{EXTRA} https://example.org/simple\ntorch==2.8.0  # python 3.14",
    "a platform that the table has not": "PyTorch version: 2.8.0\nOS: Windows 11 (arm64)\nPython version: 3.12.1\n",
}


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return read_shipped().knowledge


def asked(text: str) -> GateRequest:
    name = "environment.yml" if text.startswith("name:") else "" if "PyTorch version" in text else "requirements.txt"
    python = "3.14" if "# python 3.14" in text else ""
    return GateRequest(environment=AttachedFile(text, name), python=python, issues=("pytorch-151290",))


@pytest.mark.sample(6, "system")
@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_a_fact_of_wheels_refuses_at_every_door(
    knowledge: Knowledge, shipped_client: TestClient, text: str, said: str
) -> None:
    request = asked(text)
    ruling = rule(request, knowledge, NOW)
    code = "pair_refused" if " and torch is " in said else "no_wheel"
    assert (ruling.decision, [(one.code, one.hardware, one.why) for one in ruling.refusals]) == (
        Decision.BLOCK,
        [(code, "", said)],
    )
    assert ruling.why.startswith(said)

    shown = environment_text(answer_environment(request, knowledge, NOW))
    assert " ".join(shown.split()).startswith(said.replace("the index has", "The index has"))

    body = {"environment": vars(request.environment), "issues": ["pytorch-151290"], "python": request.python}
    answered = shipped_client.post("/api/v1/gate", json=body).json()
    assert [(one["code"], one["why"]) for one in answered["refusals"]] == [(code, said)]

    file = request.environment or AttachedFile("")
    start = start_of(file.name, file.content, request.python, knowledge)
    if start.build is None:
        assert english(start.why_none).startswith(said)
    else:
        upgrade = UpgradeRequest(start_name(start), has=has_of(start.packages))
        notes = [english(note) for note in read_upgrade(upgrade, knowledge, Recorded()).notes]
        torch = f"torch is {plain_name(knowledge.known.builds[start.build].torch)}"
        assert [note.partition("; ")[0].partition(torch)[0] for note in notes if note.startswith("where you are")] == [
            f"where you are: {said.partition('torch is ')[0]}"
        ]


@pytest.mark.parametrize("text", LET_THROUGH.values(), ids=LET_THROUGH)
def test_nothing_is_refused_that_no_wheel_says(knowledge: Knowledge, text: str) -> None:
    assert rule(asked(text), knowledge, NOW).refusals == ()


# -- upgrade -----------------------------------------------------------------------------------------------------------


def advised(knowledge: Knowledge, start: str, *has: str) -> UpgradeAdvice:
    return advise(read_upgrade(UpgradeRequest(start, has=has), knowledge, Recorded()), knowledge.known)


@pytest.mark.parametrize(
    ("has", "torch", "moves"),
    [
        (("torchvision==0.22.1",), "2.8.0", {"torchvision": "0.23.0"}),
        (("torchvision",), "2.15.0", {"torchvision": "0.29.2"}),
        (("torchvision==0.22.1", "xformers==0.0.31"), "2.15.0", {"torchvision": "0.29.2", "xformers": "0.0.35"}),
        (("xformers==0.0.35",), "2.15.0", {}),  # allows it as it is
        (("bitsandbytes==0.45.5", "moshi==0.2.13", "torch-scatter==2.1.2+pt27cu126"), "2.15.0", {}),
        (("vllm==0.9.0",), "2.9.1", {"vllm": "0.16.0"}),
    ],
)
def test_what_moves_with_torch_is_named_for_each_candidate(
    knowledge: Knowledge, has: tuple[str, ...], torch: str, moves: dict[str, str]
) -> None:
    candidates = advised(knowledge, "2.7.1", *has).candidates
    assert next(dict(one.packages) for one in candidates if one.build.requirement == torch) == moves


def test_what_moves_is_in_the_answer_and_a_torch_for_which_there_is_no_release_is_left_out(
    knowledge: Knowledge,
) -> None:
    advice = advised(knowledge, "2.9.1", "vllm==0.12.0", "torchvision==0.24.1")
    first = advice.candidates[0]
    moving = ", ".join(f"{name} {release}" for name, release in first.packages.items())
    assert f"With torch {first.build.requirement} move {moving}." in english(answer(advice))
    assert "There is no vllm for torch 2.12, 2.15 (PyPI for Python 3.11, asked 2026-11-29)." in english(answer(advice))
    out = {one.build: [english(reason) for reason in one.reasons] for one in advice.left_out}
    assert out["2.15.0+cu132"] == ["has no vllm that is built for it (PyPI, asked 2026-11-29)"]


def test_an_environment_names_what_holds_its_torch_back(knowledge: Knowledge) -> None:
    text = "torch==2.9.1\ntorchvision==0.24.1+cu128\nxformers==0.0.35\nbitsandbytes==0.45.5\nmoshi==0.2.13\n"
    answered = answer_environment(asked(text), knowledge, NOW)
    assert answered.holding == {"torchvision": "==2.9.1"}  # the others allow the newest torch, or nobody knows
    assert "held by   torchvision 0.24.1+cu128 asks for torch==2.9.1" in environment_text(answered)
