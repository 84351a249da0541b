"""`knowngood tend`: what an installation does every day, as one round of commands that people could also give."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import click
import structlog

from knowngood.cli.context import opened, root
from knowngood.cli.exit_codes import Exit, exit_of
from knowngood.cli.lazy import command
from knowngood.cli.options import HARDWARE, MINUTES, PATH, flag, names, option, text
from knowngood.cli.signals import limited, stoppable, wait
from knowngood.domain.errors import BadRequest, KnownGoodError
from knowngood.logging_setup import configure
from knowngood.settings import Settings, read_settings
from knowngood.store.counters import load_tending, note_next_round, note_tended
from knowngood.store.engine import Engine, reading, unit_of_work
from knowngood.store.evidence.cells import touch
from knowngood_workers.dispatch.dispatcher import utc_now

logger = structlog.get_logger(__name__)

STEPS = ("upstream", "discover", "wheels", "run", "snapshot", "site")
_UNITS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


@command(
    "Do the daily upkeep, one step after the other: read upstream's threads, look for new releases, check that "
    "every build can still be installed, measure what `next` proposes, write the snapshot and the site.\n\n"
    "A failing step does not stop the others. A round ends with 0; with 1 if a step found something (a new "
    "release, a build that is gone); with 4 if one failed.",
    names("--steps", f"Only these steps, in this order. Default: {', '.join(STEPS)}."),
    text("--every", "Repeat until stopped, every 30min, 24h or 7d. Default: one round.", "TIME"),
    option(
        "--minutes", type=MINUTES, default=60, help="How many minutes of measuring to plan; it stops at twice that."
    ),
    HARDWARE,
    option(
        "-o", "--output", type=PATH, help="The folder for snapshot and site. Default: `published` in the data folder."
    ),
    flag("--dry-run", help_="Print what it would do, and when each step was last done; do nothing."),
    example="tend --every 24h --minutes 120 -o /srv/knowngood",
)
def tend(
    *,
    steps: Sequence[str],
    every: str,
    minutes: float,
    hardware: Sequence[str],
    output: Path | None,
    dry_run: bool,
) -> Exit:
    unknown = [name for name in steps if name not in STEPS]
    if unknown:
        raise BadRequest(f'--steps "{unknown[0]}" is no step; known: {", ".join(STEPS)}')
    settings, pause, limit_s = read_settings(), _pause(every), 2 * minutes * 60
    folder = output or root(settings) / "published"
    given = _commands(folder, minutes, hardware)
    commands = {name: given[name] for name in steps or STEPS}
    engine = opened(settings)
    if dry_run:
        _tell(engine, commands)
        return Exit.OK
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"{folder} cannot be made: {error.strerror}") from None
    with stoppable() as stop:
        if not pause:
            return _do_round(engine, settings, commands, stop, limit_s)
        _wait_until(_announced(engine, utc_now() + pause), stop)
        while not stop():
            due = utc_now() + pause
            with unit_of_work(engine) as s:
                touch(s)
                note_next_round(s, due)
            _do_round(engine, settings, commands, stop, limit_s)
            _wait_until(due, stop)
    return Exit.OK


def _pause(every: str) -> timedelta:
    """The time from one round to the next; none where there is one round."""
    parts = re.fullmatch(r"([1-9]\d{0,3})(min|h|d)", every)
    if every and parts is None:
        raise BadRequest(f'--every "{every[:40]}" is no time; write 30min, 24h or 7d')
    return int(parts[1]) * _UNITS[parts[2]] if parts else timedelta(0)


def _commands(folder: Path, minutes: float, hardware: Sequence[str]) -> dict[str, list[str]]:
    where = ["--hardware", ",".join(hardware)] if hardware else []
    return {
        "upstream": ["discover", "--upstream"],
        "discover": ["discover"],
        "wheels": ["wheels", "--check"],
        "run": ["run", "--next", "--minutes", f"{minutes:g}", *where],
        "snapshot": ["snapshot", "-o", str(folder / "knowngood.snapshot")],
        "site": ["site", "-o", str(folder / "site")],
    }


def _tell(engine: Engine, commands: Mapping[str, Sequence[str]]) -> None:
    with reading(engine) as s:
        last = {step.name: f"{step.at:%Y-%m-%d %H:%M} UTC, ended in {step.code}" for step in load_tending(s).steps}
    for name, arguments in commands.items():
        click.echo(f"knowngood {' '.join(arguments)}\n    last: {last.get(name, 'never')}")


def _announced(engine: Engine, latest: datetime) -> datetime:
    """When the round begins that an earlier process told of, so that a restart brings no round of its own; else now."""
    with reading(engine) as s:
        announced = load_tending(s).next_at
    return min(announced, latest) if announced else utc_now()


def _wait_until(moment: datetime, stop: Callable[[], bool]) -> None:
    wait(lambda: stop() or utc_now() >= moment)


def _do_round(
    engine: Engine,
    settings: Settings,
    commands: Mapping[str, Sequence[str]],
    stop: Callable[[], bool],
    limit_s: float,
) -> Exit:
    codes: dict[str, Exit] = {}
    for name, arguments in commands.items():
        if stop():
            break
        began = utc_now()
        with limited(limit_s):
            code, why = _do(arguments)
        codes[name] = code
        now = utc_now()
        with unit_of_work(engine) as s:
            touch(s)
            note_tended(s, name, code, now)
        configure(settings.log_format, settings.log_level or "info")  # the step has set it for itself
        more = {"why": why} if why else {}
        logger.info("step ended", step=name, code=int(code), seconds=round((now - began).total_seconds(), 1), **more)
    failed = [name for name, code in codes.items() if code not in {Exit.OK, Exit.FINDING}]
    found = [name for name, code in codes.items() if code is Exit.FINDING]
    logger.info("round ended", steps=list(codes), found_something=found, failed=failed)
    return Exit.UNUSABLE if failed else Exit.FINDING if found else Exit.OK


def _do(arguments: Sequence[str]) -> tuple[Exit, str]:
    """Give a command as if somebody had typed it, in this process; how it ended, and why where it was refused."""
    cli = click.get_current_context().find_root().command
    try:
        return Exit(cli.main(list(arguments), prog_name="knowngood", standalone_mode=False) or Exit.OK), ""
    except click.Abort:
        raise
    except KnownGoodError as error:
        return exit_of(error), str(error)
    except Exception as error:  # the next steps are not to suffer from what is wrong with this one
        logger.exception("step failed")
        return Exit.UNUSABLE, type(error).__name__
