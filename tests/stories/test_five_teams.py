"""What `upgrade` answers five teams over the shipped evidence: each sentence and each number of it is counted again,
from the cells that the matrix shows.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from knowngood.domain.builds.plain_names import plain_name
from knowngood.store.knowledge.snapshot import read_shipped
from tests.fixtures.databases import NewStore
from tests.web.asking import client_of_release

Asked = Mapping[str, str]
TEAMS: Mapping[str, Asked] = {
    "an LLM on an H100": {
        "from": "2.6.0",
        "python": "3.12",
        "hardware": "cuda-sm_90",
        "component": "FlexAttention,SDPA,Triton,Inductor Triton",
    },
    "deepmd-kit on the CPU": {"from": "2.5.1", "hardware": "cpu-x86_64", "package": "deepmd-kit"},
    "torch-xla": {"from": "2.5.1", "hardware": "cpu-x86_64", "package": "torch-xla"},
    "GGUF": {"from": "2.7.1", "hardware": "cuda-sm_90", "issues": "comfyui-gguf-257"},
    "vision": {"from": "2.5.1", "hardware": "cpu-x86_64", "component": "Inductor,Inductor C++,Eager operators"},
}
KNOWN = read_shipped().knowledge.known
FAILS = ("needs_workaround", "fails")
TAKES_MORE = ("bigger", "more_work", "slower")
SURE = 2
"""So many runs on both sides confirm a gain."""


@pytest.fixture(scope="module")
def client(new_store: NewStore) -> Iterator[TestClient]:
    yield from client_of_release(new_store)


def wheel(build: str) -> str:
    """A cell names the build that it is of, also where the question was about the wheel."""
    return re.sub(r"^torch-|~py\d+$", "", build)


def does(cell: Mapping[str, Any]) -> str:
    if cell["verdict"] == "not_applicable":
        return "does_not_apply"
    if cell["assurance"] == "not_known":
        return "not_known"
    if cell["verdict"] in {"not_affected", *TAKES_MORE}:
        return "passes" if cell["verdict"] == "not_affected" else cell["verdict"]
    return "needs_workaround" if "effective" in cell["workarounds"].values() else "fails"


def counted(client: TestClient, told: Mapping[str, Any], hardware: str) -> Callable[[str], Counter[str]]:
    """A function that counts the cells of a build, and what became of those where the team is now."""
    start, *others = told["base"]["build"], *(one["build"] for one in told["candidates"])
    asked = {"builds": ",".join([start, *others]), "issues": ",".join(told["watched"]), "hardware": hardware}
    shown = client.get("/api/v1/matrix", params=asked).json()["cells"]
    cells = {(wheel(cell["build"]), cell["issue"]): cell for cell in shown}

    def of(build: str) -> Counter[str]:
        found: Counter[str] = Counter()
        for issue in told["watched"]:
            before, after = cells[wheel(start), issue], cells[wheel(build), issue]
            was, is_ = does(before), does(after)
            found[is_] += 1
            is_gained = was in (*FAILS, *TAKES_MORE) and is_ == "passes"
            found += Counter(gained=is_gained, lost=was == "passes" and is_ in FAILS)
            found += Counter(single=is_gained and min(before["runs"], after["runs"]) < SURE)
            found += Counter(not_known_before=was == "not_known" and is_ in FAILS)
            found += Counter(lost_for_good=was == "passes" and is_ == "fails")
        found["answered"] = sum(found[name] for name in ("passes", *FAILS, *TAKES_MORE))
        found["applicable"] = found["answered"] + found["not_known"]
        return found

    return of


Counts = Callable[[str], Counter[str]]
# What a sentence says of the build that is told of, and of the one where the team is.
CLAUSES: Mapping[str, Callable[[Counter[str], Counter[str]], tuple[int, ...]]] = {
    r"(\d+) gained": lambda there, _: (there["gained"],),
    r"(\d+) gained, none lost": lambda there, _: (there["gained"] if not there["lost"] else -1,),
    r"Too new to judge \((\d+) issues reported since its release\)": lambda there, _: (there["reported"],),
    r"(\d+) gained, (\d+) lost \((?:each|it) has a workaround\)": lambda there, _: (
        there["gained"],
        there["lost"] if not there["lost_for_good"] else -1,
    ),
    r"(\d+) not known before": lambda there, _: (there["not_known_before"],),
    r"(\d+) not known there": lambda there, _: (there["not_known"],),
    r"Measured: (\d+) of (\d+) there, (\d+) of (\d+) where you are": lambda there, here: (
        *(there["answered"], there["applicable"]),
        *(here["answered"], here["applicable"]),
    ),
    r"\S+ gains (\d+), but may lose (\d+): what fails there and is not known before": lambda there, _: (
        there["gained"],
        there["not_known_before"],
    ),
    r"\S+ gains (\d+), but no gain rests on more than a single run": lambda there, _: (
        there["gained"] if there["single"] == there["gained"] else -1,
    ),
    r"Outside of what you watch \((\d+)\): (\d+) gained, (\d+) lost": lambda there, _: (
        there["outside"],
        there["outside_gained"],
        there["outside_lost"],
    ),
    r"Nothing that you watch can exist on \S+": lambda there, _: () if not there["applicable"] else (-1,),
}


def is_true(sentence: str, there: Counter[str], here: Counter[str]) -> bool:
    return any(
        tuple(map(int, found.groups())) == count(there, here)
        for form, count in CLAUSES.items()
        if (found := re.fullmatch(form, sentence))
    )


@pytest.mark.parametrize("team", TEAMS)
def test_every_sentence_and_number_is_what_the_matrix_shows(client: TestClient, team: str) -> None:
    told = client.get("/api/v1/upgrade", params=TEAMS[team]).json()
    of = counted(client, told, TEAMS[team]["hardware"])
    for one in (told["base"], *told["candidates"]):
        numbers = {
            name: count
            for name, count in of(one["build"]).items()
            if name in one["counts"] and name != "does_not_apply"
        }
        assert +Counter(numbers) == +Counter({name: one["counts"][name] for name in numbers}), one["build"]
        assert (one["measured"] + one["from_python"] + one["from_cpu"], one["applicable"]) == (
            of(one["build"])["answered"],
            of(one["build"])["applicable"],
        )
    builds = {
        f"torch {plain_name(one['build']).removeprefix('torch ')}": one["build"]
        for one in (*told["candidates"], told["base"])
    }
    name = min((name for name in builds if name in told["answer"]), key=told["answer"].index)
    build = builds[name]
    first, left = told["answer"].replace(name, "BUILD").split(". ", 1)
    assert first == {
        "go": "Go to BUILD" + (" if you need one of its fixes, else wait" if "Too new to judge" in left else ""),
        "cannot_say": "Cannot say yet",
    }.get(told["decision"])
    others = [one.id for one in KNOWN.issues.values() if not (one.is_smoke or one.requires.package)]
    beside = counted(client, {**told, "watched": sorted({*others} - {*told["watched"]})}, TEAMS[team]["hardware"])(
        build
    )
    released = KNOWN.builds[f"torch-{wheel(build)}"].released
    there = of(build) + Counter(
        outside=beside["applicable"],
        outside_gained=beside["gained"],
        outside_lost=beside["lost"],
        reported=sum(
            bool(one.reported_on and released and one.reported_on > released) for one in KNOWN.issues.values()
        ),
    )
    for form in sorted(CLAUSES, key=len, reverse=True):
        found = re.search(form, left)
        if found and is_true(found[0], there, of(told["base"]["build"])):
            left = left.replace(found[0], "", 1)
    assert not re.sub(r"[\s.,]", "", left), left
