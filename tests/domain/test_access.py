"""Which scope includes which, and until when a token counts."""

from datetime import timedelta

import pytest

from knowngood.domain.access import Scope, Token, grants
from tests.make import NOON


@pytest.mark.parametrize(
    ("held", "allowed"),
    [
        pytest.param(Scope.READ, {Scope.READ}, id="read reads"),
        pytest.param(Scope.SUBMIT, {Scope.SUBMIT}, id="a worker's token tells nobody anything"),
        pytest.param(Scope.TRIAGE, {Scope.TRIAGE, Scope.READ}, id="who judges reads first"),
        pytest.param(Scope.ADMIN, set(Scope), id="admin does everything"),
    ],
)
def test_a_scope_allows_what_it_includes_and_no_more(held: Scope, allowed: set[Scope]) -> None:
    assert {wanted for wanted in Scope if grants([held], wanted)} == allowed


def test_scopes_add_up_and_none_allow_nothing() -> None:
    assert grants([Scope.READ, Scope.SUBMIT], Scope.SUBMIT)
    assert not grants([Scope.READ, Scope.SUBMIT], Scope.TRIAGE)
    assert not any(grants([], wanted) for wanted in Scope)


@pytest.mark.parametrize(
    ("expires_in_s", "is_revoked", "said"),
    [
        pytest.param(None, False, "", id="without end"),
        pytest.param(1, False, "", id="a second is left"),
        pytest.param(0, False, "expired on 2026-11-21", id="at the very moment"),
        pytest.param(-1, False, "expired on 2026-11-21", id="over"),
        pytest.param(1, True, "was revoked on 2026-11-21", id="revoked before it expired"),
    ],
)
def test_a_token_counts_until_it_is_revoked_or_expires(expires_in_s: int | None, is_revoked: bool, said: str) -> None:
    expires = None if expires_in_s is None else NOON + timedelta(seconds=expires_in_s)
    token = Token("a1", "ci", (Scope.READ,), NOON, expires, NOON if is_revoked else None)
    assert token.ended(NOON) == said
