"""`knowngood import` and `push` of results that are not taken: what is told, and how it ends."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from knowngood.domain.access import Scope
from knowngood.domain.measuring.job import Attempt
from knowngood.share.bundle import BundleHeader, write_bundle
from knowngood.store.engine import Engine
from tests.commands.given import Call
from tests.make import NOON, make_attempt
from tests.serving import served
from tests.web.asking import app_over
from tests.web.given import make_token

MANY = [make_attempt(ordinal=n) for n in range(1, 26)]
OTHERWISE = [replace(one, record=replace(one.record, wall_s=77.0)) for one in MANY]
Write = Callable[[str, list[Attempt]], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def writing(name: str, found: list[Attempt]) -> str:
        with (tmp_path / name).open("wb") as out:
            write_bundle(out, BundleHeader(NOON, "gpu-box"), found)
        return str(tmp_path / name)

    return writing


def test_an_import_of_which_something_was_refused_goes_on_and_ends_in_a_code(call: Call, write: Write) -> None:
    assert call("import", write("first.gz", MANY)).code == 0
    more = write("more.gz", [make_attempt(ordinal=99)])
    done = call("import", write("otherwise.gz", OTHERWISE), more)
    assert done.code == 4
    assert "more.gz: 1 attempts added" in done.out
    told = done.err.splitlines()
    assert [line for line in told if "says something else than" in line] == told[:20]
    assert told[20:] == ["otherwise.gz: refused: 5 more"]
    assert call("import", more).code == 0


def test_a_push_of_which_something_was_refused_goes_on_and_ends_in_a_code(
    call: Call, own_engine: Engine, write: Write, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(make_token(own_engine, Scope.SUBMIT, name="gpu-host-1"))
    more = write("more.gz", [make_attempt(ordinal=99)])
    with served(app_over(own_engine, clock=lambda: NOON)) as address:
        to = ("--server", address, "--token-file", str(token))
        assert call("push", write("first.gz", MANY), *to).code == 0
        done = call("push", write("otherwise.gz", OTHERWISE), more, *to)
        again = call("push", more, *to)
    assert (done.code, again.code) == (4, 0)
    assert "25 refused" in done.out
    assert "more.gz: 1 attempts added" in done.out
