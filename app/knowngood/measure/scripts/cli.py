"""`knowngood try bug.py`: on which releases a script of your own fails, and where that begins."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from packaging.requirements import InvalidRequirement, Requirement
from rich.console import Console

from knowngood.cli.context import opened_with_catalogue, pick_builds
from knowngood.cli.exit_codes import Exit
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_FORMAT_JSON, DRY_RUN, FILE_HERE, FORCE, FORMS, argument, flag, names, option, text
from knowngood.cli.output import err, out, print_json
from knowngood.cli.signals import stoppable
from knowngood.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.domain.builds.build_names import BuildNames, minor_python
from knowngood.domain.errors import BadRequest, IndexUnusable
from knowngood.domain.grouping import grouped
from knowngood.domain.verdicts.history import is_release
from knowngood.domain.verdicts.outcome import TroubleCode
from knowngood.domain.vocabulary import many
from knowngood.measure.bisection.cli import CODES
from knowngood.measure.bisection.search import SearchResult, answer_of, line_between, most_jobs, next_step
from knowngood.measure.jobs import Work, own_hardware
from knowngood.measure.scheduling.cli import tell_price
from knowngood.measure.scripts.candidate import keep_as_row
from knowngood.measure.scripts.report import Report, as_body, lines_of, markdown_of
from knowngood.measure.scripts.rules import Tried, missing_runs, results_of, search_in
from knowngood.measure.scripts.runner import Runner, Script, read_script
from knowngood.settings import read_settings
from knowngood.store.engine import Engine
from knowngood_workers.dispatch.dispatcher import utc_now


@command(
    "Run a script of your own on releases of torch, isolated, and say on which it fails and where that begins. "
    "Default: the last release of each of the newest four minor versions.",
    argument("script", "The script.", metavar="SCRIPT", type=FILE_HERE),
    names("--builds", "Releases or builds, such as 2.9,2.13; with --bisect the two ends."),
    flag("--bisect", help_="Find the release on which the outcome changes. Default: among all releases."),
    names("--with", "Packages that it needs, such as torchvision.", "packages"),
    flag("--gpu", help_="Run it on this machine's GPU; otherwise none is visible."),
    text("--python", "The Python of all builds, such as 3.12.", "VERSION"),
    option("--timeout", type=click.FloatRange(min=1), default=300, help="Seconds after which a run counts as hanging."),
    text("--keep", "Write a candidate row of the catalogue with this id, such as pytorch-198400.", "ID"),
    FORCE,
    DRY_RUN,
    option("--format", "form", type=FORMS, default="text", help="How to print the answer; markdown is for a thread."),
    AS_FORMAT_JSON,
    example="try bug.py --builds 2.9,2.13,2.15",
)
def try_command(
    *,
    script: Path,
    builds: Sequence[str],
    bisect: bool,
    packages: Sequence[str],
    gpu: bool,
    python: str,
    timeout: float,
    keep: str,
    force: bool,
    dry_run: bool,
    form: str,
    as_json: bool,
) -> Exit:
    source, own = read_script(script), own_hardware()
    if gpu and len(own) == 1:
        raise BadRequest(
            "--gpu: no GPU is to be seen here; `knowngood doctor` says more, and without it the CPU is used"
        )
    wanted = Script(script.name, source, _requirements(packages), own[int(gpu)], timeout)
    settings = read_settings().model_copy(update={"fork": False})
    engine = opened_with_catalogue(settings)
    line = _builds(pick_builds(engine, ("all",), lambda _: True), builds, minor_python(python), bisect=bisect)
    form, status = "json" if as_json else form, err.status("")
    with stoppable() as stop:
        question = Question(engine, Runner(Work(settings), wanted, stop, status.update), line, bisect=bisect)
        tried = [question.runner.known(build, forget=force and not dry_run) for build in line]
        question.tell_price(tried, out if dry_run else err, as_json=dry_run and form == "json")
        if dry_run:
            return Exit.OK
        with status:
            report, code = question.answer(tried)
    if stop():
        err.print("stopped: what was run is kept, and the same command goes on from there", soft_wrap=True)
    if form == "json":
        print_json(as_body(report))
    elif report.rows:
        sys.stdout.write("\n".join((markdown_of if form == "markdown" else lines_of)(report)) + "\n")
    if keep:
        err.print(keep_as_row(settings, report, keep, utc_now().date()), markup=False, soft_wrap=True)
    return code


@dataclass
class Question:
    """`line` are the builds to ask, oldest first; of those `bisect` asks few. `asked` counts them."""

    engine: Engine
    runner: Runner
    line: tuple[Build, ...]
    bisect: bool
    asked: int = 0

    def todo(self, tried: Sequence[Tried]) -> dict[str, int]:
        """The runs to make next, by build; none where the answer is known."""
        if self.bisect:
            step = next_step(search_in(tried, self.asked))
            if not isinstance(step, SearchResult):
                return {self.line[step].id: 1}
        rows = zip(tried, results_of(tried), strict=True)
        return missing_runs([row for row in rows if row[0].runs or not self.bisect])

    def tell_price(self, tried: Sequence[Tried], console: Console, *, as_json: bool) -> None:
        script, todo = self.runner.script, self.todo(tried)
        if self.bisect and not as_json:
            most = f"at most {min(most_jobs(len(self.line)), len(self.line))} of {many(len(self.line), 'build')}"
            console.print(f"{most} are tried, each answer decides on the next; the first of them:", soft_wrap=True)
        planned = [script.planned(build) for build in self.line if build.id in todo]
        tell_price(self.engine, self.runner.work, planned, console, as_json=as_json)

    def answer(self, tried: Sequence[Tried]) -> tuple[Report, Exit]:
        """All that was begun, and how the command ends. Raises IndexUnusable where nothing could be run without it."""
        tried = list(tried)
        while not self.runner.stop() and (todo := self.todo(tried)):
            for at, each in enumerate(tried):
                if each.build.id in todo and not self.runner.stop():
                    tried[at] = self.runner.run(each, todo[each.build.id])
                    self.asked += 1
        troubles = [each.trouble for each in tried if each.trouble]
        is_kept = bool(troubles) and not any(each.runs for each in tried)
        if is_kept and troubles[0].code is TroubleCode.INDEX_UNREACHABLE:
            raise IndexUnusable(troubles[0].sentence)
        done = CODES[answer_of(search_in(tried)).kind] if self.bisect else Exit.OK
        return Report(self.runner.script, tuple(tried), is_line=self.bisect), Exit.UNUSABLE if is_kept else done


def _builds(every: Sequence[Build], named: Sequence[str], python: str, *, bisect: bool) -> tuple[Build, ...]:
    """The builds to ask, oldest first. Raises BadRequest and UnknownBuild."""
    known = BuildNames({build.id: build for build in every})
    found = {build.id: build for build in (known.find(name, python=python) for name in named)}
    if bisect and named:
        if len(found) != 2:  # noqa: PLR2004 - ends
            raise BadRequest(
                f"--bisect takes two ends, and --builds names {many(len(found), 'build')}: --builds 2.5,2.15"
            )
        return line_between(every, *found.values())
    releases = sorted(
        (build for build in every if is_release(build) and build.python == (python or DEFAULT_PYTHON)),
        key=lambda build: build.build_id,
    )
    if not releases and not named:
        raise BadRequest(f"no release is known for Python {python}; name another --python")
    newest = list(grouped(releases, lambda build: build.minor).values())[-4:]
    chosen = found.values() if named else releases if bisect else [builds[-1] for builds in newest]
    return tuple(sorted(chosen, key=lambda build: build.build_id))


def _requirements(packages: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(packages, key=lambda text_: Requirement(text_).name))
    except InvalidRequirement as error:
        raise BadRequest(f"--with: {error}; write a name or a pin, such as torchvision==0.24.0") from None
