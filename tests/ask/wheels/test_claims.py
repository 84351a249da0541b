"""Wheels that are not on the public index, by what sources claim: the shipped claims, the answers and the doors."""

import json
from datetime import date

import pytest
from fastapi.testclient import TestClient

from knowngood.ask.wheels.machine import on_machine, read_machine
from knowngood.domain.builds.platforms import LINUX, PLATFORMS
from knowngood.domain.message import english
from knowngood.environments.resolve import index_of_variant, variant_of
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, read_requirement
from knowngood.environments.wheels.table import shipped_claims, shipped_wheels, variants_of
from knowngood.gate.renderers.common import wrapped
from tests.commands.given import Call
from tests.web.soundness import faults

PAGE = "https://pytorch.org/get-started/previous-versions/"
ON_ITS_INDEX = "torch {} is on PyTorch's own index, by a claim: that index was not read here"
NO_SOURCE = "no source that was read lists such a wheel of {}"
GPUS_UNKNOWN = "which GPUs a wheel runs on is known of torch on Linux"
ROCM = "wheels for ROCm are on PyTorch's own index, by a claim: nobody read which GPUs they have code for"


def ask(question: str) -> WheelAnswer:
    """The answer to `torch==2.8.0 python=3.14 cuda=12.8`; no GPU of NVIDIA's is asked about."""
    requirement, *words = question.split()
    options = dict(word.split("=") for word in words)
    package, release = read_requirement(requirement)
    table = shipped_wheels()
    found = find_wheel(package, release, options.get("python", ""), options.get("platform", ""), table)
    machine = read_machine(*(options.get(name, "") for name in ("gpu", "driver", "cuda")))
    return on_machine(found, machine, None, table, shipped_claims(), is_named=bool(release))


def torch(release: str, variant: str, pin: str = "") -> str:
    return f"pip install torch=={pin or release} --index-url {index_of_variant(variant)}"


@pytest.mark.parametrize(
    ("question", "exists", "said", "claimed"),
    [
        ("torch==2.7.1 cuda=12.8", False, "torch 2.7.1 is built for CUDA 12.6", [torch("2.7.1", "cu128")]),
        ("torch==2.7.1 cuda=12.6", True, "torch 2.7.1 will do", []),
        ("torch==2.13.0 driver=550", False, "torch 2.13.0 is built for CUDA 13.0", [torch("2.13.0", "cu126")]),
        ("torch cuda=11.8", False, "torch 2.15.0 is built for CUDA 13.2", [torch("2.7.1", "cu118")]),
        (
            "torch==2.8.0 python=3.14 cuda=12.6",
            False,
            "torch 2.8.0 has no wheel for Python 3.14",
            [torch("2.8.0", "cu126"), torch("2.9.1", "cu126")],
        ),
        ("torch==2.8.0 python=3.14 driver=550", False, "torch 2.8.0 has no wheel for Python 3.14", []),
        (
            "torch==2.8.0 python=3.14 platform=windows cuda=12.8",
            False,
            "torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first",
            [torch("2.8.0", "cu128"), torch("2.9.1", "cu128")],
        ),
        (
            "torch==2.8.0 python=3.13 platform=windows cuda=12.8",
            None,
            ON_ITS_INDEX.format("2.8.0+cu128"),
            [torch("2.8.0", "cu128")],
        ),
        ("torch==2.8.0 platform=windows cuda=11.8", None, NO_SOURCE.format("torch 2.8.0"), [torch("2.7.1", "cu118")]),
        ("torch platform=windows cuda=12.8", None, ON_ITS_INDEX.format("2.11.0+cu128"), [torch("2.11.0", "cu128")]),
        ("torch platform=windows driver=550", None, ON_ITS_INDEX.format("2.14.1+cu126"), [torch("2.14.1", "cu126")]),
        ("torch platform=windows gpu=H100 cuda=12.8", None, GPUS_UNKNOWN, []),
        ("torchvision platform=windows cuda=12.8", None, GPUS_UNKNOWN, []),
        ("torch platform=macos cuda=12.8", None, NO_SOURCE.format("torch"), []),
        (
            "torch==2.6.0+cu126",
            None,
            ON_ITS_INDEX.format("2.6.0+cu126"),
            [torch("2.6.0", "cu126", "2.6.0+cu126")],
        ),
        (
            "torch==2.6.0+cpu platform=windows",
            None,
            ON_ITS_INDEX.format("2.6.0+cpu"),
            [torch("2.6.0", "cpu", "2.6.0+cpu")],
        ),
        ("torch==2.7.1+cu121", None, "torch 2.7.1+cu121 is of", [torch("2.5.1", "cu121", "2.5.1+cu121")]),
        ("torch==2.6.0+cu126 python=3.14", None, "torch 2.6.0+cu126 is of", [torch("2.9.1", "cu126", "2.9.1+cu126")]),
        ("torch==2.13.0+cu130 driver=550", None, "torch 2.13.0+cu130 is of", []),
        ("torch==2.6.0+cu126 gpu=H100", None, "torch 2.6.0+cu126 is of", []),
        ("torchvision==0.21.0+cu126", None, "torchvision 0.21.0+cu126 is of", []),
        ("torch gpu=MI300", None, ROCM, [torch("2.14.1", "rocm7.14")]),
        ("torch==2.10.0 gpu=MI250", None, ROCM, [torch("2.10.0", "rocm7.1")]),
        ("torch==2.8+cu128", None, ON_ITS_INDEX.format("2.8.0+cu128"), [torch("2.8.0", "cu128", "2.8.0+cu128")]),
        ("torch==2.9.1 gpu=rocm", None, ROCM, [torch("2.9.1", "rocm6.4")]),
        ("torch==2.9.1 gpu=MI300 platform=windows", None, NO_SOURCE.format("torch 2.9.1"), []),
        ("torch==2.10.0 gpu=xpu", None, ROCM.replace("ROCm", "XPU"), [torch("2.10.0", "xpu")]),
        ("flash_attn", None, "no wheels of flash-attn are known here; they are on https://github.com/Dao-AILab", [
            "pip install flash-attn --no-build-isolation"]),
        ("torch-scatter==2.1.2", None, "no wheels of torch-scatter are known here; they are on https://data.pyg.org", [
            "pip install torch-scatter -f https://data.pyg.org/whl/torch-${TORCH}+${CUDA}.html"]),
        ("flash", None, "flash is none of the packages", []),
    ],
)  # fmt: skip
def test_a_claim_is_told_with_its_source_and_makes_no_yes(
    question: str, *, exists: bool | None, said: str, claimed: list[str]
) -> None:
    answer = ask(question)
    assert (answer.exists, english(answer.why)[: len(said)]) == (exists, said)
    assert [change.command for change in answer.changes if change.sources] == claimed
    assert all(bool(change.sources) == bool(change.read_on) for change in answer.changes)


def test_the_python_and_the_release_to_change_are_named_and_that_their_wheels_are_claims_is_said_once() -> None:
    answer = ask("torch==2.8.0 python=3.14 platform=windows cuda=12.8")
    assert [(one.release, one.python, one.variant, one.sources) for one in answer.changes] == [
        ("", "3.13", "cu128", (PAGE,)),
        ("2.9.1", "", "cu128", (PAGE,)),
    ]
    assert [note.key for note in answer.notes] == ["wheel_cpu", "claims_alone", "variants_claimed"]
    assert english(answer.notes[2]).startswith("On PyTorch's own index torch 2.8.0 has cpu, cu126, cu128, cu129")


def test_of_a_release_that_is_told_by_a_claim_the_public_index_does_not_say_the_pythons() -> None:
    assert ask("torch gpu=MI300").pythons == {}
    assert ask("torch==2.8.0 platform=windows cuda=12.8").pythons == {}
    assert ask("torch==2.8.0 python=3.14 platform=windows cuda=12.8").pythons


def test_every_claim_has_sources_and_a_day_and_names_what_is_known() -> None:
    table = shipped_wheels()
    releases = {str(each.version) for each in table.releases("torch")}
    for claim in shipped_claims():
        assert claim.sources
        assert all(source.startswith("https://") for source in claim.sources)
        assert date(2026, 11, 29) <= claim.read_on <= table.read_on
        if claim.package == "torch":
            assert releases.issuperset(claim.torch)
            assert set(PLATFORMS).issuperset(claim.platforms)
            assert claim.variants
            assert all(variant_of(index_of_variant(variant)) == variant for variant in claim.variants)
        else:
            assert claim.package not in table.packages
            assert claim.page.startswith("https://")
            assert claim.command.startswith(f"pip install {claim.package} ")
            assert {release.rpartition(".")[0] for release in releases}.issuperset(claim.torch)


def test_no_variant_is_listed_twice() -> None:
    for release in shipped_wheels().releases("torch"):
        for platform in PLATFORMS:
            listed = variants_of(str(release.version), platform, shipped_claims())
            assert len(listed) == len(set(listed))


def test_the_cuda_of_each_default_wheel_is_among_the_variants_that_sources_list_for_it() -> None:
    for release in shipped_wheels().releases("torch"):
        listed = variants_of(str(release.version), LINUX, shipped_claims())
        assert f"cu{release.cuda.replace('.', '')}" in listed, release.version


@pytest.mark.parametrize(
    ("arguments", "code", "lines"),
    [
        (
            ("torch==2.8.0", "--python", "3.14", "--platform", "windows", "--cuda", "12.8"),
            1,
            [
                "Change one:",
                f"  Python 3.13      {torch('2.8.0', 'cu128')}   (claim)",
                f"  torch 2.9.1      {torch('2.9.1', 'cu128')}   (claim)",
                f"  claimed by {PAGE}, read on 2026-11-29",
                "From the public index Windows gets a CPU build; CUDA for Windows is on PyTorch's own index.",
                "A claim was not read in a wheel; that there is one for this Python is a claim too.",
            ],
        ),
        (("torch==2.6.0+cu126",), 3, ["By a claim:", f"  claimed by {PAGE}, read on 2026-11-29"]),
        (("torch", "--gpu", "MI300"), 3, wrapped(f"Not known: {ROCM}.")),
        (("flash-attn",), 3, ["  flash-attn       pip install flash-attn --no-build-isolation   (claim)"]),
    ],
)
def test_the_terminal_marks_a_claim_and_names_its_source(
    call: Call, arguments: tuple[str, ...], code: int, lines: list[str]
) -> None:
    done = call("wheels", *arguments)
    assert done.code == code
    assert [line for line in done.out.splitlines() if line in lines] == lines


def test_the_page_marks_a_claim_and_json_has_its_source(client: TestClient, call: Call) -> None:
    asked = {"release": "2.8.0", "python": "3.14", "platform": "windows", "cuda": "12.8"}
    page = client.get("/wheels", params=asked).text
    assert (
        f'claimed by <a href="{PAGE}" rel="noopener noreferrer">pytorch.org/get-started/previous-versions/</a>' in page
    )
    assert "whl/cu128" in page
    assert 'value="12.8"' in page
    assert faults(page) == []
    answer = client.get("/api/v1/wheels", params=asked).json()
    change = {"release": "2.9.1", "python": "", "command": torch("2.9.1", "cu128"), "variant": "cu128"}
    assert answer["changes"][1] == {**change, "sources": [PAGE], "read_on": "2026-11-29"}
    options = [f"--{name}={asked[name]}" for name in ("python", "platform", "cuda")]
    assert json.loads(call("wheels", "torch==2.8.0", *options, "--json").out) == answer
    elsewhere = client.get("/wheels?package=flash-attn").text
    assert "Not known: no wheels of flash-attn are known here" in elsewhere
    assert "<option selected>flash-attn</option>" in elsewhere
    assert faults(elsewhere) == []
