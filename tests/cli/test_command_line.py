"""The table of commands: each is grouped, says what it takes, and loads only what it needs."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import click
import pytest

from knowngood.cli.lazy import REMOVED, LazyTable
from knowngood.domain.errors import BadRequest
from knowngood.main import TABLE, cli
from tests.commands.given import run_here
from tests.forked_commands import run_command

ROOT = Path(__file__).parents[2]
CONTEXT = click.Context(cli)
HEAVY = {"sqlalchemy", "alembic", "fastapi", "starlette", "rich", "jinja2", "uvicorn"}
GROUPS = ["Ask", "Choose", "CI", "Measure", "Serve", "Share", "Catalogue", "Upkeep"]


def commands() -> Iterator[tuple[str, click.Command]]:
    """Every command with its words, those below a command too."""
    for name in cli.list_commands(CONTEXT):
        found = cli.get_command(CONTEXT, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from ((f"{name} {below}", one) for below, one in found.commands.items())
        else:
            yield name, found


COMMANDS = dict(commands())


def function_of(command: click.Command) -> Callable[..., object]:
    assert isinstance(command.callback, partial)
    found: Callable[..., object] = command.callback.args[0]
    return found


def run(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    return run_command(arguments, {"PATH": os.environ["PATH"], "COLUMNS": "100", **settings}, timeout_s=300)


def test_help_groups_every_command_under_a_heading_with_one_line() -> None:
    told = run("--help").stdout
    assert re.findall(r"^(\S.*):$", told, re.MULTILINE) == ["Options", *GROUPS]
    for rows in TABLE.values():
        for name, (_, line) in rows.items():
            assert re.search(rf"^  {name} +{re.escape(line[:40])}", told, re.MULTILINE), name


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_an_example_that_it_understands(name: str) -> None:
    told = re.search(r"knowngood (.*)", COMMANDS[name].epilog or "")
    assert told is not None
    assert told[1].startswith(name)
    words = subprocess.run(["sh", "-c", f'printf "%s\\n" {told[1]}'], capture_output=True, text=True, check=True).stdout
    given = words.split("\n")[len(name.split()) : -1]
    with click.Context(COMMANDS[name], resilient_parsing=True) as context:
        assert COMMANDS[name].make_parser(context).parse_args(given)[1] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_what_a_command_takes_is_what_its_function_takes(name: str) -> None:
    """They are bound by name when the command runs, where no type checker looks."""
    taken = inspect.signature(function_of(COMMANDS[name])).parameters
    declared = {one.name for one in COMMANDS[name].params if one.expose_value}
    if not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values()):
        assert declared == taken.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_written_alike(name: str) -> None:
    for one in COMMANDS[name].params:
        help_ = getattr(one, "help", "") or ""
        assert help_.endswith((".", "80.")), f"{one.name}: {help_}"
        assert all(flag == flag.lower() for flag in one.opts)
        assert (one.metavar or "X").upper() == (one.metavar or "X"), one.metavar


HELP = """
import os, sys
from knowngood.main import main
for name in sys.argv[1:]:
    sys.stdout.flush()
    if os.fork():
        assert os.wait()[1] == 0, name
        continue
    sys.argv = ["knowngood", *name.split(), "--help"]
    try:
        main()
    finally:
        print("\\nloaded", name or "-", *sys.modules)
"""


ASKING = [name for heading in ("Ask", "Choose") for name in TABLE[heading] if name != "matrix"]  # it draws with rich
QUICK_HELP = ["", "gate", *ASKING]


@pytest.fixture(scope="module")
def loaded_for_help() -> dict[str, set[str]]:
    """What a process has imported when it has shown the help of each command; all are forked of a fresh one."""
    program = [sys.executable, "-c", HELP, *QUICK_HELP]
    told = subprocess.run(program, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    lines = [line.removeprefix("loaded ") for line in told.splitlines() if line.startswith("loaded ")]
    return {name: set(line.removeprefix(name or "-").split()) for name, line in zip(QUICK_HELP, lines, strict=True)}


@pytest.mark.parametrize("name", QUICK_HELP)
def test_help_loads_no_server_and_the_list_of_commands_no_room(loaded_for_help: dict[str, set[str]], name: str) -> None:
    loaded = loaded_for_help[name]
    assert not {module.partition(".")[0] for module in loaded} & HEAVY
    rooms = {module.split(".")[1] for module in loaded if module.startswith("knowngood.")}
    assert name or not rooms & {"ask", "gate", "move", "matrix", "measure", "health", "share", "commands", "store"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("gaet",), ["No such command 'gaet'", "Did you mean 'gate'?", "knowngood --help"]),
        (("upgrade", "--fron", "2.5.1"), ["No such option '--fron'", "--from", "knowngood upgrade --help"]),
        (("upgrade", "2.5.1"), ["unexpected extra argument", "2.5.1", "knowngood upgrade --help"]),
        (("gate", "--format", "yaml"), ["'yaml' is not one of 'text', 'json'", "knowngood gate --help"]),
        (("serve", "--port", "70000"), ["70000 is not in the range 0<=x<=65535", "knowngood serve --help"]),
        (("token", "create"), ["Missing option '--name'", "knowngood token create --help"]),
        (("import", "nowhere.gz"), ["'nowhere.gz' does not exist", "knowngood import --help"]),
        (("gate", "--build", "2.5.1", "--here"), ["--build and --here exclude each other; name one of them"]),
        (("gate", "--server", "http://x", "--snapshot", "x", "--build", "1"), ["--server and --snapshot exclude"]),
        (("matrix", "--fail-on", "broken"), ['--fail-on "broken" is no verdict; known: affected,']),
    ],
)
def test_wrong_input_ends_in_2_with_what_was_found_and_what_to_do(arguments: tuple[str, ...], words: list[str]) -> None:
    done = run_here(arguments, {"PATH": os.environ["PATH"], "COLUMNS": "100"}, folder=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("knowngood: ")
    assert [word for word in words if word not in done.stderr] == []


def test_a_removed_command_says_what_takes_its_place_whatever_comes_after_it() -> None:
    table = LazyTable({}, {"old": "`knowngood old` is no more; `knowngood new` does it"}, name="knowngood")
    for words in (["old"], ["old", "below", "--option"], ["old", "--help"]):
        with pytest.raises(BadRequest, match="`knowngood new` does it"):
            table.main(words, standalone_mode=False)
    assert table.list_commands(CONTEXT) == []


def test_removed_commands_end_in_2_and_no_help_names_them() -> None:
    told = run("--help").stdout
    for name, sentence in REMOVED.items():
        done = run_here((name, "x"), {"PATH": os.environ["PATH"]}, folder=ROOT)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"knowngood: {sentence}\n")
        assert not re.search(rf"^  {name} ", told, re.MULTILINE), name


def test_without_a_word_it_shows_its_help_and_ends_in_2() -> None:
    done = run()
    assert done.returncode == 2
    assert "Usage: knowngood" in done.stderr
