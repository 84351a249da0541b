"""`knowngood watch add|list|remove|import`: named choices of issues, for the gate and for people."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from knowngood.app.cli.context import opened, opened_with_catalogue, operator, read_settings
from knowngood.app.domain.errors import BadRequest
from knowngood.app.domain.issue import Severity
from knowngood.app.domain.issue_selectors import Watch
from knowngood.app.domain.watch_list import WatchListContent

watch = typer.Typer(
    help="Keep watch lists: named choices of issues that the gate can be asked with.", no_args_is_help=True
)

Names = list[str] | None
Owner = Annotated[str, typer.Option(help="The token's name that may change it over the network; yours without.")]


@watch.command("add")
def add(  # noqa: PLR0913 - one option for each part of a list
    name: Annotated[str, typer.Argument(help="Such as vision-team.")],
    issues: Annotated[Names, typer.Option("--issues", help="Ids, repeated or comma-separated; or `all`.")] = None,
    components: Annotated[Names, typer.Option("--components", help="Such as Dynamo.")] = None,
    packages: Annotated[Names, typer.Option("--packages", help="Packages that issues need beside torch.")] = None,
    severity: Annotated[str, typer.Option(help=f"Every issue of at least: {', '.join(Severity)}.")] = "",
    hardware: Annotated[
        Names, typer.Option("--hardware", help="Classes that count; every measured one without.")
    ] = None,
    description: Annotated[str, typer.Option(help="What it is for, in one line.")] = "",
    owner: Owner = "",
) -> None:
    """Keep a list under this name; one that is there gets a new version with exactly this."""
    named = Watch(_split(issues), _split(components), _split(packages), _severity(severity))
    _save({name: WatchListContent(named, _split(hardware), description)}, owner)


@watch.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="A TOML file with tables [watchlists.NAME], or a policy file.")],
    name: Annotated[
        str, typer.Option(help="Only this list; for a policy file, what its [watch] is to be called.")
    ] = "",
    owner: Owner = "",
) -> None:
    """Take lists from a repository's file: all of them, or none where one has a problem."""
    from knowngood.app.features.watchlists.file import parse_watch_lists

    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"{file} is not UTF-8 text") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    _save(parse_watch_lists(text, file.name, name), owner)


@watch.command("list")
def list_(*, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """All watch lists with what they name."""
    from knowngood.app.store.engine import reading
    from knowngood.app.store.watch_lists import load_watch_lists

    with reading(opened(read_settings())) as s:
        found = load_watch_lists(s)
    if as_json:
        from knowngood.app.features.watchlists.schemas import WatchListBody

        typer.echo(json.dumps([WatchListBody.of(one).model_dump(mode="json") for one in found.values()], indent=2))
        return
    if not found:
        typer.echo("no watch lists yet; make one with `knowngood watch add NAME --issues ID,ID`", err=True)
    for one in found.values():
        typer.echo(f"{one.name}  version {one.version} of {one.owner}  {_in_words(one.content)}")


@watch.command("remove")
def remove(name: Annotated[str, typer.Argument(help="As `watch list` shows it.")]) -> None:
    """Remove a list; the gate then refuses questions that name it. Its versions stay on record."""
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.watch_lists import ListOwner, remove_watch_list

    with unit_of_work(opened(read_settings())) as s:
        remove_watch_list(s, name, by=ListOwner(operator(), overrules=True), now=datetime.now(UTC))
    typer.echo(f"{name} is removed")


def _save(lists: Mapping[str, WatchListContent], owner: str) -> None:
    from knowngood.app.store.engine import unit_of_work
    from knowngood.app.store.watch_lists import ListOwner, save_watch_list

    keeper = ListOwner(operator(), overrules=True)
    with unit_of_work(opened_with_catalogue(read_settings())) as s:
        now = datetime.now(UTC)
        kept = [save_watch_list(s, name, one, by=keeper, now=now, owner=owner) for name, one in lists.items()]
    for one in kept:
        typer.echo(f"{one.name}: version {one.version}, {_in_words(one.content)}")


def _split(values: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())


def _severity(text: str) -> Severity | None:
    if text and text not in set(Severity):
        raise BadRequest(f'--severity "{text}" is none; known: {", ".join(Severity)}')
    return Severity(text) if text else None


def _in_words(content: WatchListContent) -> str:
    one: Watch = content.watch
    named = {"issues": one.issues, "components": one.components, "packages": one.packages, "on": content.hardware}
    said = [f"{what} {', '.join(names)}" for what, names in named.items() if names]
    return "; ".join([*said, *([f"severity {one.severity} or worse"] if one.severity else [])])
