"""`knowngood compare A B`: what is fixed, what breaks and what stays, from one build to another."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from knowngood.app.cli.context import opened, opened_with_catalogue, read_settings
from knowngood.app.cli.exit_codes import Exit
from knowngood.app.domain.errors import BadRequest
from knowngood.app.domain.measuring.machine import CPU_CLASS
from knowngood.app.features.compare.comparison import Comparison, Transition

Names = list[str] | None

_ENDS = """Exit codes: 0 compared; 1 a transition of --fail-on was found; 2 the question cannot be understood, such as
a build that is not known; 3 no issue answers on both builds, so that nothing was compared; 4 the store cannot be
used."""


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def compare(  # noqa: PLR0913 - one option for each part of the question
    a: Annotated[str, typer.Argument(help="The build that is left, such as torch-2.5.1+cu124, or 2.5.1.")],
    b: Annotated[str, typer.Argument(help="The build that is moved to.")],
    hardware: Annotated[str, typer.Option(help=f"One class; {CPU_CLASS} unless said, where it was measured.")] = "",
    issues: Annotated[
        Names, typer.Option("--issues", help="Ids, repeated or comma-separated; `all`, as unless said.")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="How it is told.")] = Form.TEXT,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,  # noqa: FBT002 - a flag
    fail_on: Annotated[
        Names, typer.Option("--fail-on", help=f"End with 1 where one is found: {', '.join(Transition)}.")
    ] = None,
) -> None:
    """Compare two builds, issue by issue; the first line is the answer. Only a proven pass counts as fixed."""
    failing = _transitions(fail_on)
    now = datetime.now(UTC)
    compared = _compared(a, b, hardware, _split(issues), now)
    sys.stdout.write(_told(compared, Form.JSON if as_json else form, now))
    if any(pair.transition in failing for pair in compared.pairs):
        raise typer.Exit(Exit.FINDING)
    if compared.is_blind:
        raise typer.Exit(Exit.INSUFFICIENT)


compare.__doc__ = f"{compare.__doc__}\n\n{_ENDS}"


def _compared(a: str, b: str, hardware: str, issues: Sequence[str], now: datetime) -> Comparison:
    """Asked as the page asks, so that both answer alike. Where the store knows no build yet, the catalogue is read."""
    from knowngood.app.features.compare.service import CompareQuery, comparison_of, load_options
    from knowngood.app.knowledge.loader import load_known
    from knowngood.app.store.engine import reading
    from knowngood.app.store.queries import load_builds
    from knowngood.app.web.errors import NotFound

    query = CompareQuery(a=a, b=b, hardware=hardware, issues=list(issues))
    try:
        with reading(opened(read_settings())) as session:
            if load_builds(session):
                return comparison_of(load_known(session, now), load_options(session, hardware), query, now)
        with reading(opened_with_catalogue(read_settings())) as session:
            return comparison_of(load_known(session, now), load_options(session, hardware), query, now)
    except NotFound as error:
        near = ", ".join(name for name, _ in error.nearest)
        raise BadRequest(f"{error}; nearest: {near}" if near else str(error)) from None


def _told(compared: Comparison, form: Form, now: datetime) -> str:
    from knowngood.app.features.compare.renderers import comparison_markdown, comparison_text
    from knowngood.app.features.compare.schemas import compare_body

    match form:
        case Form.TEXT:
            return comparison_text(compared)
        case Form.MARKDOWN:
            return comparison_markdown(compared)
        case Form.JSON:
            return compare_body(compared, now).model_dump_json(indent=2) + "\n"


def _transitions(names: Names) -> frozenset[str]:
    asked = _split(names)
    for name in asked:
        if name not in set(Transition):
            raise BadRequest(f'--fail-on "{name}" is no transition; known: {", ".join(Transition)}')
    return frozenset(asked)


def _split(values: Sequence[str] | None) -> list[str]:
    return [part.strip() for value in values or () for part in value.split(",") if part.strip()]
