"""Tokens: shown once, stored as a digest, ended at once; sessions end with them."""

import hmac
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from knowngood.domain.access import Actor, Scope, Token
from knowngood.domain.errors import BadRequest, StoreUnusable
from knowngood.store.audit_log import load_audit
from knowngood.store.engine import Engine, connect, reading, unit_of_work
from knowngood.store.tables import metadata
from knowngood.store.tokens import (
    MadeToken,
    TokenLookup,
    close_session,
    create_token,
    find_session,
    find_token,
    load_tokens,
    needs_noting,
    note_use,
    open_session,
    revoke_token,
)
from tests.make import NOON

LEAD = Actor("lead", "0123456789ab")
SOON, LATER = NOON + timedelta(minutes=1), NOON + timedelta(days=1)


def make(engine: Engine, name: str = "worker-1", *scopes: Scope, expires_at: datetime | None = None) -> MadeToken:
    with unit_of_work(engine) as s:
        wanted = scopes or (Scope.SUBMIT,)
        return create_token(s, name=name, scopes=wanted, by=LEAD, now=NOON, expires_at=expires_at)


def find(engine: Engine, presented: str, now: datetime = SOON) -> TokenLookup:
    with reading(engine) as s:
        return find_token(s, presented, now)


def everything_stored(engine: Engine) -> str:
    with reading(engine) as s:
        return repr([s.execute(sa.select(table)).all() for table in metadata.sorted_tables])


def actions(engine: Engine) -> list[tuple[str, str, str]]:
    with reading(engine) as s:
        return [(row.actor, row.action, row.subject) for row in reversed(load_audit(s))]


def test_a_token_is_found_by_what_was_shown_once(engine: Engine) -> None:
    made = make(engine, "worker-1", Scope.TRIAGE, Scope.SUBMIT, expires_at=LATER)
    assert find(engine, made.secret).token == made.token
    assert made.token == Token(made.token.id, "worker-1", (Scope.SUBMIT, Scope.TRIAGE), NOON, LATER)
    assert made.secret.startswith(f"kg_{made.token.id}_")


def test_no_secret_is_stored_anywhere(engine: Engine) -> None:
    made = make(engine)
    with unit_of_work(engine) as s:
        session, _ = open_session(s, made.token, NOON)
    stored = everything_stored(engine)
    assert made.token.id in stored
    assert made.secret.rpartition("_")[2] not in stored
    assert session not in stored


def test_two_tokens_never_share_anything(engine: Engine) -> None:
    secrets = {make(engine, f"worker-{n}").secret for n in range(20)}
    assert len({part for secret in secrets for part in secret.split("_")[1:]}) == 40


@pytest.mark.parametrize(
    "presented",
    ["", "kg_", "hello", "kg_0123456789ab", "kg_0123456789ab_" + "g" * 64, "KG_0123456789ab_" + "0" * 64, "kg_é_\x00"],
)
def test_what_is_no_token_is_told_so_without_a_query(engine: Engine, presented: str) -> None:
    found = find(engine, presented)
    assert found.token is None
    assert "no token of Known Good" in found.problem


def test_a_wrong_secret_and_an_unknown_id_are_told_alike(engine: Engine) -> None:
    made = make(engine)
    wrong = f"kg_{made.token.id}_{'0' * 64}"
    unknown = f"kg_{'0' * 12}_{'0' * 64}"
    assert find(engine, wrong) == find(engine, unknown)
    assert find(engine, wrong).token is None


def test_secrets_are_compared_in_constant_time_whether_or_not_the_id_is_known(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[str, str]] = []
    really = hmac.compare_digest

    def comparing(one: Any, other: Any) -> bool:
        compared.append((one, other))
        return really(one, other)

    monkeypatch.setattr(hmac, "compare_digest", comparing)
    made = make(engine)
    for presented in (made.secret, f"kg_{made.token.id}_{'0' * 64}", f"kg_{'0' * 12}_{'0' * 64}"):
        find(engine, presented)
    assert len(compared) == 3
    assert {len(part) for pair in compared for part in pair} == {64}


def test_an_expired_token_counts_no_more_and_says_since_when(engine: Engine) -> None:
    made = make(engine, expires_at=LATER)
    assert find(engine, made.secret, LATER - timedelta(seconds=1)).token is not None
    assert find(engine, made.secret, LATER).problem == 'the token "worker-1" expired on 2026-11-22; ask for a new one'


def test_a_revoked_token_counts_no_more_and_its_sessions_end(engine: Engine) -> None:
    made = make(engine)
    with unit_of_work(engine) as s:
        session, _ = open_session(s, made.token, NOON)
    with unit_of_work(engine) as s:
        assert revoke_token(s, "worker-1", by=LEAD, now=SOON).revoked_at == SOON
    assert "was revoked on 2026-11-21" in find(engine, made.secret).problem
    with reading(engine) as s:
        assert find_session(s, session, SOON).token is None


def test_a_token_is_revoked_by_its_public_part_too(engine: Engine) -> None:
    made = make(engine)
    with unit_of_work(engine) as s:
        assert revoke_token(s, f"kg_{made.token.id}", by=LEAD, now=SOON).name == "worker-1"


def test_a_token_that_is_not_there_cannot_be_revoked(engine: Engine) -> None:
    make(engine, "worker-2")
    with pytest.raises(BadRequest, match=r'"nobody"; in force: worker-2'), unit_of_work(engine) as s:
        revoke_token(s, "nobody", by=LEAD, now=SOON)


def test_a_name_has_one_token_in_force_and_may_have_another_after_it(engine: Engine) -> None:
    first = make(engine, expires_at=LATER)
    with pytest.raises(BadRequest, match="in force; revoke it first"):
        make(engine)
    with unit_of_work(engine) as s:
        revoke_token(s, "worker-1", by=LEAD, now=SOON)
    second = make(engine)
    assert find(engine, second.secret).token is not None
    assert find(engine, first.secret).token is None
    with reading(engine) as s:
        assert [token.revoked_at for token in load_tokens(s)].count(None) == 1


def test_of_two_who_make_a_token_of_one_name_at_once_one_is_told_no(engine: Engine) -> None:
    def attempt(_: int) -> str:
        try:
            make(engine)
        except BadRequest:
            return "refused"
        return "made"

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(attempt, range(4))) == ["made", "refused", "refused", "refused"]


@pytest.mark.parametrize(
    ("name", "scopes", "expires_at", "sentence"),
    [
        pytest.param("", [Scope.READ], None, "no name for a token", id="no name"),
        pytest.param("a b", [Scope.READ], None, "no name for a token", id="a space"),
        pytest.param("a\n", [Scope.READ], None, "no name for a token", id="a line"),
        pytest.param("x" * 64, [Scope.READ], None, "no name for a token", id="too long"),
        pytest.param("ci", [], None, "needs a scope: read, submit, triage, admin", id="no scope"),
        pytest.param("ci", [Scope.READ], NOON, "cannot expire before it begins", id="over already"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    own_engine: Engine, name: str, scopes: list[Scope], expires_at: datetime | None, sentence: str
) -> None:
    with pytest.raises(BadRequest, match=sentence), unit_of_work(own_engine) as s:
        create_token(s, name=name, scopes=scopes, by=LEAD, now=NOON, expires_at=expires_at)


def test_the_last_use_is_written_down_at_most_once_a_minute(engine: Engine) -> None:
    token = make(engine).token
    for seconds, noted in ((0, 0), (59, 0), (60, 60), (90, 60)):
        now = NOON + timedelta(seconds=seconds)
        with unit_of_work(engine) as s:
            note_use(s, token, now)
        with reading(engine) as s:
            (token,) = load_tokens(s)
        assert token.last_used_at == NOON + timedelta(seconds=noted)
        assert needs_noting(token, now) == (now - NOON >= timedelta(seconds=noted + 60))


def test_a_session_ends_after_half_a_day_or_with_its_token(engine: Engine) -> None:
    long, short = make(engine, "long").token, make(engine, "short", expires_at=NOON + timedelta(hours=1)).token
    with unit_of_work(engine) as s:
        (of_long, long_ends), (of_short, short_ends) = open_session(s, long, NOON), open_session(s, short, NOON)
    assert (long_ends - NOON, short_ends - NOON) == (timedelta(hours=12), timedelta(hours=1))
    with reading(engine) as s:
        assert find_session(s, of_long, long_ends - timedelta(seconds=1)).token == long
        assert find_session(s, of_long, long_ends).token is None
        assert find_session(s, of_short, short_ends).token is None
        assert find_session(s, "x" * 64, NOON).token is None


def test_a_session_that_was_closed_is_over(engine: Engine) -> None:
    token = make(engine).token
    with unit_of_work(engine) as s:
        secret, _ = open_session(s, token, NOON)
    with unit_of_work(engine) as s:
        close_session(s, secret, token.actor, SOON)
    with reading(engine) as s:
        assert find_session(s, secret, SOON).token is None


def test_every_change_is_in_the_audit_log_with_who_did_it(engine: Engine) -> None:
    made = make(engine)
    with unit_of_work(engine) as s:
        secret, _ = open_session(s, made.token, NOON)
        close_session(s, secret, made.token.actor, SOON)
        revoke_token(s, "worker-1", by=LEAD, now=SOON)
    assert actions(engine) == [
        ("lead", "token.create", "worker-1"),
        ("worker-1", "session.open", "worker-1"),
        ("worker-1", "session.close", "worker-1"),
        ("lead", "token.revoke", "worker-1"),
    ]
    with reading(engine) as s:
        (created,) = [row for row in load_audit(s) if row.action == "token.create"]
    assert (created.at, created.token) == (NOON, "0123456789ab")
    assert created.data == {"id": made.token.id, "scopes": ["submit"], "expires_at": None}


def test_a_change_that_failed_is_not_in_the_audit_log(engine: Engine) -> None:
    def make_and_stumble() -> None:
        with unit_of_work(engine) as s:
            create_token(s, name="ci", scopes=[Scope.READ], by=LEAD, now=NOON)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        make_and_stumble()
    assert actions(engine) == []


def test_the_audit_log_is_read_from_the_newest_on(engine: Engine) -> None:
    for n in range(5):
        make(engine, f"worker-{n}")
    with reading(engine) as s:
        newest = load_audit(s, limit=2)
        older = load_audit(s, limit=2, before=newest[-1].id)
    assert [row.subject for row in (*newest, *older)] == ["worker-4", "worker-3", "worker-2", "worker-1"]


def test_a_writer_that_will_not_wait_is_refused_and_the_next_one_waits_again(database_url: str) -> None:
    first, second = connect(database_url), connect(database_url)
    token = make(first).token
    with unit_of_work(first) as s:
        note_use(s, token, NOON)
        with pytest.raises(StoreUnusable, match="is busy: another writer"), unit_of_work(second, wait_s=0.01) as other:
            note_use(other, token, NOON)
    with unit_of_work(second) as s:
        waits = "PRAGMA busy_timeout" if second.dialect.name == "sqlite" else "SHOW lock_timeout"
        assert s.execute(sa.text(waits)).scalar_one() in {60_000, "1min"}
    first.dispose()
    second.dispose()
