"""`knowngood webhook add|list|remove|test|log|resend`: who is told of changes. docs/webhooks.md says what they get."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click

from knowngood.app.cli.context import opened, operator
from knowngood.app.cli.exit_codes import Exit
from knowngood.app.domain.errors import BadRequest
from knowngood.app.domain.webhook import Delivery, Webhook
from knowngood.app.features.webhooks.dispatcher import WebhookDispatcher
from knowngood.app.features.webhooks.http_client import SafeHttpClient, checked_url
from knowngood.app.features.webhooks.store import (
    Try,
    add_webhook,
    find_webhook,
    load_deliveries,
    load_webhooks,
    remove_webhook,
    send_again,
)
from knowngood.app.settings import Settings, read_settings
from knowngood.app.store.engine import Engine, may_write, reading, unit_of_work


@contextmanager
def delivering(engine: Engine, settings: Settings) -> "Iterator[None]":
    """Serve webhooks in a thread while something else is done; not where what was sent cannot be noted."""
    if not may_write(engine):
        yield
        return
    with _courier(engine, settings).at_work():
        yield


def _courier(engine: Engine, settings: Settings) -> WebhookDispatcher:
    http_client = SafeHttpClient(allows_private=settings.webhooks_private)
    return WebhookDispatcher(engine, lambda: datetime.now(UTC), http_client, base=settings.public_url.rstrip("/"))


def add(*, url: str, watch: str, every: bool) -> None:
    if bool(watch) is every:
        raise BadRequest("say which changes to send: --watch LIST, or --all")
    checked_url(url)
    with unit_of_work(opened(read_settings())) as s:
        made, secret = add_webhook(s, url, watch, by=operator(), now=datetime.now(UTC))
    what = f"of the watch list {watch}" if watch else "of every issue"
    click.echo(f"{made.id}: changes {what} go to {url}; keep its secret now, it is not shown again:", err=True)
    click.echo(secret)


def tell_all(*, as_json: bool) -> None:
    with reading(opened(read_settings())) as s:
        found = load_webhooks(s, ended=True)
    if as_json:
        click.echo(json.dumps([_fields(one) for one in found], indent=2))
        return
    if not found:
        click.echo("no webhooks yet; make one with `knowngood webhook add URL --all`", err=True)
    for one in found:
        what = f"watch list {one.watch}" if one.watch else "every issue"
        ends = f"  ended {one.ended_at:%Y-%m-%d}: {one.ended}" if one.ended_at else ""
        click.echo(f"{one.id}  {one.url}  {what}{ends}")


def remove(id_: str) -> None:
    with unit_of_work(opened(read_settings())) as s:
        remove_webhook(s, id_, by=operator(), now=datetime.now(UTC))
    click.echo(f"{id_} is removed")


def test(id_: str) -> Exit:
    settings = read_settings()
    delivery, answer = _courier(opened(settings), settings).try_out(id_)
    click.echo(f"{delivery.id}: {answer.said} ({answer.took_s:.1f} s)")
    return Exit.OK if answer.is_success else Exit.FINDING


def log(*, id_: str, limit: int, as_json: bool) -> None:
    with reading(opened(read_settings())) as s:
        if id_:
            find_webhook(s, id_)
        found = load_deliveries(s, limit, webhook=id_ or None)
    if as_json:
        click.echo(json.dumps([_told(*one) for one in found], indent=2))
        return
    if not found:
        click.echo("nothing was sent yet", err=True)
    for one, tries in found:
        again = f", next at {one.next_at:%Y-%m-%d %H:%M:%S} UTC" if one.next_at else ""
        click.echo(f"{one.id}  {one.webhook}  {one.state}{again}  {one.cause}")
        for each in tries:
            click.echo(f"    {each.at:%Y-%m-%d %H:%M:%S} UTC  {each.said} ({each.took_s:.1f} s)")


def resend(delivery: str) -> None:
    with unit_of_work(opened(read_settings())) as s:
        again = send_again(s, delivery, by=operator(), now=datetime.now(UTC))
    click.echo(f"{again.id} is sent again with the next round")


def _fields(one: Webhook) -> dict[str, object]:
    ended = {"ended_at": one.ended_at.isoformat() if one.ended_at else None, "ended": one.ended}
    made = {"created_at": one.created_at.isoformat(), "created_by": one.created_by}
    return {"id": one.id, "url": one.url, "watch": one.watch or None, **made, **ended}


def _told(one: Delivery, tries: Sequence[Try]) -> dict[str, object]:
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
