"""`knowngood upgrade --from BUILD`: which build to move to, for what is watched."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.opening import opened, opened_with_catalogue, read_settings
from app.domain.build_names import find_build
from app.domain.errors import BadRequest, UnknownBuild

if TYPE_CHECKING:
    from app.domain.upgrade import Advice
    from app.formats.question import Grounds
    from app.formats.upgrade_question import Times


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


Names = list[str] | None


def upgrade(  # noqa: PLR0913 - one option for each part of the question
    start: Annotated[str, typer.Option("--from", help="The build you are on: its id, or a version of torch.")] = "",
    requirements: Annotated[
        Path | None,
        typer.Option("-r", "--requirements", help="In place of --from: pip freeze's output, or a lock file."),
    ] = None,
    watch: Annotated[Names, typer.Option("--watch", help="Names of watch lists; without any, every issue.")] = None,
    issues: Annotated[Names, typer.Option("--issues", help="Ids, repeated or comma-separated; or `all`.")] = None,
    component: Annotated[Names, typer.Option("--component", help="Every issue of these components.")] = None,
    package: Annotated[Names, typer.Option("--package", help="Every issue that needs these packages.")] = None,
    severity: Annotated[str, typer.Option(help="Every issue of this severity or a higher one.")] = "",
    python: Annotated[str, typer.Option(help="The Python it must be for; as now without.")] = "",
    cuda: Annotated[str, typer.Option(help="The CUDA it must be built for: 12.8, or <13.")] = "",
    driver: Annotated[str, typer.Option(help="The NVIDIA driver it must run on, such as 550.54.15.")] = "",
    hardware: Annotated[
        Names, typer.Option("--hardware", help="Classes that count; every measured one without.")
    ] = None,
    pin: Annotated[Names, typer.Option("--pin", help="Such as triton==3.4.0.")] = None,
    enough: Annotated[
        int | None,
        typer.Option(min=0, max=100, help="The percentage of what does not fail there that must be known to pass; 80."),
    ] = None,
    to: Annotated[str, typer.Option(help="The candidate that the note is for; the best without.")] = "",
    form: Annotated[
        Form, typer.Option("--format", help="text, json, or markdown: the note for a pull request.")
    ] = Form.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.")] = False,  # noqa: FBT002 - typer's way
) -> None:
    """Rank newer builds for what you watch: what each fixes, breaks and leaves open."""
    from app.domain.upgrade import advise
    from app.formats.upgrade_question import AskedUpgrade, read_upgrade

    if bool(start) == bool(requirements):
        raise BadRequest("say which build you are on: --from a build or version, or -r a file that names it")
    grounds, times = _known()
    asked = AskedUpgrade(
        start=_start_in(requirements, python, grounds) if requirements else start,
        watch=_split(watch),
        issues=_split(issues),
        component=_split(component),
        package=_split(package),
        severity=severity,
        python=python,
        cuda=cuda,
        driver=driver,
        hardware=_split(hardware),
        pin=_split(pin),
        enough=enough,
    )
    advice = advise(read_upgrade(asked, grounds, times), grounds.known)
    sys.stdout.write(_told(advice, Form.JSON if as_json else form, to))


def _known() -> "tuple[Grounds, Times]":
    """The catalogue's files are read only where the store knows no issue yet, as the gate does."""
    from app.formats.upgrade_question import Times
    from app.store.known import load_edition
    from app.store.reads import load_durations
    from app.store.session import reading
    from app.store.times import load_environment_s

    settings = read_settings()
    engine = opened(settings)
    with reading(engine) as s:
        grounds = load_edition(s, datetime.now(UTC)).grounds
        times = Times(load_durations(s), load_environment_s(s))
    if grounds.known.issues:
        return grounds, times
    with reading(opened_with_catalogue(settings)) as s:
        return load_edition(s, datetime.now(UTC)).grounds, times


def _start_in(file: Path, python: str, grounds: "Grounds") -> str:
    from app.formats.upgrade_question import UnknownStart, start_name, start_of

    try:
        content = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadRequest(f"{file} is no text in UTF-8") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    found = start_of("" if str(file) == "-" else file.name, content, python, grounds)
    if found.build is None:
        near = f"; nearest: {', '.join(found.nearest)}" if found.nearest else ""
        raise UnknownStart(f"{found.note or found.asked}{near}", found.nearest)
    return start_name(found)


def _told(advice: "Advice", form: Form, to: str) -> str:
    match form:
        case Form.TEXT:
            from app.formats.upgrade_text import upgrade_text

            return upgrade_text(advice)
        case Form.JSON:
            from app.web.shapes.upgrade import upgrade_body

            return json.dumps(upgrade_body(advice).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        case Form.MARKDOWN:
            return _note(advice, to)


def _note(advice: "Advice", to: str) -> str:
    from app.formats.migration_note import migration_note

    candidates = {one.build.id: one for one in advice.candidates}
    if not candidates:
        raise BadRequest("there is no candidate")
    try:
        wanted = (
            find_build(to, {id_: one.build for id_, one in candidates.items()}).id if to else next(iter(candidates))
        )
    except UnknownBuild:
        raise BadRequest(f'--to "{to}" is no candidate; candidates: {", ".join(candidates)}') from None
    return migration_note(advice, candidates[wanted], now=datetime.now(UTC))


def _split(values: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
