"""Tokens and the sessions they open. What is presented is compared with a digest; no secret is ever stored.

A token reads `kg_<id>_<secret>`: the id, which is public, finds the row; the secret is 256 random bits, so that one
SHA-256 of it is enough. Slow, salted hashes make guessing a password costly; 2^256 equally likely secrets cannot be
guessed at any speed, and a slow hash would only make every request slow.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from knowngood.domain.access import Actor, Scope, Token
from knowngood.domain.errors import BadRequest
from knowngood.store import audit_log
from knowngood.store.engine import Session
from knowngood.store.evidence.cells import touch
from knowngood.store.tables import sessions, tokens

PREFIX = "kg_"
SESSION_LASTS = timedelta(hours=12)

_FORM = re.compile(r"kg_([0-9a-f]{12})_([0-9a-f]{64})\Z")
_SESSION_FORM = re.compile(r"[0-9a-f]{64}\Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}\Z")
_NOTED_AT_MOST = timedelta(minutes=1)
_NOBODY = "0" * 64


@dataclass(frozen=True)
class MadeToken:
    """A new token with the only copy of its secret that there will be."""

    token: Token
    secret: str


@dataclass(frozen=True)
class TokenLookup:
    """The result of looking up a presented secret: the token while it counts, else why it does not."""

    token: Token | None
    problem: str = ""


def create_token(
    s: Session, *, name: str, scopes: Collection[Scope], by: Actor, now: datetime, expires_at: datetime | None = None
) -> MadeToken:
    """Make a token. One name has one token in force at a time. Raises BadRequest."""
    _refuse_unusable(name, scopes, now, expires_at)
    touch(s)
    _refuse_taken(s, name, now)
    id_, secret = secrets.token_hex(6), secrets.token_hex(32)
    ordered = tuple(scope for scope in Scope if scope in scopes)
    token = Token(id_, name, ordered, now, expires_at)
    row = {"id": id_, "name": name, "digest": _digest(secret), "scopes": list(ordered)}
    s.execute(sa.insert(tokens).values(**row, created_at=now, expires_at=expires_at))
    expires = expires_at.isoformat() if expires_at else None
    audit_log.note(s, by, "token.create", name, now, id=id_, scopes=list(ordered), expires_at=expires)
    return MadeToken(token, f"{PREFIX}{id_}_{secret}")


def _refuse_unusable(name: str, scopes: Collection[Scope], now: datetime, expires_at: datetime | None) -> None:
    if not _NAME.match(name):
        raise BadRequest(
            f'"{name[:80]}" is no name for a token; use up to 63 letters, digits, dots, dashes, underscores and @, '
            "such as worker-1"
        )
    if not scopes:
        raise BadRequest(f"a token needs a scope: {', '.join(Scope)}")
    if expires_at is not None and expires_at <= now:
        raise BadRequest(f"a token cannot expire before it begins; {expires_at:%Y-%m-%d %H:%M} UTC is over")


def _refuse_taken(s: Session, name: str, now: datetime) -> None:
    row = s.execute(_tokens().where(tokens.c.name == name, tokens.c.revoked_at.is_(None))).mappings().first()
    if row is not None:
        ended = _token(row).ended(now)
        state = f"which {ended}" if ended else "in force"
        raise BadRequest(
            f'there is a token "{name}" ({PREFIX}{row["id"]}) {state}; revoke it first, or choose another name'
        )


def revoke_token(s: Session, wanted: str, *, by: Actor, now: datetime) -> Token:
    """Revoke the token of this name or id; its sessions end. Raises BadRequest where there is none in force."""
    touch(s)
    id_ = wanted.removeprefix(PREFIX)
    named = sa.or_(tokens.c.name == wanted, tokens.c.id == id_)
    row = s.execute(_tokens().where(named, tokens.c.revoked_at.is_(None))).mappings().first()
    if row is None:
        names = s.execute(sa.select(tokens.c.name).where(tokens.c.revoked_at.is_(None)).order_by(tokens.c.name))
        known = ", ".join(names.scalars()) or "none"
        raise BadRequest(f'no token in force is called "{wanted[:80]}"; in force: {known}')
    s.execute(sa.update(tokens).where(tokens.c.id == row["id"]).values(revoked_at=now))
    s.execute(sa.delete(sessions).where(sessions.c.token == row["id"]))
    audit_log.note(s, by, "token.revoke", row["name"], now, id=row["id"])
    return _token({**row, "revoked_at": now})


def load_tokens(s: Session) -> tuple[Token, ...]:
    """All there ever were, by name, the newest of a name first."""
    query = _tokens().order_by(tokens.c.name, tokens.c.created_at.desc(), tokens.c.id)
    return tuple(_token(row) for row in s.execute(query).mappings())


def find_token(s: Session, presented: str, now: datetime) -> TokenLookup:
    """The token that was presented, if it counts.

    The digest is compared in constant time, with something even where the id is unknown. The three problems are told
    apart only to whoever holds the secret: who does not learns nothing of which ids there are.
    """
    form = _FORM.match(presented)
    if form is None:
        problem = "this is no token of Known Good: they read kg_, twelve characters, _, and sixty-four more"
        return TokenLookup(None, problem)
    row = s.execute(_tokens(tokens.c.digest).where(tokens.c.id == form[1])).mappings().first()
    is_right = hmac.compare_digest(_digest(form[2]), row["digest"] if row else _NOBODY)
    if row is None or not is_right:
        return TokenLookup(None, "this token is not known here; it may belong to another installation")
    return _lookup_of(row, now)


def open_session(s: Session, token: Token, now: datetime) -> tuple[str, datetime]:
    """A session of the token: the secret that the browser keeps, and when it ends (with the token, at the latest)."""
    s.execute(sa.delete(sessions).where(sessions.c.expires_at <= now))
    secret = secrets.token_hex(32)
    ends = min(now + SESSION_LASTS, token.expires_at or now + SESSION_LASTS)
    row = {"digest": _digest(secret), "token": token.id, "created_at": now, "expires_at": ends}
    s.execute(sa.insert(sessions).values(**row))
    audit_log.note(s, token.actor, "session.open", token.name, now)
    return secret, ends


def find_session(s: Session, presented: str, now: datetime) -> TokenLookup:
    """The token whose session this is. Found by its digest: comparing digests tells nothing of the secret."""
    if not _SESSION_FORM.match(presented):
        return TokenLookup(None, "this is no session of Known Good")
    query = _tokens().join(sessions, sessions.c.token == tokens.c.id)
    mine = sa.and_(sessions.c.digest == _digest(presented), sessions.c.expires_at > now)
    row = s.execute(query.where(mine)).mappings().first()
    return _lookup_of(row, now) if row else TokenLookup(None, "the session is over; sign in again")


def close_session(s: Session, presented: str, by: Actor, now: datetime) -> None:
    s.execute(sa.delete(sessions).where(sessions.c.digest == _digest(presented)))
    audit_log.note(s, by, "session.close", by.name, now)


def needs_noting(token: Token, now: datetime) -> bool:
    """Whether the last use written down is a minute old; a write for every request would make reads into writes."""
    return token.last_used_at is None or now - token.last_used_at >= _NOTED_AT_MOST


def note_use(s: Session, token: Token, now: datetime) -> None:
    """No page shows it, so no page is made anew for it."""
    stale = sa.or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at <= now - _NOTED_AT_MOST)
    s.execute(sa.update(tokens).where(tokens.c.id == token.id, stale).values(last_used_at=now))


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _lookup_of(row: Any, now: datetime) -> TokenLookup:  # noqa: ANN401 - a row of the driver's
    token = _token(row)
    ended = token.ended(now)
    return TokenLookup(None, f'the token "{token.name}" {ended}; ask for a new one') if ended else TokenLookup(token)


def _tokens(*more: sa.Column[Any]) -> sa.Select[Any]:
    columns = [column for column in tokens.c if column.name != "digest"]
    return sa.select(*columns, *more)


def _token(row: Any) -> Token:  # noqa: ANN401 - a row of the driver's
    return Token(
        id=row["id"],
        name=row["name"],
        scopes=tuple(Scope(scope) for scope in row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )
