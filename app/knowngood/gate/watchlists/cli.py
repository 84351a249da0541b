"""`knowngood watch add|list|remove|import`: named choices of issues, for the gate and for people."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import click

from knowngood.cli.context import opened, opened_with_catalogue, operator
from knowngood.cli.lazy import command, group
from knowngood.cli.options import AS_JSON, ISSUES, PATH, SEVERITY, argument, names, text
from knowngood.domain.errors import BadRequest
from knowngood.domain.issue_selectors import Watch, WatchListContent, read_severity
from knowngood.gate.watchlists.schemas import WatchListBody, parse_watch_lists
from knowngood.settings import read_settings
from knowngood.store.engine import reading, unit_of_work
from knowngood.store.watch_lists import ListOwner, load_watch_lists, remove_watch_list, save_watch_list

Names = tuple[str, ...]


_HARDWARE = names("--hardware", "Classes such as cpu-x86_64, or GPUs such as H100. Default: every measured one.")
_OWNER = text("--owner", "The name of the token that may change it over the network. Default: yours.", "NAME")


@command(
    "Save a list under this name; an existing one gets a new version with exactly these.",
    argument("name", "The name, such as vision-team."),
    ISSUES,
    names("--components", "Such as Dynamo."),
    names("--packages", "Packages that issues need besides torch."),
    SEVERITY,
    _HARDWARE,
    text("--description", "What it is for, in one line."),
    _OWNER,
    example="watch add vision-team --components Inductor --severity high",
)
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
    named = Watch(issues, components, packages, read_severity(severity))
    _save({name: WatchListContent(named, hardware, description)}, owner)


@command(
    "Import the lists of a repository's file: all of them, or none if one has a problem.",
    argument("file", "A TOML file with tables [watchlists.NAME], or a policy file.", type=PATH),
    text("--name", "Only this list; for a policy file, what its [watch] is to be called.", "NAME"),
    _OWNER,
    example="watch import knowngood.toml --name vision-team",
)
def import_command(file: Path, name: str, owner: str) -> None:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    _save(parse_watch_lists(text, file.name, name), owner)


@command(
    "Print all watch lists and what they name.",
    AS_JSON,
    example="watch list",
)
def list_command(*, as_json: bool) -> None:
    with reading(opened(read_settings())) as s:
        lists = load_watch_lists(s)
    if as_json:
        click.echo(json.dumps([WatchListBody.of(list_).model_dump(mode="json") for list_ in lists.values()], indent=2))
        return
    if not lists:
        click.echo("no watch lists yet; make one with `knowngood watch add NAME --issues ID,ID`", err=True)
    for list_ in lists.values():
        click.echo(f"{list_.name}  version {list_.version} of {list_.owner}  {_in_words(list_.content)}")


@command(
    "Remove a list; the gate then refuses questions that name it. Its versions stay on record.",
    argument("name", "As `watch list` shows it."),
    example="watch remove vision-team",
)
def remove(name: str) -> None:
    with unit_of_work(opened(read_settings())) as s:
        remove_watch_list(s, name, by=ListOwner(operator(), overrules=True), now=datetime.now(UTC))
    click.echo(f"{name} is removed")


def _save(lists: Mapping[str, WatchListContent], owner: str) -> None:
    keeper = ListOwner(operator(), overrules=True)
    with unit_of_work(opened_with_catalogue(read_settings())) as s:
        now = datetime.now(UTC)
        saved = [save_watch_list(s, name, content, by=keeper, now=now, owner=owner) for name, content in lists.items()]
    for list_ in saved:
        click.echo(f"{list_.name}: version {list_.version}, {_in_words(list_.content)}")


def _in_words(content: WatchListContent) -> str:
    watch = content.watch
    named = {"issues": watch.issues, "components": watch.components, "packages": watch.packages, "on": content.hardware}
    parts = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
    return "; ".join([*parts, *([f"severity {watch.severity} or worse"] if watch.severity else [])])


WATCH = group(
    "watch",
    "Keep watch lists: named choices of issues that the gate can be asked with.",
    add,
    list_command,
    remove,
    import_command,
)
