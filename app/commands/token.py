"""`knowngood token create|list|revoke`: who may. A token is printed once, by itself, on standard output."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from knowngood.app.cli.context import opened, operator, read_settings
from knowngood.app.domain.access import Scope, Token
from knowngood.app.domain.errors import BadRequest

token = typer.Typer(
    help="Make, list and revoke the tokens that writes (and closed reads) ask for.", no_args_is_help=True
)

_SPANS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_SPAN = re.compile(r"([1-9][0-9]{0,3})([hdw])\Z")
_FOREVER = "never"


@token.command("create")
def create(
    name: Annotated[str, typer.Option(help="Who holds it: what evidence and the audit log will call them.")],
    scope: Annotated[list[str], typer.Option("--scope", help=f"{', '.join(Scope)}; repeated or comma-separated.")],
    expires: Annotated[
        str, typer.Option(help="When it ends: 90d, 12h, 4w, a date such as 2027-01-31 (its last day), or never.")
    ] = "90d",
) -> None:
    """Make a token. It is shown this once: only its digest is stored. `triage` includes `read`, `admin` everything."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.tokens import create_token

    now = datetime.now(UTC)
    scopes = _scopes(scope)
    expires_at = _expiry(expires, now)
    with unit_of_work(opened(read_settings())) as s:
        made = create_token(s, name=name, scopes=scopes, by=operator(), now=now, expires_at=expires_at)
    ends = f"until {expires_at:%Y-%m-%d %H:%M} UTC" if expires_at else "without end"
    typer.echo(
        f'the token "{name}" may {", ".join(made.token.scopes)} {ends}; keep it now, it is not shown again:', err=True
    )
    typer.echo(made.secret)


@token.command("list")
def list_(*, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """All tokens there ever were, without their secrets."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.tokens import PREFIX, load_tokens

    now = datetime.now(UTC)
    with reading(opened(read_settings())) as s:
        found = load_tokens(s)
    if as_json:
        typer.echo(json.dumps([_fields(one, now) for one in found], indent=2))
        return
    if not found:
        typer.echo("no tokens yet; make one with `knowngood token create --name NAME --scope submit`", err=True)
    for one in found:
        used = f"last used {one.last_used_at:%Y-%m-%d %H:%M} UTC" if one.last_used_at else "never used"
        ends = one.ended(now) or (f"expires on {one.expires_at:%Y-%m-%d}" if one.expires_at else "never expires")
        typer.echo(f"{one.name}  {PREFIX}{one.id}  {','.join(one.scopes)}  {ends}, {used}")


@token.command("revoke")
def revoke(name: Annotated[str, typer.Argument(help="Its name, or the kg_... that `token list` shows.")]) -> None:
    """End a token, and every session that was opened with it, at once."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.tokens import PREFIX, revoke_token

    with unit_of_work(opened(read_settings())) as s:
        gone = revoke_token(s, name, by=operator(), now=datetime.now(UTC))
    typer.echo(f'the token "{gone.name}" ({PREFIX}{gone.id}) is revoked')


def _scopes(texts: Sequence[str]) -> frozenset[Scope]:
    names = [part.strip() for text in texts for part in text.split(",") if part.strip()]
    for name in names:
        if name not in set(Scope):
            raise BadRequest(f'--scope "{name}" is no scope; known: {", ".join(Scope)}')
    return frozenset(Scope(name) for name in names)


def _expiry(text: str, now: datetime) -> datetime | None:
    """When a token ends that is made now; a date is the last day on which it counts."""
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


def _fields(one: Token, now: datetime) -> dict[str, object]:
    times = {"created_at": one.created_at, "expires_at": one.expires_at, "revoked_at": one.revoked_at}
    told = {name: at.isoformat() if at else None for name, at in {**times, "last_used_at": one.last_used_at}.items()}
    return {"id": one.id, "name": one.name, "scopes": list(one.scopes), "in_force": not one.ended(now), **told}
