"""The gate as a job meets it: the command over the shipped evidence, its exit codes, the files for CI systems."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from knowngood.gate.asking import NAMES, TEXTS
from knowngood.store.engine import connect
from knowngood.store.knowledge.signed_snapshot import make_key, public_key, read_snapshot, write_snapshot
from tests.commands.given import run_here
from tests.fixtures.databases import NewStore
from tests.forked_commands import run_command
from tests.given_toys import ROOT
from tests.serving import served
from tests.web.asking import app_over

XLA = ("--issues", "xla-8464", "--hardware", "cpu-x86_64")
BAD, GOOD, UNTESTED = "torch-2.5.1+cu124", "torch-2.6.0+cu124", "torch-2.5.9+cu124"

Told = subprocess.CompletedProcess[str]


@dataclass(frozen=True)
class Place:
    """`folder` is where the command runs, `environment` has the data folder."""

    folder: Path
    environment: Mapping[str, str]

    def command(self, *arguments: str, stdin: str = "", **more: str) -> Told:
        return run_here(arguments, {**self.environment, **more}, folder=self.folder, stdin=stdin)

    def gate(self, *arguments: str, stdin: str = "", **more: str) -> Told:
        return self.command("gate", *arguments, stdin=stdin, **more)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, new_store: NewStore, shipped_store: str) -> Place:
    """A store with the evidence that the product comes with."""
    folder = tmp_path_factory.mktemp("gate")
    store = {"KNOWNGOOD_DATA_DIR": str(folder / "data"), "KNOWNGOOD_DATABASE_URL": new_store(shipped_store)}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **store}
    (folder / "work").mkdir()
    return Place(folder / "work", environment)


@pytest.fixture(scope="module")
def snapshot(place: Place) -> Path:
    done = place.command("snapshot", "-o", "knowngood.snapshot")
    assert done.returncode == 0, done.stderr
    return place.folder / "knowngood.snapshot"


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[str]:
    engine = connect(place.environment["KNOWNGOOD_DATABASE_URL"])
    app = app_over(engine, clock=lambda: datetime.now(UTC))
    with served(app) as address:
        yield address
    engine.dispose()


# -- what the shipped evidence says ------------------------------------------------------------------------------------


@pytest.mark.sample(3, "system")
@pytest.mark.parametrize(
    ("asked", "code", "words"),
    [
        (("--build", BAD), 1, "fixed in torch 2.6.0; then record it: --applied xla-8464="),
        (("--build", BAD), 1, "t1 = t1 + t0 # instead of t1.add_(t0)"),
        (("--build", GOOD), 0, "Pass: "),
        (("--build", BAD, "--applied", "xla-8464=out_of_place"), 0, "out_of_place helps here"),
        (("--build", BAD, "--applied", "xla-8464=clone"), 1, "clone does not help here"),
    ],
    ids=["the fix", "what to paste", "a later release", "a workaround that helps", "one that does not"],
)
def test_xla_8464_blocks_torch_2_5_1_unless_a_workaround_helps(
    place: Place, asked: tuple[str, ...], code: int, words: str
) -> None:
    told = place.gate(*asked, *XLA)
    assert told.returncode == code, told.stderr
    assert words in " ".join(told.stdout.split())


def test_an_untested_build_is_no_evidence_and_no_neighbour_stands_in(place: Place) -> None:
    told = place.gate("--build", UNTESTED, *XLA, "--format", "json")
    body = json.loads(told.stdout)
    assert (told.returncode, body["decision"], body["build"]) == (3, "insufficient_evidence", None)
    assert BAD in body["nearest"]


def test_a_stale_snapshot_is_unusable(place: Place, snapshot: Path, tmp_path: Path) -> None:
    read = read_snapshot(snapshot.read_bytes()).knowledge
    old = replace(read, known=replace(read.known, as_of=datetime.now(UTC) - timedelta(days=40)))
    (tmp_path / "old").write_bytes(write_snapshot(old, make_key()))
    told = place.gate("--snapshot", str(tmp_path / "old"), "--unsigned", "--build", GOOD, *XLA)
    assert (told.returncode, told.stdout) == (4, "")
    assert "40 days old" in told.stderr
    (tmp_path / "patient.toml").write_text("snapshot_days = 60\n")
    patient = place.gate(
        "--snapshot", str(tmp_path / "old"), "--unsigned", "--build", GOOD, *XLA, "--policy", "patient.toml"
    )
    assert patient.returncode == 2, "a policy that is not there"
    policy = str(tmp_path / "patient.toml")
    assert (
        place.gate(
            "--snapshot", str(tmp_path / "old"), "--unsigned", "--build", GOOD, *XLA, "--policy", policy
        ).returncode
        == 0
    )


# -- three who answer --------------------------------------------------------------------------------------------------


def document(told: Told) -> dict[str, Any]:
    """The decision document, but for the time and the server's address."""
    body: dict[str, Any] = json.loads(re.sub(r"http://127\.0\.0\.1:\d+/", "/", told.stdout))
    return {name: value for name, value in body.items() if name not in {"decided_at", "known_at"}}


@pytest.mark.sample(2, "system")
@pytest.mark.parametrize(
    "asked",
    [
        ("--build", BAD, "--component", "PyTorch/XLA"),
        ("--build", GOOD, "--severity", "low"),
        ("--build", UNTESTED, "--package", "torch_xla"),
        ("-", "--severity", "high", "--applied", "xla-8464=no_aliasing"),
    ],
    ids=["component", "severity", "untested", "stdin"],
)
def test_store_snapshot_and_server_give_the_same_document(
    place: Place, snapshot: Path, server: str, asked: tuple[str, ...]
) -> None:
    doors: tuple[tuple[str, ...], ...] = ((), ("--snapshot", str(snapshot), "--unsigned"), ("--server", server))
    told = [place.gate(*asked, "--format", "json", *door, stdin="torch==2.5.1+cu124\n") for door in doors]
    documents = [document(one) for one in told]
    assert documents[0] == documents[1] == documents[2]
    assert len({one.returncode for one in told}) == 1


def test_the_server_is_named_by_a_variable_too_and_no_store_is_opened(place: Place, server: str) -> None:
    told = place.gate("--build", BAD, *XLA, "--all", KNOWNGOOD_SERVER=server, KNOWNGOOD_DATA_DIR="/dev/null/nowhere")
    assert told.returncode == 1
    assert server in told.stdout


def test_the_action_asks_a_server_with_nothing_but_the_standard_library(server: str) -> None:
    code = (
        "import sys; from knowngood.gate.asking import main; code = main(); "
        "all_ = {name.partition('.')[0] for name in sys.modules}; "
        "ours = all_ - sys.stdlib_module_names - {'knowngood', '__main__'}; "
        "print(code, sorted(name for name in ours if not name.startswith('_')), file=sys.stderr)"
    )
    inputs = {"GATE_SERVER": server, "GATE_BUILD": BAD, "GATE_ISSUES": "xla-8464", "GATE_ENFORCE": "true"}
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=os.environ | inputs, capture_output=True, text=True, check=True
    )
    assert told.stderr.strip() in {"1 []", "1 ['sitecustomize']"}, told.stderr


def test_a_snapshot_answers_without_a_store_and_says_who_signed_it(place: Place, snapshot: Path) -> None:
    nowhere = {"KNOWNGOOD_DATA_DIR": "/dev/null/nowhere"}
    unchecked = place.gate("--snapshot", str(snapshot), "--unsigned", "--build", GOOD, *XLA, **nowhere)
    assert unchecked.returncode == 0
    key = read_snapshot(snapshot.read_bytes()).key
    assert "not checked" in unchecked.stderr
    assert key in unchecked.stderr
    checked = place.gate("--snapshot", str(snapshot), "--public-key", key, "--build", GOOD, *XLA, **nowhere)
    assert (checked.returncode, checked.stderr) == (0, "")
    other = public_key(make_key())
    assert place.gate("--snapshot", str(snapshot), "--public-key", other, "--build", GOOD, *XLA).returncode == 4
    newer = place.folder / "newer.snapshot"
    newer.write_bytes(snapshot.read_bytes().replace(b'"version": 3', b'"version": 4'))
    assert place.gate("--snapshot", str(newer), "--unsigned", "--build", GOOD, *XLA, **nowhere).returncode == 4
    (place.folder / "key.pub").write_text(f"\ufeff{key}\n", encoding="utf-8")
    for named in (f" {key}\n", "key.pub", " key.pub "):
        told = place.gate("--snapshot", str(snapshot), "--public-key", named, "--build", GOOD, *XLA)
        assert (told.returncode, told.stderr) == (0, ""), named


@pytest.mark.parametrize(
    ("signers", "words"),
    [
        ((), "say who must have signed the snapshot: --public-key"),
        (("--public-key", ""), "say who must have signed the snapshot: --public-key"),
        (("--public-key", " "), "say who must have signed the snapshot: --public-key"),
        (
            ("--public-key", "ed25519:AAAA"),
            '"ed25519:AAAA" is no public key; one is written ed25519: and 44 characters',
        ),
        (("--public-key", "nowhere.pub"), "nowhere.pub cannot be read: No such file or directory"),
        (("--public-key", "ed25519:AAAA", "--unsigned"), "--public-key and --unsigned exclude each other"),
    ],
)
@pytest.mark.parametrize(
    "command", [("gate", "--build", GOOD, *XLA), ("issue", "xla-8464"), ("upgrade", "--from", GOOD)]
)
def test_a_snapshot_is_taken_where_somebody_says_who_must_have_signed_it(
    place: Place, snapshot: Path, command: tuple[str, ...], signers: tuple[str, ...], words: str
) -> None:
    told = place.command(*command, "--snapshot", str(snapshot), *signers)
    assert (told.returncode, told.stdout) == (4 if "is no public key" in words else 2, "")
    assert words in told.stderr


def test_the_signing_key_is_made_once_and_for_its_owner_alone(place: Place, snapshot: Path) -> None:
    key = Path(place.environment["KNOWNGOOD_DATA_DIR"]) / "snapshot-key.pem"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    again = place.command("snapshot", "-o", "again.snapshot")
    assert again.stdout.strip() == public_key(before)
    assert key.read_bytes() == before


# -- exit codes, as documented -----------------------------------------------------------------------------------------

CASES: dict[int, tuple[str, ...]] = {
    0: ("--build", GOOD, *XLA),
    1: ("--build", BAD, *XLA),
    2: ("--build", GOOD, "--issues", "xla-0"),
    3: ("--build", UNTESTED, *XLA),
    4: ("--build", GOOD, *XLA, "--server", "http://127.0.0.1:9"),
}


def documented() -> dict[int, str]:
    rows = re.findall(r"^\| (\d) \| (?:`(\w+)`)? *\|", (ROOT / "docs" / "ci.md").read_text(), re.MULTILINE)
    return {int(code): decision for code, decision in rows}


@pytest.mark.system
def test_every_exit_code_of_the_documentation_is_what_the_process_ends_in(place: Place) -> None:
    assert documented() == {0: "pass", 1: "block", 2: "", 3: "insufficient_evidence", 4: ""}
    for code, decision in documented().items():
        asked = ("gate", *CASES[code], "--format", "json")
        told = run_command(asked, place.environment, timeout_s=120, folder=place.folder)
        assert told.returncode == code, told.stderr
        assert (json.loads(told.stdout)["decision"] if decision else told.stdout) == decision
        assert "Traceback" not in told.stderr


def test_advice_ends_in_0_where_the_gate_would_not_pass_and_says_so(place: Place) -> None:
    for code, advised in ((1, 0), (3, 0), (2, 2), (4, 4)):
        told = place.gate(*CASES[code], "--advisory")
        assert told.returncode == advised
        if advised == 0:
            assert f"without --advisory this ends {code}" in told.stderr


# -- what the command reads and writes ---------------------------------------------------------------------------------


def test_a_policy_beside_it_is_found(place: Place, snapshot: Path, tmp_path: Path) -> None:
    there = replace(place, folder=tmp_path)
    where = ("--snapshot", str(snapshot), "--unsigned", "--build", BAD)
    assert there.gate(*where).returncode == 0, "nothing is watched"
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.knowngood.watch]\nissues = ["xla-8464"]\n')
    assert there.gate(*where).returncode == 1
    (tmp_path / "knowngood.toml").write_text('affected = "warn"\n[watch]\nissues = ["xla-8464"]\n')
    assert there.gate(*where).returncode == 0
    (tmp_path / "knowngood.toml").write_text('afected = "warn"\n')
    wrong = there.gate(*where)
    assert wrong.returncode == 2
    assert "knowngood.toml:1" in wrong.stderr


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_requirements_file_is_read_as_people_write_it(
    place: Place, snapshot: Path, tmp_path: Path, encoding: str
) -> None:
    (tmp_path / "requirements.txt").write_text("torch==2.5.1+cu124\n", encoding=encoding)
    asked = ("-r", "requirements.txt", *XLA, "--snapshot", str(snapshot), "--unsigned")
    assert replace(place, folder=tmp_path).gate(*asked).returncode == 1


def test_the_answer_goes_to_a_file_where_one_is_named(place: Place, snapshot: Path, tmp_path: Path) -> None:
    told = place.gate(
        *("--snapshot", str(snapshot), "--unsigned", "--build", BAD, *XLA),
        *("--format", "sarif", "-o", str(tmp_path / "out.sarif")),
    )
    assert (told.returncode, told.stdout) == (1, "")
    assert json.loads((tmp_path / "out.sarif").read_text())["version"] == "2.1.0"
    assert (
        place.gate("--snapshot", str(snapshot), "--unsigned", "--build", BAD, *XLA, "-o", "/nowhere/x").returncode == 2
    )


def test_the_running_environment_has_no_torch_and_that_is_said(place: Place, snapshot: Path) -> None:
    told = place.gate("--here", *XLA, "--snapshot", str(snapshot), "--unsigned")
    assert told.returncode == 3, told.stderr
    assert "torch" in told.stdout


# -- what the file says at a git revision ------------------------------------------------------------------------------


@pytest.fixture
def checkout(place: Place, tmp_path: Path) -> Place:
    """A repository whose `main` states the good build; the working tree states the bad one. Whatever git could run on
    the way leaves a file.
    """
    there = replace(place, folder=tmp_path / "project" / "service")
    there.folder.mkdir(parents=True)
    (there.folder / "requirements.txt").write_text("torch==2.6.0+cu124\n")
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    (tmp_path / "hook").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "hook").chmod(0o755)
    (there.folder / ".gitattributes").write_text("*.txt diff=ours filter=ours\n")
    config = [f"core.fsmonitor={tmp_path}/hook", f"diff.ours.textconv={tmp_path}/hook", "core.pager=false"]
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        (*who, "commit", "-qm", "begin"),
        *(("config", *one.split("=", 1)) for one in config),
    ):
        subprocess.run(["git", *words], cwd=there.folder, check=True, capture_output=True)
    (there.folder / "requirements.txt").write_text("torch==2.5.1+cu124\n")
    (there.folder / "new.txt").write_text("torch==2.5.1+cu124\n")
    return there


def test_the_base_may_be_a_git_revision_whose_file_is_read(checkout: Place, server: str) -> None:
    asked = ("--hardware", "cpu-x86_64", "--base", "main", "--format", "json")
    told = [checkout.gate("-r", "requirements.txt", *asked, *door) for door in ((), ("--server", server))]
    assert document(told[0]) == document(told[1])
    body = document(told[0])
    assert (told[0].returncode, body["decision"], body["counts"]["warn"] > 0) == (0, "pass", True), told[0].stderr
    assert {one["effect"] for one in body["reasons"]} == {"warn"}
    assert "xla-8464" not in {one["issue"] for one in body["reasons"]}, "torch-xla is not there"
    watched = checkout.gate("-r", "requirements.txt", *XLA, "--only-new", "--base", "HEAD")
    assert (watched.returncode, "base build torch 2.6.0 (CUDA 12.4)" in " ".join(watched.stdout.split())) == (1, True)
    assert not list(checkout.folder.parent.parent.glob("ran")), "a hook or a filter was run"
    missing = checkout.gate("-r", "new.txt", *asked)
    assert "of main:./new.txt (there is no such file) is not known here, so nothing can be said to be new" in str(
        document(missing)["notes"]
    )


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            ("-r", "requirements.txt", "--base", "mian"),
            "--base asks git, which says: fatal: Not a valid object name mian",
        ),
        (("-r", "requirements.txt", "--base=--output=x"), '--base "--output=x" is no revision; name a branch'),
        (("--build", GOOD, "--base", "main"), '--base "main" is no build such as torch-2.5.1+cu124'),
        (("-", "--base", "main"), "a git revision needs a file: -r or --lock"),
    ],
)
def test_a_revision_that_cannot_be_read_is_a_wrong_question(
    checkout: Place, asked: tuple[str, ...], words: str
) -> None:
    told = checkout.gate(*asked, stdin="torch==2.6.0\n")
    assert (told.returncode, words in told.stderr) == (2, True), told.stderr


def test_without_git_or_a_checkout_the_base_is_said_to_be_out_of_reach(checkout: Place) -> None:
    asked = ("-r", "requirements.txt", "--base", "main")
    told = checkout.gate(*asked, PATH="/nowhere")
    assert (told.returncode, "--base needs git" in told.stderr) == (2, True)
    shutil.rmtree(checkout.folder / ".git")
    told = checkout.gate(*asked)
    assert (told.returncode, "not a git repository" in told.stderr) == (2, True)


# -- servers that are not as they should be ----------------------------------------------------------------------------


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{httpd.server_port}"
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def telling(status: int, body: str = "", **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body.encode())

    return answer


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (telling(200, "<html>Welcome to this proxy</html>"), "does not answer as a Known Good server"),
        (telling(401, '{"detail": "send a token"}'), "KNOWNGOOD_TOKEN: send a token"),
        (telling(302, Location="https://elsewhere.example/"), "sends elsewhere (https://elsewhere.example/)"),
        (telling(500, "{}"), "answers 500"),
        (telling(404, "no such page"), "answers 404"),
        (telling(200, "x", Knowngood_Decision="perhaps"), "does not answer as a Known Good server"),
    ],
    ids=["a proxy", "a token is wanted", "a redirect", "a fault", "another site", "another word"],
)
def test_a_server_that_cannot_be_used_ends_in_4_and_never_in_a_pass(
    place: Place, answer: Callable[[BaseHTTPRequestHandler], None], words: str
) -> None:
    with serving(answer) as address:
        told = place.gate("--build", GOOD, *XLA, "--server", address, "--advisory")
    assert (told.returncode, told.stdout) == (4, "")
    assert words in told.stderr


def test_a_password_in_the_address_is_refused_and_not_repeated(place: Place) -> None:
    told = place.gate("--build", GOOD, *XLA, "--server", "https://user:secret@example.org")
    assert told.returncode == 2
    assert "secret" not in told.stderr


def test_a_busy_server_is_asked_again_with_the_token(place: Place) -> None:
    asked: list[str | None] = []

    def answer(handler: BaseHTTPRequestHandler) -> None:
        asked.append(handler.headers["Authorization"])
        busy = telling(503, Retry_After="0")
        (busy if len(asked) < 3 else telling(200, "fine\n", Knowngood_Decision="pass"))(handler)

    with serving(answer) as address:
        told = place.gate("--build", GOOD, *XLA, "--server", address, KNOWNGOOD_TOKEN="kg_x")  # noqa: S106 - of nobody
    assert (told.returncode, told.stdout, asked) == (0, "fine\n", ["Bearer kg_x"] * 3)


# -- CI systems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "schema"), [("action.yml", "vendor.github-actions"), ("ci/gitlab-ci.yml", "vendor.gitlab-ci")]
)
def test_the_files_for_ci_systems_are_valid(file: str, schema: str) -> None:
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)]
    done = subprocess.run(checker, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_for_pre_commit_is_valid_and_what_it_runs_is_understood(place: Place, snapshot: Path) -> None:
    validate = [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    done = subprocess.run(validate, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (place.folder / "requirements.txt").write_text("torch==2.5.1+cu124\n")
    told = place.gate(
        "--advisory", "--requirements", "requirements.txt", *XLA, "--snapshot", str(snapshot), "--unsigned"
    )
    assert told.returncode == 0
    assert "Blocked" in told.stdout


@pytest.mark.parametrize(("enforce", "code", "level"), [("true", 1, "::error"), ("", 0, "::warning")])
def test_the_action_tells_in_annotations_a_summary_and_an_output(
    place: Place, server: str, tmp_path: Path, enforce: str, code: int, level: str
) -> None:
    """Its script as a runner calls it, in a project that has a folder `app` of its own."""
    project = tmp_path / "project"
    (project / "knowngood").mkdir(parents=True)
    (project / "knowngood" / "__init__.py").write_text("raise SystemExit('the wrong one')\n")
    (project / "requirements.txt").write_text("torch==2.5.1+cu124\n")
    bash = shutil.which("bash")
    assert bash is not None
    done = subprocess.run(
        [bash, str(ROOT / "ci" / "gate.sh")],
        cwd=project,
        env={
            "PATH": os.environ["PATH"],
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "GATE_PYTHON": sys.executable,
            "GATE_SERVER": server,
            "GATE_REQUIREMENTS": "requirements.txt",
            "GATE_ISSUES": "xla-8464",
            "GATE_HARDWARE": "",
            "GATE_ENFORCE": enforce,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert f"{level} " in done.stdout
    assert "file=requirements.txt" in done.stdout
    assert (tmp_path / "output").read_text() == "decision=block\n"
    summary = (tmp_path / "summary.md").read_text()
    assert "xla-8464" in summary
    assert "## Upgrade torch 2.5.1 (CUDA 12.4)" in summary


def test_every_input_of_the_action_reaches_its_script() -> None:
    action = (ROOT / "action.yml").read_text()
    inputs = set(re.findall(r"inputs\.([a-z-]+)", action))
    passed = {name.replace("_", "-") for name in (*TEXTS, *NAMES)}
    assert inputs == passed | {"comment", "enforce", "github-token", "token", "unsigned"}
    for name in passed:
        assert f"GATE_{name.upper().replace('-', '_')}: ${{{{ inputs.{name} }}}}" in action
