"""`knowngood token create|list|revoke`: who may. A token is printed once, by itself, on standard output."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import click

from knowngood.cli.choice import one_of
from knowngood.cli.context import opened, operator
from knowngood.cli.lazy import command, group
from knowngood.cli.options import AS_JSON, argument, option, text
from knowngood.domain.access import Scope, Token
from knowngood.domain.errors import BadRequest
from knowngood.settings import read_settings
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.tokens import PREFIX, create_token, load_tokens, revoke_token

_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SPAN = re.compile(r"([1-9][0-9]{0,3})([hdw])\Z")
_FOREVER = "never"


@command(
    "Make a token. It is shown only once; the store keeps a digest. `triage` includes `read`, `admin` everything.",
    option("--name", required=True, help="Its holder's name in evidence and the audit log."),
    option(
        "--scope",
        multiple=True,
        required=True,
        metavar="NAMES",
        help="read, submit, triage, admin; repeated or comma-separated.",
    ),
    text(
        "--expires",
        "When it ends: 90d, 12h, 4w, a date such as 2027-01-31 (its last day), or never.",
        "TIME",
        default="90d",
    ),
    example="token create --name ci --scope submit",
)
def create(name: str, scope: Sequence[str], expires: str) -> None:
    now = datetime.now(UTC)
    named = [part.strip() for text in scope for part in text.split(",") if part.strip()]
    scopes = frozenset(map(Scope, one_of(list(Scope), named, "--scope", "scope")))
    expires_at = _expiry(expires, now)
    with unit_of_work(opened(read_settings())) as s:
        made = create_token(s, name=name, scopes=scopes, by=operator(), now=now, expires_at=expires_at)
    ends = f"until {expires_at:%Y-%m-%d %H:%M} UTC" if expires_at else "without end"
    click.echo(
        f'the token "{name}" may {", ".join(made.token.scopes)} {ends}; keep it now, it is not shown again:', err=True
    )
    click.echo(made.secret)


@command(
    "Print all tokens ever made, without their secrets.",
    AS_JSON,
    example="token list",
)
def list_command(*, as_json: bool) -> None:
    now = datetime.now(UTC)
    with reading(opened(read_settings())) as s:
        tokens = load_tokens(s)
    if as_json:
        click.echo(json.dumps([_fields(token, now) for token in tokens], indent=2))
        return
    if not tokens:
        click.echo("no tokens yet; make one with `knowngood token create --name NAME --scope submit`", err=True)
    for token in tokens:
        used = f"last used {token.last_used_at:%Y-%m-%d %H:%M} UTC" if token.last_used_at else "never used"
        ends = token.ended(now) or (f"expires on {token.expires_at:%Y-%m-%d}" if token.expires_at else "never expires")
        click.echo(f"{token.name}  {PREFIX}{token.id}  {','.join(token.scopes)}  {ends}, {used}")


@command(
    "End a token, and every session that was opened with it, at once.",
    argument("name", "Its name, or the kg_... that `token list` shows."),
    example="token revoke ci",
)
def revoke(name: str) -> None:
    with unit_of_work(opened(read_settings())) as s:
        gone = revoke_token(s, name, by=operator(), now=datetime.now(UTC))
    click.echo(f'the token "{gone.name}" ({PREFIX}{gone.id}) is revoked')


def _expiry(text: str, now: datetime) -> datetime | None:
    """The end of a token that is made now; a date is the last day on which it counts."""
    if text == _FOREVER:
        return None
    span = _SPAN.match(text)
    try:
        if span:
            return now + int(span[1]) * _SPANS[span[2]]
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise BadRequest(
            f'--expires "{text}" is no time; write 90d, 12h, 4w, a date such as 2027-01-31, or never'
        ) from None


def _fields(token: Token, now: datetime) -> dict[str, object]:
    times = {"created_at": token.created_at, "expires_at": token.expires_at, "revoked_at": token.revoked_at}
    texts = {name: at.isoformat() if at else None for name, at in {**times, "last_used_at": token.last_used_at}.items()}
    return {"id": token.id, "name": token.name, "scopes": list(token.scopes), "in_force": not token.ended(now), **texts}


TOKEN = group(
    "token", "Make, list and revoke the tokens that writes (and closed reads) ask for.", create, list_command, revoke
)
