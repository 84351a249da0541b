"""A program of somebody else's, as mypy reads it: it is checked with everything here, strictly."""

from typing import assert_type

import knowngood


def choose_backend() -> str:
    if knowngood.workaround_needed("pytorch-151290", "aot_eager") is not False:
        return "aot_eager"
    return "inductor"


@knowngood.guard("pytorch-151290", unknown="warn")
def train(steps: int) -> float:
    return float(steps)


def test_the_public_names_have_types() -> None:
    assert_type(knowngood.affected("pytorch-151290"), bool | None)
    found = assert_type(knowngood.finding("pytorch-151290", hardware="cpu-x86_64"), knowngood.Finding)
    assert_type(found.affected, bool | None)
    assert_type(found.workarounds.get("aot_eager"), str | None)
    with knowngood.guard("pytorch-151290", action="warn", unknown="pass") as guarded:
        assert_type(guarded, knowngood.Finding)
    assert choose_backend() in {"aot_eager", "inductor"}
    assert callable(train)


def test_every_public_name_is_there() -> None:
    assert {name: getattr(knowngood, name).__module__ for name in knowngood.__all__}.keys() == set(knowngood.__all__)
    assert set(knowngood.__all__) <= set(dir(knowngood))
    assert issubclass(knowngood.UnknownIssue, LookupError)
    assert issubclass(knowngood.NotKnownGood, RuntimeError)
