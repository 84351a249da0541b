from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowngood.domain.builds.build_names import BuildNames, find_build, minor_python, read_build_name
from knowngood.domain.errors import BadRequest, UnknownBuild
from tests.make import make_build

_ALL = [
    make_build("2.5.0+cu124", pinned_triton="3.1.0"),
    make_build("2.5.1+cu124", pinned_triton="3.1.0"),
    make_build("2.5.1+cu124", pinned_triton="3.1.0", python="3.10"),
    make_build("2.5.1+cu124", pinned_triton="3.1.0", python="3.12"),
    make_build("2.5.1+cu118", pinned_triton="3.1.0", origin="cu118"),
    make_build("2.5.1+cu124", pinned_triton="3.1.0", triton="3.2.0"),
    make_build("2.6.0+cu124", origin="cu124"),
    make_build("2.6.0+cu126", origin="cu126"),
    make_build("2.7.1+cu126", pinned_triton="3.3.1", python="3.13"),
    make_build("2.7.1+cu126", pinned_triton="3.3.1", python="3.12"),
    make_build("2.10.0+cu128", pinned_triton="3.6.0"),
    make_build("2.16.0.dev20261120+cu132", pinned_triton="3.9.0", origin="nightly/cu132"),
]
BUILDS = {build.id: build for build in _ALL}


@pytest.mark.parametrize(
    ("text", "torch", "triton", "python"),
    [
        ("torch-2.5.1+cu124", "2.5.1+cu124", None, "3.11"),
        ("torch-2.5.1 cu124", "2.5.1+cu124", None, "3.11"),
        ("Torch-2.5.1+CU124", "2.5.1+cu124", None, "3.11"),
        ("torch-2.5.1", "2.5.1", None, "3.11"),
        ("torch-2.5.1+cu124~py312", "2.5.1+cu124", None, "3.12"),
        ("torch-2.5.1+cu124~triton-3.2.0~py312", "2.5.1+cu124", "3.2.0", "3.12"),
        ("2.5.1", "2.5.1", None, None),
        ("  v2.5.1 ", "2.5.1", None, None),
        ("2.5.1+cu124", "2.5.1+cu124", None, None),
        ("2.5.1 cu124", "2.5.1+cu124", None, None),
        ("2.5.1 + cu124", "2.5.1+cu124", None, None),
        ("torch 2.5.1", "2.5.1", None, None),
        ("torch 2.5.1 cu124", "2.5.1+cu124", None, None),
        ("torch2.5.1", "2.5.1", None, None),
        ("torch==2.5.1", "2.5.1", None, None),
        ("torch == 2.5.1+cu124", "2.5.1+cu124", None, None),
        ("torch===2.5.1", "2.5.1", None, None),
        ("torch=2.5.1", "2.5.1", None, None),
        ("pytorch 2.5.1", "2.5.1", None, None),
        ("pytorch-2.5.1", "2.5.1", None, None),
        ("2.5.1+cu124~py312", "2.5.1+cu124", None, "3.12"),
        ("2.5.1 ~py312", "2.5.1", None, "3.12"),
        ("2.5.1~triton-3.2.0", "2.5.1", "3.2.0", None),
        ("2.16.0.dev20261120", "2.16.0.dev20261120", None, None),
        ("2.5", "2.5", None, None),
    ],
)
def test_a_build_is_read_in_every_way_that_people_write_it(
    text: str, torch: str, triton: str | None, python: str | None
) -> None:
    name = read_build_name(text)
    assert (str(name.torch), str(name.triton) if name.triton else None, name.python) == (torch, triton, python)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", '"" names no build; write a version of torch (2.6.0, 2.6.0+cu124) or the id of a build'),
        ("torch", '"torch" names no build'),
        ("newest", '"newest" names no build'),
        ("torch-2.5.1-cu124", '"torch-2.5.1-cu124" names no build'),
        ("torch>=2.5", '"torch>=2.5" names no build'),
        ("2.5.1~py", 'has "~py"; known parts are ~triton-VERSION and ~py312'),
        ("2.5.1~cpu", 'has "~cpu"'),
        ("\x1b[31m", "\N{REPLACEMENT CHARACTER}[31m"),
        ("torch-" + "9" * 5000, "\N{HORIZONTAL ELLIPSIS}"),
        ("9" * 150, "no build is called"),
    ],
)
def test_what_names_no_build_is_refused_in_words(text: str, words: str) -> None:
    with pytest.raises(UnknownBuild) as raised:
        find_build(text, BUILDS)
    assert words in str(raised.value)
    assert len(str(raised.value)) < 400
    assert str(raised.value).isprintable()


@pytest.mark.parametrize(
    ("text", "build"),
    [
        ("torch-2.5.1+cu124", "torch-2.5.1+cu124"),
        ("torch-2.5.1+cu124~py312", "torch-2.5.1+cu124~py312"),
        ("torch-2.5.1+cu124~triton-3.2.0", "torch-2.5.1+cu124~triton-3.2.0"),
        ("2.5.1", "torch-2.5.1+cu124"),
        ("torch-2.5.1", "torch-2.5.1+cu124"),
        ("torch==2.5.1", "torch-2.5.1+cu124"),
        ("2.5.1+cu118", "torch-2.5.1+cu118"),
        ("2.5.1 cu118", "torch-2.5.1+cu118"),
        ("2.5.1~py310", "torch-2.5.1+cu124~py310"),
        ("2.5.1~triton-3.2.0", "torch-2.5.1+cu124~triton-3.2.0"),
        pytest.param("2.5.1~triton-3.1.0", "torch-2.5.1+cu124", id="its own Triton is no other build"),
        pytest.param("2.7.1", "torch-2.7.1+cu126~py312", id="the lowest Python where the default one is not there"),
        pytest.param("2.16.0.dev20261120", "torch-2.16.0.dev20261120+cu132", id="the only variant there is"),
        pytest.param("2.5", "torch-2.5.0+cu124", id="2.5 is 2.5.0"),
    ],
)
def test_a_name_is_one_build_of_the_catalogue(text: str, build: str) -> None:
    assert find_build(text, BUILDS).id == build


@pytest.mark.parametrize(
    ("text", "words", "nearest"),
    [
        (
            "2.6.0",
            "and none of those here is the default index's; candidates: torch-2.6.0+cu124, torch-2.6.0+cu126",
            ("torch-2.6.0+cu124", "torch-2.6.0+cu126"),
        ),
        (
            "torch-2.5.1+cu124~py313",
            "here: torch-2.5.1+cu124 is there for Python 3.10, 3.11 and 3.12, not for Python 3.13; nearest: ",
            ("torch-2.5.1+cu124~py310", "torch-2.5.1+cu124", "torch-2.5.1+cu124~py312"),
        ),
        (
            "torch-2.7.1+cu126",
            "is there for Python 3.12 and 3.13, not for Python 3.11",
            ("torch-2.7.1+cu126~py312", "torch-2.7.1+cu126~py313"),
        ),
        (
            "2.5.1+cu121",
            'no build is called "2.5.1+cu121" here; nearest: torch-2.5.1+cu118, ',
            ("torch-2.5.1+cu118", "torch-2.5.1+cu124", "torch-2.5.1+cu124~triton-3.2.0"),
        ),
        (
            "2.5.1+cpu",
            "of torch 2.5.1 there are +cu118, +cu124 wheels, whose answers are not this one's; name one, or declare ",
            ("torch-2.5.1+cu124", "torch-2.5.1+cu118", "torch-2.5.1+cu124~triton-3.2.0"),
        ),
        pytest.param(
            "2.9.1",
            'no build is called "2.9.1" here; nearest: ',
            ("torch-2.10.0+cu128", "torch-2.7.1+cu126~py312", "torch-2.6.0+cu124"),
            id="by the order of versions, not by letters",
        ),
        pytest.param(
            "torch-2.5.1-cu118",
            '"torch-2.5.1-cu118" names no build',
            ("torch-2.5.1+cu124", "torch-2.5.1+cu118", "torch-2.5.1+cu124~triton-3.2.0"),
            id="near the version that stands in it",
        ),
        ("newest", '"newest" names no build', ()),
    ],
)
def test_what_may_be_meant_is_named(text: str, words: str, nearest: tuple[str, ...]) -> None:
    with pytest.raises(UnknownBuild) as raised:
        find_build(text, BUILDS)
    assert words in str(raised.value)
    assert raised.value.nearest == nearest


def test_a_python_beside_a_name_outweighs_it() -> None:
    assert find_build("torch-2.5.1+cu124", BUILDS, python="3.12").id == "torch-2.5.1+cu124~py312"
    assert find_build("2.5.1", BUILDS, python="3.10").id == "torch-2.5.1+cu124~py310"
    with pytest.raises(UnknownBuild, match=r"not for Python 3\.9"):
        find_build("2.5.1", BUILDS, python="3.9")


@pytest.mark.parametrize(("text", "python"), [("3.12", "3.12"), (" 3.12.4 ", "3.12"), ("3.13.0rc1", "3.13"), ("", "")])
def test_a_python_is_read_by_its_minor_release(text: str, python: str) -> None:
    assert minor_python(text) == python


@pytest.mark.parametrize("text", ["three", "3", "\N{FULLWIDTH DIGIT THREE}.12", "cp312"])
def test_what_is_no_python_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match=r"is none; write for example 3\.12"):
        minor_python(text)


@given(st.sampled_from(_ALL))
def test_every_id_of_the_catalogue_is_its_own_name(build: object) -> None:
    names = BuildNames(BUILDS)
    assert all(names.find(id_) is known for id_, known in BUILDS.items() if known is build)
    assert all(names.find(id_.replace("+", " ")) is known for id_, known in BUILDS.items() if known is build)


_PARTS = [
    "torch",
    "pytorch",
    "-",
    "==",
    " ",
    "v",
    "2.5.1",
    "2.6",
    "9" * 90,
    "+",
    "cu124",
    "cpu",
    "~",
    "py312",
    "triton-3.2",
]


@given(st.text() | st.lists(st.sampled_from(_PARTS), max_size=8).map("".join))
def test_any_text_is_a_build_of_the_catalogue_or_refused(text: str) -> None:
    with suppress(UnknownBuild):
        assert find_build(text, BUILDS).id in BUILDS


def test_two_defaults_of_one_release_are_no_default() -> None:
    twice = {**BUILDS, "torch-2.5.1+cu118": replace(BUILDS["torch-2.5.1+cu118"], origin="default")}
    with pytest.raises(UnknownBuild, match=r"candidates: torch-2\.5\.1"):
        find_build("2.5.1", twice)
