"""`knowngood webhook add|list|remove|test|log|resend`: who is told of changes. docs/webhooks.md says what they get."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from knowngood.app.cli.context import opened, operator, read_settings
from knowngood.app.cli.exit_codes import Exit
from knowngood.app.domain.errors import BadRequest

if TYPE_CHECKING:
    from knowngood.app.domain.webhook import Delivery, Webhook
    from knowngood.app.features.webhooks.dispatcher import WebhookDispatcher
    from knowngood.app.features.webhooks.store import Try
    from knowngood.app.settings import Settings
    from knowngood.app.store.engine import Engine

webhook = typer.Typer(help="Send verdicts that changed to addresses of yours, signed.", no_args_is_help=True)

AsJson = Annotated[bool, typer.Option("--json", help="For programs.")]
Id = Annotated[str, typer.Argument(help="As `webhook list` shows it.")]


@contextmanager
def delivering(engine: "Engine", settings: "Settings") -> "Iterator[None]":
    """Serve webhooks in a thread while something else is done."""
    with _courier(engine, settings).at_work():
        yield


def _courier(engine: "Engine", settings: "Settings") -> "WebhookDispatcher":
    from knowngood.app.features.webhooks.dispatcher import WebhookDispatcher
    from knowngood.app.features.webhooks.http_client import SafeHttpClient

    http_client = SafeHttpClient(allows_private=settings.webhooks_private)
    return WebhookDispatcher(engine, lambda: datetime.now(UTC), http_client, base=settings.public_url.rstrip("/"))


@webhook.command("add")
def add(
    url: Annotated[str, typer.Argument(help="https://..., or http:// on this machine.")],
    watch: Annotated[str, typer.Option(help="Tell of what this watch list watches.")] = "",
    *,
    every: Annotated[bool, typer.Option("--all", help="Tell of every issue.")] = False,
) -> None:
    """Send what changes from now on to an address. Its secret is printed this once, on standard output."""
    from knowngood.app.features.webhooks.http_client import checked_url
    from knowngood.app.features.webhooks.store import add_webhook
    from knowngood.app.store.engine import unit_of_work

    if bool(watch) is every:
        raise BadRequest("say which changes to send: --watch LIST, or --all")
    checked_url(url)
    with unit_of_work(opened(read_settings())) as s:
        made, secret = add_webhook(s, url, watch, by=operator(), now=datetime.now(UTC))
    what = f"of the watch list {watch}" if watch else "of every issue"
    typer.echo(f"{made.id}: changes {what} go to {url}; keep its secret now, it is not shown again:", err=True)
    typer.echo(secret)


@webhook.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """All webhooks there ever were, without their secrets."""
    from knowngood.app.features.webhooks.store import load_webhooks
    from knowngood.app.store.engine import reading

    with reading(opened(read_settings())) as s:
        found = load_webhooks(s, ended=True)
    if as_json:
        typer.echo(json.dumps([_fields(one) for one in found], indent=2))
        return
    if not found:
        typer.echo("no webhooks yet; make one with `knowngood webhook add URL --all`", err=True)
    for one in found:
        what = f"watch list {one.watch}" if one.watch else "every issue"
        ends = f"  ended {one.ended_at:%Y-%m-%d}: {one.ended}" if one.ended_at else ""
        typer.echo(f"{one.id}  {one.url}  {what}{ends}")


@webhook.command("remove")
def remove(id_: Id) -> None:
    """Send nothing more to it, also not what waits. Its log stays."""
    from knowngood.app.features.webhooks.store import remove_webhook
    from knowngood.app.store.engine import unit_of_work

    with unit_of_work(opened(read_settings())) as s:
        remove_webhook(s, id_, by=operator(), now=datetime.now(UTC))
    typer.echo(f"{id_} is removed")


@webhook.command("test")
def test(id_: Id) -> None:
    """Send it a signed message of the type webhook.test at once, and say what came back; ends in 1 where it failed."""
    settings = read_settings()
    delivery, answer = _courier(opened(settings), settings).try_out(id_)
    typer.echo(f"{delivery.id}: {answer.said} ({answer.took_s:.1f} s)")
    if not answer.is_success:
        raise typer.Exit(Exit.FINDING)


@webhook.command("log")
def log(
    id_: Annotated[str, typer.Argument(help="Of one webhook; of all without.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="The newest so many.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """What was sent and what came back, the newest first; what waits says when it is sent next."""
    from knowngood.app.features.webhooks.store import find_webhook, load_deliveries
    from knowngood.app.store.engine import reading

    with reading(opened(read_settings())) as s:
        if id_:
            find_webhook(s, id_)
        found = load_deliveries(s, limit, webhook=id_ or None)
    if as_json:
        typer.echo(json.dumps([_told(*one) for one in found], indent=2))
        return
    if not found:
        typer.echo("nothing was sent yet", err=True)
    for one, tries in found:
        again = f", next at {one.next_at:%Y-%m-%d %H:%M:%S} UTC" if one.next_at else ""
        typer.echo(f"{one.id}  {one.webhook}  {one.state}{again}  {one.cause}")
        for each in tries:
            typer.echo(f"    {each.at:%Y-%m-%d %H:%M:%S} UTC  {each.said} ({each.took_s:.1f} s)")


@webhook.command("resend")
def resend(delivery: Annotated[str, typer.Argument(help="The msg_... that `webhook log` shows.")]) -> None:
    """Have a message sent once more, under the id that it has; the server or dispatcher at work sends it."""
    from knowngood.app.features.webhooks.store import send_again
    from knowngood.app.store.engine import unit_of_work

    with unit_of_work(opened(read_settings())) as s:
        again = send_again(s, delivery, by=operator(), now=datetime.now(UTC))
    typer.echo(f"{again.id} is sent again with the next round")


def _fields(one: "Webhook") -> dict[str, object]:
    ended = {"ended_at": one.ended_at.isoformat() if one.ended_at else None, "ended": one.ended}
    made = {"created_at": one.created_at.isoformat(), "created_by": one.created_by}
    return {"id": one.id, "url": one.url, "watch": one.watch or None, **made, **ended}


def _told(one: "Delivery", tries: "Sequence[Try]") -> dict[str, object]:
    return {
        "id": one.id,
        "webhook": one.webhook,
        "cause": one.cause,
        "state": one.state,
        "created_at": one.created_at.isoformat(),
        "next_at": one.next_at.isoformat() if one.next_at else None,
        "tries": [
            {"at": each.at.isoformat(), "status": each.status, "said": each.said, "took_s": each.took_s}
            for each in tries
        ],
    }
