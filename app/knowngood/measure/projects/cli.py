"""`knowngood try-bump`: whether a project's own tests bear another torch, and what each new failure is."""

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from packaging.version import Version

from knowngood.ask.explain.cli import explain_here
from knowngood.cli.console import bytes_in_words, in_words
from knowngood.cli.context import make_data_dir, root
from knowngood.cli.exit_codes import Exit
from knowngood.cli.knowledge import Ground, ground_here
from knowngood.cli.lazy import command
from knowngood.cli.options import AS_FORMAT_JSON, DRY_RUN, FORCE, FORMS, argument, flag, names, option, text
from knowngood.cli.output import err
from knowngood.cli.signals import stoppable
from knowngood.domain.builds.build import DEFAULT_PYTHON
from knowngood.domain.builds.build_names import minor_python
from knowngood.domain.errors import BadRequest, IndexUnusable, NotTested
from knowngood.domain.issue import digest
from knowngood.domain.measuring.isolation import Isolation
from knowngood.domain.measuring.planning import CONFIRMING, ENVIRONMENT_S
from knowngood.domain.message import english
from knowngood.domain.vocabulary import many
from knowngood.environments.wheels.answer import find_wheel, read_requirement
from knowngood.environments.wheels.table import shipped_wheels
from knowngood.gate.renderers.json import dumped
from knowngood.git_files import ask_git, file_at, refuse_flag
from knowngood.measure.jobs import Work, own_hardware
from knowngood.measure.projects.environments import (
    BUILT,
    GIT,
    LOCKS,
    Checkout,
    Locker,
    locker_for,
    read_checkout,
    size_of,
    versions_in,
)
from knowngood.measure.projects.report import Report, Target, as_body, lines_of, markdown_of
from knowngood.measure.projects.rules import Answer
from knowngood.measure.projects.runner import ENVIRONMENTS, Bench, Suite
from knowngood.settings import Settings, read_settings
from knowngood_workers.common.files import remove_tree, write_whole
from knowngood_workers.common.host_lock import turn
from knowngood_workers.host.interpreters import find_interpreter
from knowngood_workers.provision.provisioner import choose_cache
from knowngood_workers.provision.uv_cli import Fault, Installer, InstallerFailed, ProcessObserver

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
CODES = {Answer.OK: Exit.OK, Answer.NOT_YET: Exit.FINDING, Answer.CANNOT_SAY: Exit.INSUFFICIENT}


@command(
    "Run your project's own tests as locked and with other releases of torch, and say what newly fails and why.\n\n"
    "Exit codes: 0 no test newly fails; 1 one does, or the two cannot be installed together; 3 it cannot be said: no "
    "test passes on both sides, they could not be run, or some come and go. The checkout is only read.",
    argument("tests", "Files or ids of tests, for pytest. Default: all.", nargs=-1),
    names("--to", "Releases of torch, such as 2.13.0,2.15.0. Default: the newest one known here."),
    text("--from", "The torch to compare with. Default: the one that is locked.", "RELEASE", "before"),
    flag("--from-diff", help_="Compare the lock as it is with the one at the merge base of --base."),
    text("--base", "With --from-diff: the branch to be merged into.", "REVISION", default="origin/main"),
    option("--project", type=_FOLDER, metavar="FOLDER", default=Path(), help="The checkout."),
    text("--lock", f"The file in it that states its environment. Default: the first of {', '.join(LOCKS)}.", "FILE"),
    text("--command", "How the tests are run; {junit} is where results are looked for.", default="python -m pytest"),
    names("--with", "Packages that the tests need besides.", "packages"),
    names("--extra", "Extras of the project that the tests need.", "extras"),
    names("--group", "Dependency groups that the tests need.", "groups"),
    text("--python", "The Python of all environments, such as 3.12.", "VERSION", default=DEFAULT_PYTHON),
    flag("--gpu", help_="Run them on this machine's GPU; otherwise none is visible."),
    flag("--network", help_="Let the tests reach the network; they then also see this machine's files."),
    option("--timeout", type=click.FloatRange(min=1), default=1800, help="Seconds that one run of the tests may take."),
    FORCE,
    DRY_RUN,
    option("--format", "form", type=FORMS, default="text", help="Markdown is the note for a pull request."),
    AS_FORMAT_JSON,
    example="try-bump --to 2.13.0,2.15.0 --extra test",
)
def try_bump(
    *,
    tests: Sequence[str],
    to: Sequence[str],
    before: str,
    from_diff: bool,
    base: str,
    project: Path,
    lock: str,
    command: str,
    packages: Sequence[str],
    extras: Sequence[str],
    groups: Sequence[str],
    python: str,
    gpu: bool,
    network: bool,
    timeout: float,
    force: bool,
    dry_run: bool,
    form: str,
    as_json: bool,
) -> Exit:
    if from_diff and (to or before):
        raise BadRequest("--from-diff compares two locks; leave out --to and --from")
    for release in filter(None, (*to, before)):
        read_requirement(f"torch=={release}")
    own, settings = own_hardware(), _settings(network=network)
    if gpu and len(own) == 1:
        raise BadRequest("--gpu: no GPU is to be seen here; without it the CPU is used")
    suite = Suite(command, tuple(tests), own[int(gpu)], timeout, network)
    checkout = read_checkout(project)
    lock = lock or next((name for name in LOCKS if name in checkout.files), "")
    if lock not in checkout.files:
        raise BadRequest(f"{lock or project} states no environment; name a file of the project with --lock")
    interpreter = find_interpreter(minor_python(python))
    if interpreter is None:
        raise BadRequest(f"Python {python} is not on this machine; install it, or name another --python")
    needs = ((*packages, *(["pytest"] if suite.is_pytest else [])), extras, groups)
    make_data_dir(settings)
    place = root(settings).absolute() / "bumps" / digest(repr([checkout.digest, lock, needs, python]))[:16]
    ground = ground_here(quietly=True)
    builds = tuple(ground.knowledge.known.builds.values())
    status = err.status("waiting for another `try-bump` of this project, which shares its environments")
    with (
        TemporaryDirectory(prefix="knowngood-") as folder,
        stoppable() as stop,
        status,
        turn(f"bump-{place.name}", 1, partial(_abort_once, stop)),
    ):
        observer = ProcessObserver(is_cancelled=partial(_abort_once, stop))
        installer = Installer(choose_cache(root(settings), os.environ), root(settings), observer=observer)
        locker = locker_for(checkout, installer, interpreter, Path(folder, "new"), needs)
        bench = Bench(Work(settings), checkout, locker, suite, builds, place, stop, status.update)
        status.update("resolving")
        at_base = _base_of(checkout, lock, base, locker) if from_diff else None
        old, targets = _locks(bench, lock, to, before, at_base)
        todo = list(dict.fromkeys((old, *(each.lock for each in targets if each.lock))))
        todo = [each for each in todo if not bench.known(each, forget=force and not dry_run)]
        _tell_price(bench, todo)
        if dry_run:
            return Exit.OK
        targets = [replace(each, comparison=bench.compared(old, each.lock)) if each.lock else each for each in targets]
        if stop():
            err.print("stopped: what was run is kept, and the same command goes on from there", soft_wrap=True)
        else:
            remove_tree(place / ENVIRONMENTS)
    targets = [_explained(target, python, ground) for target in targets]
    report = Report(old, tuple(targets), " ".join([command, *tests]), bench.host)
    if as_json or form == "json":
        sys.stdout.write(dumped(as_body(report)))
    else:
        sys.stdout.write("\n".join((markdown_of if form == "markdown" else lines_of)(report)) + "\n")
    return CODES[report.answer]


def _abort_once(stop: Callable[[], bool]) -> bool:
    """While others are waited for, or an installer: what was run until then is kept, and there is nothing to tell."""
    if stop():
        raise click.Abort
    return False


def _settings(*, network: bool) -> Settings:
    """One run at a time, each in a fresh process. Without a network of its own a run is refused rather than let out."""
    settings = read_settings()
    least = max(settings.min_isolation, Isolation.NETWORK, key=lambda level: level.rank)
    how = {"max_isolation": Isolation.PROCESS} if network else {"min_isolation": least}
    return settings.model_copy(update={"fork": False, "slots": 1, **how})


def _base_of(checkout: Checkout, lock: str, base: str, locker: Locker) -> Locker:
    """With what states the environment as it was where this branch left `base`."""
    refuse_flag(base, "--base")
    commit = ask_git(GIT, "-C", str(checkout.folder), "merge-base", "HEAD", base).decode().strip()
    place = shutil.copytree(locker.source, locker.source.with_name("old"))
    for name in {lock, *BUILT}.intersection(checkout.files):
        (place / name).write_bytes(file_at(commit, checkout.folder / name, "--base") or b"")
    return replace(locker, source=place)


def _locks(bench: Bench, name: str, to: Sequence[str], before: str, old: Locker | None) -> tuple[str, list[Target]]:
    """The lock to compare with, and one for each target; those resolved before are taken again. Raises what a resolver
    says of the project as it is.
    """

    def kept(what: str, resolve: Callable[[], str]) -> str:
        path = bench.place / f"{digest(what)}.pylock"
        if not path.exists():
            write_whole(path, resolve())
        return path.read_text(encoding="utf-8")

    def moved(lock: str, torch: str) -> str:
        return kept(f"{digest(lock)} {torch}", lambda: bench.locker.moved(lock, torch))

    def target(torch: str) -> Target:
        try:
            lock = moved(first, torch)
            return Target(versions_in(lock)["torch"], lock)
        except InstallerFailed as failed:
            if failed.fault is not Fault.UNSATISFIABLE or (failed.is_doubtful and "torch" not in str(failed)):
                raise _as_error(failed) from None
            why = find_wheel("torch", torch, bench.locker.python, "linux", shipped_wheels())
            known = f"{english(why.why)}. " if why.exists is False else ""
            return Target(torch, refusal=f"{known}{failed}")

    try:
        locked = kept("as locked", lambda: bench.locker.as_locked(name))
        if old is not None:
            return old.as_locked(name), [Target(versions_in(locked)["torch"], locked)]
        first = moved(locked, before) if before else locked
    except InstallerFailed as failed:
        raise _as_error(failed) from None
    own = Version(versions_in(first)["torch"])
    newest = max((Version(build.requirement) for build in bench.builds if build.origin == "default"), default=own)
    return first, [target(torch) for torch in to or (str(newest),)]


def _as_error(failed: InstallerFailed) -> Exception:
    if failed.fault is Fault.UNSATISFIABLE:
        return NotTested(f"the project's own environment cannot be resolved: {failed}")
    return IndexUnusable(f"uv could not resolve: {failed}")


def _tell_price(bench: Bench, todo: Sequence[str]) -> None:
    if not todo:
        err.print(
            "nothing to run but what differs, if that was not repeated yet (--force runs all again)", soft_wrap=True
        )
        return
    download, disk = size_of(todo, bench.locker.installer.cache)
    err.print(
        f"{many(len(todo), 'environment')}: {bytes_in_words(download)} to download, {bytes_in_words(disk)} on disk, "
        f"about {in_words(len(todo) * ENVIRONMENT_S + download / 50e6)}; then {many(len(todo), 'run')} of your tests, "
        f"each for {in_words(bench.suite.timeout_s)} at most, and {CONFIRMING} more on both sides of what differs",
        soft_wrap=True,
        highlight=False,
    )


def _explained(target: Target, python: str, ground: Ground) -> Target:
    """With what is known of each new failure."""
    builds = ground.knowledge.known.builds.values()
    build = next((each.id for each in builds if each.requirement == target.torch and each.python == python), "")
    explained = {id_: explain_here(words or id_, build, ground) for id_, words in target.new_failures.items()}
    return replace(target, explained=explained)
