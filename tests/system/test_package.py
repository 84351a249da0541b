"""The package as people install it: from a folder of wheels, no network, a home that is empty and stays so.

KNOWNGOOD_PACKAGE_CASES says how many questions are asked of the installed command and of a store (6 unless set);
KNOWNGOOD_SOAK_SEED repeats them.
"""

import ast
import hashlib
import json
import os
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from uv import find_uv_bin

from knowngood.catalogue_digest import shipped_evidence
from knowngood.cli.exit_codes import Exit
from knowngood.domain.measuring.isolation import Isolation
from knowngood.gate.asking import CODES
from knowngood.gate.renderers.json import dump_decision
from knowngood.gate.request import AttachedFile, GateRequest, rule
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_knowledge
from knowngood_workers.agent.sandbox_policy import probe_host_sandbox
from knowngood_workers.provision.index_config import read_index
from tests.store.knowledge.test_shipped import POLICIES
from tests.workers.registry import answering

ROOT = Path(__file__).parents[2]
CASES = int(os.environ.get("KNOWNGOOD_PACKAGE_CASES", "6"))
SEED = int(os.environ.get("KNOWNGOOD_SOAK_SEED", "17"))
GATE = ("gate", "-r", "requirements.txt", "--issues", "pytorch-151290,xla-8464")
QUESTIONS: Mapping[tuple[str, ...], int] = {
    GATE: 0,
    ("gate", "--build", "torch-2.5.1+cu124", "--issues", "xla-8464"): 1,
    ("gate", "--here", "--issues", "xla-8464"): 3,
    ("gate", "--lock", "Pipfile.lock", "--issues", "xla-8464"): 0,
    ("compare", "2.5.1", "2.7.1"): 0,
    ("upgrade", "--from", "2.5.1", "--issues", "xla-8464"): 0,
    ("explain", "log.txt"): 3,
    ("status",): 0,
    ("matrix",): Exit.UNUSABLE,
    ("run", "--dry-run"): Exit.UNUSABLE,
    ("serve",): Exit.UNUSABLE,
}
PIPFILE_LOCK = {"_meta": {"pipfile-spec": 6}, "default": {"torch": {"version": "==2.6.0"}}, "develop": {}}
Ask = Callable[..., subprocess.CompletedProcess[str]]

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


def build(to: Path, source: Path, *what: str) -> Path:
    subprocess.run([find_uv_bin(), "build", "-q", *what, "-o", to, source], check=True, timeout=300)
    return next(one for one in to.iterdir() if one.suffix in {".whl", ".gz"})


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"), ROOT, "--wheel")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The program, in a new environment that holds what the wheel asks for and no more."""
    house, env = tmp_path_factory.mktemp("wheelhouse"), tmp_path_factory.mktemp("fresh") / "env"
    here = house / "here.txt"
    here.write_text("\n".join(f"{one.name}=={one.version}" for one in distributions() if one.name != "knowngood"))
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq"]
    subprocess.run(
        [*pip, "download", "--only-binary", ":all:", "-c", here, "-d", house, wheel], check=True, timeout=300
    )
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", env], check=True, timeout=300)
    offline = ["install", "--no-index", "--find-links", str(house), "--compile", str(wheel)]
    subprocess.run([*pip, "--python", env / "bin" / "python", *offline], check=True, timeout=300)
    return env / "bin" / "knowngood"


@pytest.fixture
def ask(installed: Path, tmp_path: Path) -> Ask:
    """In a project that has an `app`, `workers` and `tests` of its own; with no network where the host lets us."""
    home, project = tmp_path / "home", tmp_path / "project"
    home.mkdir(mode=0o500)
    for name in ("app", "workers", "tests", "repros"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("raise ImportError('of the project, not of ours')\n")
    (project / "requirements.txt").write_text("torch==2.6.0\n")
    (project / "Pipfile.lock").write_text(json.dumps(PIPFILE_LOCK))
    (project / "log.txt").write_text("KeyError: 'x'\n")
    has_none = probe_host_sandbox(tmp_path, Isolation.NETWORK).level is Isolation.NETWORK
    offline = ["unshare", "--map-root-user", "--net"] if has_none else []
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")

    def asking(*arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*offline, installed, *arguments],
            env={"PATH": os.environ["PATH"], "HOME": str(home), **nowhere, **settings},
            cwd=project,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert list(home.iterdir()) == []
        return done

    return asking


def test_the_wheel_is_small_and_holds_two_packages_with_their_evidence(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        metadata = archive.read(next(name for name in names if name.endswith("METADATA"))).decode()
    assert wheel.stat().st_size < 10_000_000
    assert {name.partition("/")[0] for name in names} == {"knowngood", "knowngood_workers", "knowngood-0.2.0.dist-info"}
    evidence = {f"knowngood/repros/evidence/{bundle.name}" for bundle in shipped_evidence()}
    assert {name for name in names if name.endswith((".gz", ".pyc"))} == evidence
    asked = [Requirement(line.partition(": ")[2]) for line in metadata.splitlines() if line.startswith("Requires-Dist")]
    core = {one.name for one in asked if one.marker is None}
    assert core == {"click", "cryptography", "demangle", "packaging", "pydantic", "pyyaml", "regex"}


@pytest.fixture(scope="module")
def nowhere() -> Iterator[tuple[str, list[str]]]:
    """An index that has all but names with `knowngood` in them, its address, and the projects it was asked for."""
    ordinary = read_index().variables.get("UV_DEFAULT_INDEX", "https://pypi.org/simple").rstrip("/")
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            project = self.path.removeprefix("/simple/").strip("/")
            asked.append(project)
            self.send_response(404 if "knowngood" in project else 302)
            self.send_header("Location", f"{ordinary}/{project}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with answering(Handler) as port:
        yield f"http://127.0.0.1:{port}/simple/", asked


def extras_of(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read("knowngood-0.2.0.dist-info/METADATA").decode()
    return re.findall(r"^Provides-Extra: (.+)$", metadata, re.MULTILINE)


def test_no_extra_asks_an_index_for_a_name_of_ours(wheel: Path, nowhere: tuple[str, list[str]], tmp_path: Path) -> None:
    index, asked = nowhere
    environment = {name: value for name, value in os.environ.items() if "INDEX" not in name}
    environment |= {
        "PIP_CONFIG_FILE": os.devnull,
        "UV_NO_CONFIG": "1",
        "PIP_INDEX_URL": index,
        "UV_DEFAULT_INDEX": index,
    }
    extras = extras_of(wheel)
    assert set(extras) == {"server", "postgres", "ray", "mcp", "local"}
    for extra in extras:
        wanted = tmp_path / "wanted.in"
        wanted.write_text(f"knowngood[{extra}] @ {wheel.as_uri()}\n")
        resolve = [find_uv_bin(), "pip", "compile", "-q", "--python", sys.executable, str(wanted)]
        subprocess.run(resolve, env=environment, check=True, capture_output=True, timeout=300)
        if extra != "local":  # pip resolves torch by fetching it; the rest is installed here
            pip = [sys.executable, "-m", "pip", "install", "-qq", "--dry-run"]
            subprocess.run([*pip, f"{wheel}[{extra}]"], env=environment, check=True, capture_output=True, timeout=300)
    assert {"click", "psycopg", "ray", "torch"} <= set(asked)
    assert [project for project in asked if "knowngood" in project] == []


def test_every_build_is_the_same_bytes_and_so_is_one_from_the_sdist(tmp_path: Path) -> None:
    sdist = build(tmp_path / "sdist", ROOT, "--sdist")
    made = [build(tmp_path / "one", ROOT, "--wheel"), build(tmp_path / "two", ROOT, "--wheel")]
    made.append(build(tmp_path / "three", sdist, "--wheel"))
    assert len({hashlib.sha256(one.read_bytes()).hexdigest() for one in made}) == 1


def test_files_that_its_sentences_name_are_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        files = set(archive.namelist())
        sources = [name for name in files if re.match(r"knowngood(_workers)?/(?!repros/).*\.py$", name)]
        named = {found for name in sources for found in files_named_in(archive.read(name).decode())}
    assert "repros/builds.toml" in named
    assert [name for name in named if f"knowngood/{name}" not in files] == []


def files_named_in(source: str) -> Iterator[str]:
    """By what it says, and not by what it says of itself: docstrings are for those who have the source."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from re.findall(
                r"(?<![\w/.-])(?:app|benchmarks|repros|tests|tools|workers)/[\w./-]+\.\w+", node.value
            )


@pytest.mark.parametrize("settings", [{}, {"PYTHONPATH": "."}], ids=["alone", "on the project's path"])
def test_whoever_asks_needs_no_store_no_network_and_no_home(ask: Ask, wheel: Path, settings: Mapping[str, str]) -> None:
    for question, code in QUESTIONS.items():
        done = ask(*question, **settings)
        assert done.returncode == code, (question, done.stderr)
        assert "Traceback" not in done.stderr
        if code == Exit.UNUSABLE:
            assert f'install it with: pip install "{wheel}[server]"' in done.stderr
        else:
            assert re.search(r"results of \d{4}-\d\d-\d\d", done.stdout + done.stderr)


def test_it_decides_as_a_store_with_the_same_evidence_does(ask: Ask, shipped: Engine, tmp_path: Path) -> None:
    chance = random.Random(SEED)  # noqa: S311 - no secret
    with reading(shipped) as s:
        store = load_knowledge(s, datetime.now(UTC)).knowledge
    builds, issues = sorted(store.tested), sorted(store.known.issues)
    for number in range(CASES):
        chosen, names = chance.choice(builds), chance.sample(issues, chance.randint(1, 5))
        policy = tmp_path / "knowngood.toml"
        policy.write_text(chance.choice(list(POLICIES.values())))
        asked = GateRequest(build=chosen, issues=tuple(names), policy=AttachedFile(policy.read_text(), policy.name))
        true = rule(asked, store, datetime.now(UTC))
        question = ("--build", chosen, "--issues", ",".join(names), "--policy", str(policy), "--format", "json")
        done = ask("gate", *question)
        told = json.loads(done.stdout)
        where = f"KNOWNGOOD_SOAK_SEED={SEED}, question {number}: {question}"
        assert (told["decision"], done.returncode) == (true.decision.value, CODES[true.decision.value]), where
        expected = json.loads(dump_decision(true))
        assert (told["reasons"], told["counts"]) == (expected["reasons"], expected["counts"]), where


def test_a_question_imports_little(ask: Ask) -> None:
    """Most of what it takes of a processor; how long that is: `python -m benchmarks commands`."""
    done = ask(*GATE, PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    imported = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")]
    assert 100 < len(imported) < 700, len(imported)
