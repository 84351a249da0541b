import pytest

from knowngood.domain.builds.build import BuildId, difference, parse_build_id
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.message import english
from tests.make import make_build

PLAIN = {"torch": "2.6.0+cu124", "cuda": "12.4", "triton": "3.2.0", "python": "3.11.7"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch-2.6.0+cu124", BuildId("2.6.0+cu124")),
        ("torch-2.6.0 cu124", BuildId("2.6.0+cu124")),
        ("torch-2.15.0", BuildId("2.15.0")),
        ("torch-2.13.0+cpu", BuildId("2.13.0+cpu")),
        ("torch-2.4.0+rocm6.1", BuildId("2.4.0+rocm6.1")),
        ("torch-2.12.0.dev20260401+cu130", BuildId("2.12.0.dev20260401+cu130")),
        ("torch-2.9.0rc3+cu128", BuildId("2.9.0rc3+cu128")),
        ("torch-2.0.1.post2", BuildId("2.0.1.post2")),
        ("torch-2.6.0a0+ecf131c.nv25.1", BuildId("2.6.0a0+ecf131c.nv25.1")),
        ("torch-2.6.0+cu124~triton-3.3.0", BuildId("2.6.0+cu124", triton="3.3.0")),
        ("torch-2.6.0+cu124~py312", BuildId("2.6.0+cu124", python="3.12")),
        ("torch-2.6.0+cu124~triton-3.3.0~py39", BuildId("2.6.0+cu124", triton="3.3.0", python="3.9")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_build_id_reads_and_prints_back(text: str, expected: BuildId) -> None:
    assert parse_build_id(text) == expected
    assert str(parse_build_id(str(expected))) == str(expected)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("2.6.0", 'start with "torch-"'),
        ("torch-", "PEP 440"),
        ("torch-two", "PEP 440"),
        ("torch-2.6.0~cuda-12", "~cuda-12"),
        ("torch-2.6.0~triton-3..", "PEP 440"),
        ("torch-2.6.0~py", "~py"),
        ("", 'start with "torch-"'),
    ],
)
def test_a_bad_build_id_is_refused_with_the_form_expected(text: str, word: str) -> None:
    with pytest.raises(UnknownBuild, match=word.replace("(", r"\(")):
        parse_build_id(text)


def test_builds_order_by_release_then_local_part_then_triton_then_python() -> None:
    line = [
        "torch-2.6.0a0+ecf131c.nv25.1",
        "torch-2.6.0",
        "torch-2.6.0+cu124",
        "torch-2.6.0+cu124~py312",
        "torch-2.6.0+cu124~triton-3.3.0",
        "torch-2.7.0.dev20250101+cu126",
        "torch-2.7.0rc1+cu126",
        "torch-2.7.0",
        "torch-2.7.0+cu118",
        "torch-2.7.0+cu128",
        "torch-2.7.1+cu126",
        "torch-2.10.0+cu128",
    ]
    assert [str(one) for one in sorted(map(parse_build_id, reversed(line)))] == line


def test_what_was_asked_for_and_imported_differs_in_nothing() -> None:
    assert difference(make_build(), PLAIN, {}) is None


@pytest.mark.parametrize(
    ("imported", "pins", "word"),
    [
        ({"torch": "2.6.0+cpu"}, {}, "torch 2.6.0 (CPU) was imported where 2.6.0 (CUDA 12.4)"),
        ({"torch": "2.6.1+cu124"}, {}, "torch 2.6.1"),
        ({"cuda": ""}, {}, "cuda missing"),
        ({"cuda": "12.6"}, {}, "cuda 12.6"),
        ({"triton": "3.3.0"}, {}, "triton 3.3.0"),
        ({"python": "3.12.1"}, {}, "Python 3.12.1"),
        ({"python": "3.1"}, {}, r"Python 3.1 ran"),
        ({}, {"torch_xla": "2.6.0"}, "torch_xla missing"),
    ],
)
def test_a_build_other_than_the_one_asked_for_is_told(
    imported: dict[str, str], pins: dict[str, str], word: str
) -> None:
    assert word in english(difference(make_build(), {**PLAIN, **imported}, pins))


@pytest.mark.parametrize(
    ("asked", "imported", "word"),
    [
        ("a" * 40, "a" * 40, None),
        ("a" * 40, "b" * 40, f"git revision {'b' * 40} was imported where {'a' * 40} was asked for"),
        ("a" * 40, "", None),
        ("", "b" * 40, None),
    ],
)
def test_revisions_are_compared_where_both_are_known(asked: str, imported: str, word: str | None) -> None:
    found = difference(make_build(git=asked), {**PLAIN, "git": imported}, {})
    assert found is None if word is None else word in english(found)


def test_builds_that_differ_in_python_alone_have_their_name_apart_from_it_in_common() -> None:
    names = ["torch-2.6.0+cu124", "torch-2.6.0+cu124~py312", "torch-2.6.0+cu124~py313"]
    assert {str(parse_build_id(name).apart_from_python) for name in names} == {"torch-2.6.0+cu124"}
    other = parse_build_id("torch-2.6.0+cu124~triton-3.3.0~py312")
    assert str(other.apart_from_python) == "torch-2.6.0+cu124~triton-3.3.0"


def test_a_local_cpu_wheel_never_stands_in_for_a_plain_release() -> None:
    assert difference(make_build("2.15.0", pinned_triton=None), {"torch": "2.15.0+cpu", "python": "3.11.2"}, {})
