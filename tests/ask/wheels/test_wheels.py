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

from knowngood.domain.builds.platforms import PLATFORMS
from knowngood.domain.errors import BadRequest
from knowngood.domain.message import Message
from knowngood.environments.wheels.answer import WheelAnswer, find_wheel, pythons_in_words, read_requirement
from knowngood.environments.wheels.table import PYTHONS, WheelRelease, WheelTable, shipped_wheels
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


def test_the_page_says_it_first_and_keeps_the_choices(client: TestClient) -> None:
    page = client.get("/wheels", params={"release": "2.8.0", "python": "3.14", "platform": "windows"})
    assert "No: torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first release that has one." in page.text
    assert "<code>pip install torch==2.9.0</code>" in page.text
    assert '<option value="windows-x86_64" selected>' in page.text
    assert faults(page.text) == []
    assert client.get("/wheels", params={"python": "4"}).status_code == 422
    assert "Not known: flash-attn is none of the packages" in client.get("/wheels?package=flash-attn").text


def test_json_is_the_same_over_http_and_on_the_command_line(client: TestClient, call: Call) -> None:
    done = call("wheels", "torch==2.8.0", "--python", "3.12", "--platform", "linux", "--json")
    asked = {"release": "2.8.0", "python": "3.12", "platform": "linux"}
    assert (done.code, json.loads(done.out)) == (0, client.get("/api/v1/wheels", params=asked).json())


@pytest.mark.parametrize(
    ("arguments", "code", "first"),
    [
        (("torch==2.8.0", "--python", "3.12"), 0, "Yes: torch 2.8.0 has a wheel for Python 3.12."),
        (("torch==2.8.0", "--python", "3.14"), 1, "No: torch 2.8.0 has no wheel for Python 3.14; 2.9.0 is the first"),
        (("flash-attn",), 3, "Not known: flash-attn is none of the packages"),
        (("torch>=2",), 2, ""),
        (("torch", "--platform", "beos"), 2, ""),
    ],
)
def test_the_command_ends_as_its_help_says(call: Call, arguments: tuple[str, ...], code: int, first: str) -> None:
    done = call("wheels", *arguments)
    assert (done.code, done.out.startswith(first)) == (code, True)
