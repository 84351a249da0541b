"""The build that somebody comes from, as an upgrade is asked with it."""

import pytest

from knowngood.environments.resolve import ResolvedBuild
from knowngood.gate.request import BadField
from knowngood.move.upgrade.request import start_name, start_of
from knowngood.store.knowledge.model import Knowledge
from tests.gate.given_gate import make_known
from tests.make import make_build

BUILDS = [make_build(), make_build(python="3.12"), make_build("2.5.1+cu124", pinned_triton="3.1.0")]
GROUNDS = Knowledge(make_known((), builds=BUILDS), frozenset(build.id for build in BUILDS))


def lock(requires: str) -> str:
    package = "[[package]]\nname = 'torch'\nversion = '2.6.0+cu124'\n"
    return f"version = 1\nrequires-python = '{requires}'\n{package}"


@pytest.mark.parametrize(
    ("requires", "python", "build"),
    [
        ("==3.12.*", "", "torch-2.6.0+cu124~py312"),
        ("==3.11.*", "", "torch-2.6.0+cu124"),
        pytest.param("==3.11.*", "3.12", "torch-2.6.0+cu124", id="the Python that is wanted is not the file's"),
        pytest.param(">=3.11", "3.12", "torch-2.6.0+cu124~py312", id="it is where the file leaves it open"),
    ],
)
def test_the_python_of_a_file_outweighs_that_of_the_upgrade(requires: str, python: str, build: str) -> None:
    assert start_of("uv.lock", lock(requires), python, GROUNDS).build == build


def test_what_is_no_python_is_told_apart_from_the_file() -> None:
    with pytest.raises(BadField, match='Python "three" is none'):
        start_of("uv.lock", lock(">=3.11"), "three", GROUNDS)


@pytest.mark.parametrize(("pythons", "name"), [(("3.11",), "torch-2.6.0+cu124"), (("3.11", "3.12"), "2.6.0+cu124")])
def test_a_python_that_an_environment_leaves_open_stays_open(pythons: tuple[str, ...], name: str) -> None:
    assert start_name(ResolvedBuild("torch-2.6.0+cu124", "", pythons=pythons)) == name
