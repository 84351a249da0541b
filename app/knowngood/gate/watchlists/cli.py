"""`knowngood watch add|list|remove|import`: named choices of issues, for the gate and for people."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from knowngood.cli.catalogue import opened_with_catalogue
from knowngood.cli.context import opened, operator
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue import Severity
from knowngood.domain.issue_selectors import Watch
from knowngood.domain.watch_list import WatchListContent
from knowngood.gate.watchlists.file import parse_watch_lists
from knowngood.gate.watchlists.schemas import WatchListBody
from knowngood.settings import read_settings
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.watch_lists import ListOwner, load_watch_lists, remove_watch_list, save_watch_list

Names = tuple[str, ...]


def add(
    name: str,
    issues: Names,
    components: Names,
    packages: Names,
    severity: str,
    hardware: Names,
    description: str,
    owner: str,
) -> None:
    named = Watch(issues, components, packages, _severity(severity))
    _save({name: WatchListContent(named, hardware, description)}, owner)


def take_in(file: Path, name: str, owner: str) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    _save(parse_watch_lists(text, file.name, name), owner)


def tell_all(*, as_json: bool) -> None:
    with reading(opened(read_settings())) as s:
        found = load_watch_lists(s)
    if as_json:
        click.echo(json.dumps([WatchListBody.of(one).model_dump(mode="json") for one in found.values()], indent=2))
        return
    if not found:
        click.echo("no watch lists yet; make one with `knowngood watch add NAME --issues ID,ID`", err=True)
    for one in found.values():
        click.echo(f"{one.name}  version {one.version} of {one.owner}  {_in_words(one.content)}")


def remove(name: str) -> None:
    with unit_of_work(opened(read_settings())) as s:
        remove_watch_list(s, name, by=ListOwner(operator(), overrules=True), now=datetime.now(UTC))
    click.echo(f"{name} is removed")


def _save(lists: Mapping[str, WatchListContent], owner: str) -> None:
    keeper = ListOwner(operator(), overrules=True)
    with unit_of_work(opened_with_catalogue(read_settings())) as s:
        now = datetime.now(UTC)
        kept = [save_watch_list(s, name, one, by=keeper, now=now, owner=owner) for name, one in lists.items()]
    for one in kept:
        click.echo(f"{one.name}: version {one.version}, {_in_words(one.content)}")


def _severity(text: str) -> Severity | None:
    if text and text not in set(Severity):
        raise BadRequest(f'--severity "{text}" is none; known: {", ".join(Severity)}')
    return Severity(text) if text else None


def _in_words(content: WatchListContent) -> str:
    one: Watch = content.watch
    named = {"issues": one.issues, "components": one.components, "packages": one.packages, "on": content.hardware}
    said = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
    return "; ".join([*said, *([f"severity {one.severity} or worse"] if one.severity else [])])
