"""Is there a wheel: the rule on a small table, the shipped table beside packaging's own tags, and the doors."""

import json
import random
from collections.abc import Iterator
from datetime import date

import pytest
from fastapi.testclient import TestClient
from packaging import tags
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from knowngood.ask.wheels.machine import on_machine, read_machine
from knowngood.domain.builds.platforms import PLATFORMS
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import Message, english
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, pythons_in_words, read_requirement
from knowngood.environments.wheels.table import PYTHONS, WheelRelease, WheelTable, shipped_wheels
from knowngood.store.knowledge.snapshot import read_shipped
from tests.commands.given import Call
from tests.web.soundness import faults

LINUX, MAC = "manylinux_2_28_x86_64", "macosx_11_0_arm64"


def release(version: str, *wheels: str, yanked: str = "", requires: str = "") -> WheelRelease:
    return WheelRelease(Version(version), date(2025, 1, 1), yanked, SpecifierSet(requires), " ".join(wheels))


TABLE = WheelTable(
    date(2026, 11, 29),
    {
        "torch": (
            release("2.4.0", f"cp311-cp311-{LINUX}", "cp311-none-macosx_10_9_x86_64"),
            release("2.5.0", f"cp312-cp312-{LINUX}", "cp312-cp312-win_amd64", yanked="a flaw in its DLLs"),
            release("2.6.0", f"cp312-cp312-{LINUX}", f"cp313-cp313-{MAC}", f"cp313-cp313t-{LINUX}"),
            release("2.7.0rc1", f"cp314-cp314-{LINUX}"),
        ),
        "pure": (release("1.0", "py3-none-any", requires=">=3.11"),),
        "stable": (release("1.0", f"cp39-abi3-{LINUX}"),),
    },
)


def ask(requirement: str, python: str = "", platform: str = "") -> WheelAnswer:
    return find_wheel(*read_requirement(requirement), python, platform, TABLE)


@pytest.mark.parametrize(
    ("requirement", "python", "platform", "exists", "keys"),
    [
        ("torch==2.6.0", "3.12", "linux", True, {"wheel_there"}),
        ("torch==2.6", "", "", True, {"wheels_there"}),
        ("torch==2.6.9", "", "", False, {"wheel_no_release"}),
        ("torch", "", "", True, {"wheels_there"}),
        ("torch", "3.11", "", True, {"wheel_there"}),
        ("torch==2.4.0", "3.13t", "", False, {"wheel_not_there", "wheel_first"}),
        ("torch==2.6.0", "", "macos-x86_64", False, {"wheel_not_there", "wheel_last"}),
        ("torch==2.6.0", "3.13", "linux", False, {"wheel_not_there", "wheel_of_none"}),
        ("torch==2.6.0", "3.14", "", False, {"wheel_not_there", "wheel_of_none"}),
        ("torch==2.6.0", "", "windows", False, {"wheel_not_there", "wheel_of_none"}),
        ("torch==2.5.0", "", "windows", True, {"wheel_there"}),
        ("torch==2.6.0+cu124", "", "", None, {"wheel_local"}),
        ("torch==2.3.1", "", "", None, {"wheel_too_old"}),
        ("flash-attn", "", "", None, {"wheel_no_package"}),
        ("Pure", "3.10", "", False, {"wheel_not_there", "wheel_of_none"}),
        ("pure", "3.13t", "windows", True, {"wheel_there"}),
        ("stable", "3.14", "linux", True, {"wheel_there"}),
        ("stable", "3.14t", "linux", False, {"wheel_not_there", "wheel_of_none"}),
    ],
)
def test_what_the_table_says(
    requirement: str, python: str, platform: str, *, exists: bool | None, keys: set[str]
) -> None:
    answer = ask(requirement, python, platform)
    said = answer.why.values.get("clauses", (answer.why,))
    assert isinstance(said, tuple)
    assert (answer.exists, {one.key for one in said if isinstance(one, Message)}) == (exists, keys)


def test_where_there_is_none_the_nearest_python_and_release_are_named() -> None:
    answer = ask("torch==2.4.0", "3.12", "linux")
    assert [(one.release, one.python, one.command) for one in answer.changes] == [
        ("", "3.11", "pip install torch==2.4.0"),
        ("2.6.0", "", "pip install torch==2.6.0"),  # 2.5.0 was taken back
    ]
    assert [note.key for note in ask("torch==2.5.0", "", "windows").notes] == ["wheel_yanked", "wheel_cpu"]
    assert ask("torch==2.6.0", "3.12", "linux").glibc == "2.28"


@pytest.mark.parametrize("text", ["torch>=2", "torch==2.*", "a b", "torch==2,==3"])
def test_what_names_no_single_release_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="write"):
        read_requirement(text)


@pytest.mark.parametrize(
    ("pythons", "words"),
    [(("3.9", "3.10", "3.11", "3.13t"), "3.9 to 3.11, 3.13t"), (("3.9", "3.11"), "3.9, 3.11"), (("3.12",), "3.12")],
)
def test_pythons_are_told_as_a_range(pythons: tuple[str, ...], words: str) -> None:
    assert pythons_in_words(pythons) == words


def compatible(python: str, platform: str) -> Iterator[tags.Tag]:
    """The tags that pip would take there, by packaging; of the newest systems, so that the kind of machine decides."""
    version, machine = (3, int(python.rstrip("t")[2:])), platform.partition("-")[2]
    if platform.startswith("macos"):
        systems = list(tags.mac_platforms((26, 0), machine))
    elif platform.startswith("windows"):
        systems = ["win_amd64"]
    else:
        old = [f"manylinux{name}_{machine}" for name in ("1", "2010", "2014")]
        systems = [*(f"manylinux_2_{minor}_{machine}" for minor in range(5, 50)), *old, f"linux_{machine}"]
    abi = f"cp3{version[1]}{'t' if python.endswith('t') else ''}"
    yield from tags.cpython_tags(version, [abi], systems)
    yield from tags.compatible_tags(version, f"cp3{version[1]}", systems)


def test_the_shipped_table_says_what_packaging_says_of_the_same_tags() -> None:
    """Three hundred questions, drawn by seed over package, release, Python and platform. On 2026-11-29 the index, asked
    anew, said the same to 200 such questions, and uv's resolver to 20.
    """
    table, chance = shipped_wheels(), random.Random(29)  # noqa: S311 - no secret
    wrong = []
    for _ in range(300):
        package = chance.choice(list(table.packages))
        one = chance.choice(table.packages[package])
        python, platform = chance.choice(PYTHONS), chance.choice(PLATFORMS)
        theirs = set(compatible(python, platform))
        fits = any(not theirs.isdisjoint(tags.parse_tag(text)) for text in one.tags.split())
        allowed = f"{python.rstrip('t')}.99" in one.requires
        if one.has(python, platform) != (fits and allowed):
            wrong.append((package, str(one.version), python, platform))
    assert wrong == []


def test_the_shipped_table_has_torch_since_2_1_and_what_stands_beside_it() -> None:
    table = shipped_wheels()
    assert str(table.packages["torch"][0].version) == "2.1.0"
    assert len(table.packages) == 20
    assert not find_wheel("torch", "2.3.0", "", "macos-x86_64", table).exists
    assert find_wheel("torch", "2.2.2", "", "macos-x86_64", table).exists


READ = "of the wheels that were read, torch {} to {} will do; torch {}: CUDA {}, driver {} or newer"


@pytest.mark.parametrize(
    ("requirement", "machine", "exists", "said"),
    [
        ("torch", {"gpu": "RTX 5090"}, True, READ.format("2.8.0", "2.15.0", "2.15.0", "13.2", 580)),
        ("torch", {"gpu": "V100"}, True, READ.format("2.1.2", "2.10.0", "2.10.0", "12.8", 525)),
        ("torch", {"gpu": "GTX 1080"}, True, READ.format("2.1.2", "2.7.1", "2.7.1", "12.6", 525)),
        ("torch", {"gpu": "H100", "driver": "550.54.15"}, True, READ.format("2.1.2", "2.10.0", "2.10.0", "12.8", 525)),
        ("torch", {"driver": "550.54.15"}, True, READ.format("2.1.0", "2.10.0", "2.10.0", "12.8", 525)),
        ("torch", {"cuda": "12.6"}, True, READ.format("2.7.0", "2.7.1", "2.7.1", "12.6", 525)),
        (
            "torch",
            {"cuda": "11.8"},
            False,
            "torch 2.15.0 is built for CUDA 13.2 on the public index; no release that was ",
        ),
        (
            "torch",
            {"gpu": "RTX 5090", "driver": "470.1"},
            False,
            "torch 2.15.0 is built for CUDA 13.2, which needs driver",
        ),
        (
            "torch==2.7.1",
            {"gpu": "RTX 5090"},
            False,
            "torch 2.7.1 for CUDA 12.6, the wheel on the public index, holds no code for sm_120; 2.8.0 is the first",
        ),
        (
            "torch==2.15.0",
            {"gpu": "V100"},
            False,
            "torch 2.15.0 for CUDA 13.2, the wheel on the public index, holds no code for sm_70; 2.10.0 is the newest",
        ),
        ("torch==2.13.0", {"driver": "550"}, False, "torch 2.13.0 is built for CUDA 13.0, which needs driver 580"),
        ("torch==2.8.0", {"gpu": "RTX 5090"}, True, "torch 2.8.0 will do: CUDA 12.8, driver 525 or newer"),
        ("torch==2.14.0", {"gpu": "V100"}, None, "torch 2.14.0 was not installed here, so that nobody read"),
        ("torchvision", {"gpu": "V100"}, None, "which GPUs a wheel runs on is known of torch on Linux x86-64 alone"),
        ("torch==2.99", {"gpu": "V100"}, False, "the index has no torch 2.99; its releases"),
    ],
)
def test_a_gpu_a_driver_and_a_cuda_narrow_it_to_the_wheels_that_run_there(
    requirement: str, machine: dict[str, str], *, exists: bool | None, said: str
) -> None:
    answer = asked_of(requirement, "", machine)
    assert (answer.exists, english(answer.why)[: len(said)]) == (exists, said)
    assert all(change.command == f"pip install torch=={change.release}" for change in answer.changes)


def asked_of(requirement: str, platform: str, machine: dict[str, str]) -> WheelAnswer:
    package, release = read_requirement(requirement)
    found = find_wheel(package, release, "", platform, shipped_wheels())
    words = (machine.get(name, "") for name in ("gpu", "driver", "cuda"))
    known = read_shipped().knowledge.known
    return on_machine(found, read_machine(*words), known, shipped_wheels(), (), is_named=bool(release))


def test_the_ranges_of_what_runs_there_are_told_with_what_does_not_and_what_nobody_read() -> None:
    notes = [english(note) for note in asked_of("torch", "", {"gpu": "RTX 5090"}).notes]
    assert notes == [
        "2.8.0 to 2.10.0: CUDA 12.8, driver 525 or newer",
        "2.11.0 to 2.14.1: CUDA 13.0, driver 580 or newer",
        "2.15.0: CUDA 13.2, driver 580 or newer",
        "Drivers are those that this CUDA needs; a card may need a newer one",
        "These hold no code for it: 2.1.2, 2.2.2, 2.3.1, 2.4.1, 2.5.1, 2.6.0, 2.7.0, 2.7.1",
        "Not read: 2.1.0, 2.1.1, 2.2.0, 2.2.1, 2.3.0, 2.4.0, 2.5.0, 2.12.0, 2.14.0",
    ]


def test_between_the_first_and_the_last_release_that_run_there_none_is_known_not_to() -> None:
    """The sentence names a range: no list that was read may make a hole in it."""
    order = [str(one.version) for one in shipped_wheels().releases("torch")]
    for class_ in ("sm_50", "sm_61", "sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"):
        answer = asked_of("torch", "", {"gpu": class_})
        lacking = {name for note in answer.notes for name in english(note).partition("no code for it: ")[2].split(", ")}
        first, last = english(answer.why).split("torch ")[1].split(" will")[0].split(" to ")
        assert lacking.isdisjoint(order[order.index(first) : order.index(last)])


def test_of_another_platform_nobody_read_which_gpus_a_wheel_has_code_for() -> None:
    assert asked_of("torch", "windows", {"gpu": "RTX 5090"}).exists is None


@pytest.mark.parametrize("words", [("CPU", "", ""), ("toaster", "", ""), ("", "new", ""), ("", "", "cu128")])
def test_what_is_no_gpu_driver_or_cuda_is_refused(words: tuple[str, str, str]) -> None:
    with pytest.raises(BadRequest, match="write"):
        read_machine(*words)


@pytest.mark.parametrize(
    ("version", "cuda"), [("2.1.0", "12.1"), ("2.6.0", "12.4"), ("2.11.0", "13.0"), ("2.15.0", "13.2")]
)
def test_the_cuda_of_a_release_is_that_of_the_runtime_that_its_wheel_asks_for(version: str, cuda: str) -> None:
    assert next(one for one in shipped_wheels().releases("torch") if str(one.version) == version).cuda == cuda


def test_the_page_says_it_first_and_keeps_the_choices(client: TestClient) -> None:
    page = client.get("/wheels", params={"release": "2.8.0", "python": "3.14", "platform": "windows"})
    assert "No: torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first release that has one." in page.text
    assert "<code>pip install torch==2.9.0</code>" in page.text
    assert '<option value="windows-x86_64" selected>' in page.text
    assert faults(page.text) == []
    assert client.get("/wheels", params={"python": "4"}).status_code == 422
    assert "Not known: flash is none of the packages" in client.get("/wheels?package=flash").text
    assert client.get("/wheels", params={"hardware": "toaster"}).status_code == 422


def test_the_page_and_json_know_the_gpus_of_wheels_that_the_store_has(shipped_client: TestClient) -> None:
    asked = {"hardware": "RTX 5090", "driver": "550.54.15"}
    assert shipped_client.get("/api/v1/wheels", params=asked).json()["release"] == "2.10.0"
    page = shipped_client.get("/wheels", params=asked)
    assert "Yes: of the wheels that were read, torch 2.8.0 to 2.10.0 will do" in page.text
    assert 'value="RTX 5090"' in page.text
    assert "my build" not in page.text  # the address speaks of a wheel, not of what the reader has
    assert faults(page.text) == []


def test_json_is_the_same_over_http_and_on_the_command_line(client: TestClient, call: Call) -> None:
    done = call("wheels", "torch==2.8.0", "--python", "3.12", "--platform", "linux", "--json")
    asked = {"release": "2.8.0", "python": "3.12", "platform": "linux"}
    assert (done.code, json.loads(done.out)) == (0, client.get("/api/v1/wheels", params=asked).json())


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (("torch", "--gpu", "CPU"), 2, ""),
        (("torch==2.8.0", "--python", "3.12"), 0, "Yes: torch 2.8.0 has a wheel for Python 3.12."),
        (("torch==2.8.0", "--python", "3.14"), 1, "No: torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first"),
        (("flash",), 3, "Not known: flash is none of the packages"),
        (("torch>=2",), 2, ""),
        (("torch", "--platform", "beos"), 2, ""),
    ],
)
def test_the_command_ends_as_its_help_says(call: Call, arguments: tuple[str, ...], code: int, first: str) -> None:
    done = call("wheels", *arguments)
    assert (done.code, done.out.startswith(first)) == (code, True)
