"""`knowngood upgrade --from BUILD`: which build to move to, for what is watched."""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from knowngood.app.cli.context import opened, opened_with_catalogue, read_settings
from knowngood.app.domain.builds.build_names import find_build
from knowngood.app.domain.errors import BadRequest, UnknownBuild

if TYPE_CHECKING:
    from knowngood.app.features.upgrade.ranking import UpgradeAdvice
    from knowngood.app.features.upgrade.request import Times
    from knowngood.app.knowledge.model import Knowledge


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
    has: Annotated[
        Names, typer.Option("--has", help="Packages beside torch that rows may concern, such as torchao; or `none`.")
    ] = None,
    enough: Annotated[
        int | None,
        typer.Option(
            min=50, max=100, help="The percentage of what does not fail there that must be known to pass; 80."
        ),
    ] = None,
    to: Annotated[str, typer.Option(help="The candidate that the note is for; the recommended one without.")] = "",
    form: Annotated[
        Form, typer.Option("--format", help="text, json, or markdown: the note for a pull request.")
    ] = Form.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.")] = False,  # noqa: FBT002 - typer's way
) -> None:
    """Rank newer builds for what you watch: what is gained, lost, new and not known on each."""
    from knowngood.app.features.upgrade.ranking import advise
    from knowngood.app.features.upgrade.request import UpgradeRequest, packages_of, read_upgrade

    if bool(start) == bool(requirements):
        raise BadRequest("say which build you are on: --from a build or version, or -r a file that names it")
    knowledge, times = _known()
    packages = packages_of(_split(has))
    if requirements:
        start, found = _environment_in(requirements, python, knowledge)
        packages = {**found, **(packages or {})}
    asked = UpgradeRequest(
        start=start,
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
        packages=packages,
        enough=enough,
    )
    advice = advise(read_upgrade(asked, knowledge, times), knowledge.known)
    sys.stdout.write(_told(advice, Form.JSON if as_json else form, to))


def _known() -> "tuple[Knowledge, Times]":
    """The catalogue's files are read only where the store knows no issue yet, as the gate does."""
    from knowngood.app.features.upgrade.request import Times
    from knowngood.app.knowledge.loader import load_knowledge
    from knowngood.app.store.engine import reading
    from knowngood.app.store.jobs.durations import load_environment_s
    from knowngood.app.store.queries import load_durations

    settings = read_settings()
    engine = opened(settings)
    with reading(engine) as s:
        knowledge = load_knowledge(s, datetime.now(UTC)).knowledge
        times = Times(load_durations(s), load_environment_s(s))
    if knowledge.known.issues:
        return knowledge, times
    with reading(opened_with_catalogue(settings)) as s:
        return load_knowledge(s, datetime.now(UTC)).knowledge, times


def _environment_in(file: Path, python: str, knowledge: "Knowledge") -> tuple[str, Mapping[str, str]]:
    """The build that it is, and its packages."""
    from knowngood.app.features.upgrade.request import UnknownStart, start_name, start_of

    try:
        content = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise BadRequest(f"{file} is no text in UTF-8") from None
    except OSError as error:
        raise BadRequest(f"{file} cannot be read: {error.strerror}") from None
    found = start_of("" if str(file) == "-" else file.name, content, python, knowledge)
    if found.build is None:
        near = f"; nearest: {', '.join(found.nearest)}" if found.nearest else ""
        raise UnknownStart(f"{found.note or found.asked}{near}", found.nearest)
    return start_name(found), found.packages


def _told(advice: "UpgradeAdvice", form: Form, to: str) -> str:
    match form:
        case Form.TEXT:
            from knowngood.app.features.upgrade.text import upgrade_text

            return upgrade_text(advice)
        case Form.JSON:
            from knowngood.app.features.upgrade.schemas import upgrade_body

            return json.dumps(upgrade_body(advice).model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
        case Form.MARKDOWN:
            return _note(advice, to)


def _note(advice: "UpgradeAdvice", to: str) -> str:
    """For a build that is not recommended there is a note only where it is asked for by name."""
    from knowngood.app.features.upgrade.migration_note import answer_note, migration_note

    candidates = {one.build.id: one for one in advice.candidates}
    wanted = advice.best
    if to:
        try:
            wanted = candidates[find_build(to, {id_: one.build for id_, one in candidates.items()}).id]
        except UnknownBuild:
            raise BadRequest(f'--to "{to}" is no candidate; candidates: {", ".join(candidates) or "none"}') from None
    if wanted is None:
        return answer_note(advice, now=datetime.now(UTC))
    return migration_note(advice, wanted, now=datetime.now(UTC))


def _split(values: Sequence[str] | None) -> tuple[str, ...]:
    return tuple(part.strip() for value in values or () for part in value.split(",") if part.strip())
