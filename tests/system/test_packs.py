"""Packs and adopted builds through the real command: packed here, run where there is no network, imported here."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from knowngood.catalogue.loader import read_catalogue
from knowngood.domain.issue import environment_request
from knowngood.domain.measuring.isolation import Isolation
from knowngood_workers.agent.sandbox_policy import probe_host_sandbox
from knowngood_workers.pack.builder import PackRequest, make_pack, open_pack
from knowngood_workers.provision.uv_cli import Installer
from tests.fixtures.databases import NewStore
from tests.given_toys import ROOT, TOYS, Installation, make_installation, make_python

ISSUES = "toy-passes-1,toy-fixed-1,toy-aborts-1,toy-missing-package-1"
BUILD = "torch-0.0.1+mini"
RESULTS = "knowngood-results.jsonl.gz"

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, wheels: Path, new_setting: NewStore) -> Installation:
    """The side that packs and imports. It reaches an index, which the worker's own packages come from."""
    installation = make_installation(tmp_path_factory.mktemp("home"), wheels, store=new_setting())
    kept = {name: value for name, value in installation.environment.items() if name != "PIP_NO_INDEX"}
    own = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    return replace(installation, environment={**own, **kept})


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory, home: Installation) -> Path:
    folder = tmp_path_factory.mktemp("packs") / "pack"
    made = home.command("pack", "-o", str(folder), "--builds", BUILD, "--issues", ISSUES, "--part-size", "8M")
    assert made.returncode == 0, made.stderr
    return folder


def start(pack: Path, there: Path, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    """The command of a user whose machine has Python and nothing else: `python3 PACK/run.py`."""
    (there / "home").mkdir(parents=True, exist_ok=True)
    has_none = probe_host_sandbox(there, Isolation.NETWORK).level is Isolation.NETWORK
    offline = ["unshare", "--map-root-user", "--net"] if has_none else []
    return subprocess.run(
        [*offline, python, str(pack / "run.py"), *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(there / "home")},
        cwd=there,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory, pack: Path) -> Path:
    """The machine without network, after it ran the pack."""
    folder = tmp_path_factory.mktemp("there")
    ran = start(pack, folder)
    assert ran.returncode == 0, ran.stderr
    return folder


def verdicts(matrix: Mapping[str, Any]) -> dict[str, str]:
    return {cell["issue"]: cell["verdict"] for cell in matrix["cells"]}


def test_what_a_pack_measured_without_network_counts_at_home_once(home: Installation, there: Path) -> None:
    first, second = (home.command("import", str(there / RESULTS)) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr
    assert "0 were here already" in first.stdout
    assert " 0 attempts added" in second.stdout
    known = home.answer("matrix", "--json", "--builds", BUILD, "--issues", ISSUES)
    assert verdicts(known) == {
        "toy-passes-1": "not_affected",
        "toy-fixed-1": "affected",
        "toy-aborts-1": "affected",
        "toy-missing-package-1": "inconclusive",
    }


def test_a_catalogue_that_is_edited_while_a_pack_is_made_is_in_it_as_it_was_at_first(
    home: Installation, tmp_path: Path
) -> None:
    folder = copytree(TOYS, tmp_path / "catalogue")
    catalogue = read_catalogue([folder])
    build = next(one for one in catalogue.builds if one.id == BUILD)
    issue = next(one for one in catalogue.issues if one.id == "toy-passes-1")
    words = (folder / issue.id / "issue.toml").read_text(encoding="utf-8")
    wanted = PackRequest(
        pairs=[(build, environment_request(issue, build))],
        builds=[build.id],
        issues=[issue.id],
        folders=[folder],
        python=build.python,
        platform="manylinux_2_28_x86_64",
        part_bytes=1 << 23,
    )

    def edit(_: str) -> None:
        (folder / issue.id / "issue.toml").write_text(f"{words}\n# a later thought\n", encoding="utf-8")

    installer = Installer(tmp_path / "cache", tmp_path, environ=home.environment)
    make_pack(tmp_path / "pack", wanted, installer, now=datetime.now(UTC), tell=edit)

    (place,) = open_pack(tmp_path / "pack", tmp_path / "there", tell=lambda _: None).catalogue
    assert (place / issue.id / "issue.toml").read_text(encoding="utf-8") == words


def test_a_second_run_of_a_pack_measures_nothing_again(pack: Path, there: Path) -> None:
    again = start(pack, there, "--issues", "toy-passes-1", "-o", "again.jsonl.gz")
    assert again.returncode == 0, again.stderr
    assert "nothing to run" in again.stderr


def test_results_of_a_repro_that_changed_since_come_in_as_superseded(tmp_path: Path, wheels: Path, there: Path) -> None:
    changed = copytree(TOYS, tmp_path / "catalogue")
    repro = changed / "toy-passes-1" / "repro.py"
    repro.write_text(repro.read_text().replace("def baseline(", "def baseline(*, _changed=True, ", 1))
    later = make_installation(tmp_path / "later", wheels, catalogue=changed)
    told = later.command("import", str(there / RESULTS))
    assert told.returncode == 0, told.stderr
    assert "1 superseded (another state of their repro)" in told.stdout
    known = later.answer("matrix", "--json", "--builds", BUILD, "--issues", "toy-passes-1,toy-aborts-1")
    assert verdicts(known) == {"toy-passes-1": "not_run", "toy-aborts-1": "affected"}


@pytest.mark.parametrize("cut", [10, pytest.param(400, marks=pytest.mark.soak)])
def test_a_bundle_that_was_cut_off_changes_nothing(tmp_path: Path, wheels: Path, there: Path, cut: int) -> None:
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes((there / RESULTS).read_bytes()[:-cut])
    fresh = make_installation(tmp_path / "fresh", wheels)
    refused = fresh.command("import", str(damaged))
    assert refused.returncode == 4
    assert "damaged.jsonl.gz ends in the middle: it was cut off on its way; copy it again" in refused.stderr
    known = fresh.answer("matrix", "--json", "--builds", BUILD, "--issues", ISSUES)
    assert set(verdicts(known).values()) == {"not_run"}


def test_a_bundle_with_one_flipped_byte_changes_nothing(tmp_path: Path, wheels: Path, there: Path) -> None:
    text = bytearray(gzip.decompress((there / RESULTS).read_bytes()))
    text[len(text) // 2] ^= 1
    damaged = tmp_path / "damaged.jsonl.gz"
    damaged.write_bytes(gzip.compress(bytes(text)))
    refused = make_installation(tmp_path / "fresh", wheels).command("import", str(damaged))
    assert refused.returncode == 4
    assert "damaged.jsonl.gz" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_damaged_pack_runs_nothing(tmp_path: Path, pack: Path) -> None:
    damaged = copytree(pack, tmp_path / "pack")
    content = bytearray((damaged / "part-0002").read_bytes())
    content[1000] ^= 1
    (damaged / "part-0002").write_bytes(content)
    refused = start(damaged, tmp_path / "there")
    assert refused.returncode == 4
    assert "part-0002 is damaged (its SHA-256 differs): copy that part again" in refused.stderr
    assert not (tmp_path / "there" / RESULTS).exists()


def test_wheels_left_out_of_a_pack_are_made_of_what_is_installed_there(
    tmp_path: Path, home: Installation, wheels: Path
) -> None:
    offline = replace(home, environment={**home.environment, "KNOWNGOOD_DATA_DIR": str(tmp_path / "data")})
    installed = tmp_path / "installed.txt"
    resolved = offline.command("pack", "-o", str(tmp_path / "all"), "--builds", BUILD, "--issues", "toy-passes-1")
    assert resolved.returncode == 0, resolved.stderr
    names = [file["path"] for file in json.loads((tmp_path / "all" / "manifest.json").read_text())["files"]]
    numpy = next(name for name in names if name.startswith("wheels/numpy-"))
    version = numpy.split("-")[1]
    installed.write_text(f"# pip freeze\nNumPy=={version}\nunrelated==1.0\n")
    small = tmp_path / "small"
    excluded = ("--exclude-installed", str(installed))
    made = offline.command("pack", "-o", str(small), "--builds", BUILD, "--issues", "toy-passes-1", *excluded)
    assert made.returncode == 0, made.stderr
    manifest = json.loads((small / "manifest.json").read_text())
    assert manifest["expected"] == [["numpy", version]]
    assert numpy not in [file["path"] for file in manifest["files"]]

    without = start(small, tmp_path / "without", python=str(make_python(tmp_path / "bare", wheels, "mini-extra")))
    assert without.returncode == 4
    assert f"the pack counts on packages that this Python does not have: numpy {version}" in without.stderr

    unpacked = tmp_path / "unpacked"
    subprocess.run([sys.executable, "-c", _UNPACK, str(tmp_path / "all"), str(unpacked)], cwd=ROOT, check=True)
    python = make_python(tmp_path / "with", unpacked / "wheels", f"numpy=={version}")
    ran = start(small, tmp_path / "there", python=str(python))
    assert ran.returncode == 0, ran.stderr
    told = home.command("import", str(tmp_path / "there" / RESULTS))
    assert "attempts added" in told.stdout


_UNPACK = (
    "import sys, pathlib; from knowngood_workers.pack.unpack import unpack; unpack(*map(pathlib.Path, sys.argv[1:]))"
)


def test_an_interpreters_own_torch_is_a_column_and_its_evidence_says_so(tmp_path: Path, wheels: Path) -> None:
    python = make_python(tmp_path / "image", wheels, "torch==0.0.1", "numpy", "setuptools")
    fresh = make_installation(tmp_path / "fresh", wheels)
    known = fresh.answer(
        "run", "--python", str(python), "--issues", "toy-passes-1,toy-aborts-1,toy-packages-1", "--json"
    )
    assert [build["id"] for build in known["builds"]] == [BUILD]
    assert verdicts(known) == {"toy-passes-1": "not_affected", "toy-aborts-1": "affected", "toy-packages-1": "not_run"}
    assert not (fresh.data / "environments").exists() or not list((fresh.data / "environments").glob("*/pylock.toml"))
    bundle = tmp_path / "bundle.jsonl.gz"
    assert fresh.command("export", "-o", str(bundle)).returncode == 0
    lines = [json.loads(line) for line in gzip.decompress(bundle.read_bytes()).splitlines()]
    environment = next(line for line in lines if line["kind"] == "environment")
    assert environment["imported"]["provenance"] == "adopted"
    assert environment["packages"]["torch"] == "0.0.1"


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        (["torch==0.0.3", "numpy", "setuptools"], "is no column of the catalogue; nearest: torch-0.0.3+mini"),
        (["numpy"], "cannot be used: the build was installed but torch cannot be imported"),
    ],
)
def test_an_interpreter_that_is_no_column_is_refused(
    tmp_path: Path, wheels: Path, packages: list[str], words: str
) -> None:
    python = make_python(tmp_path / "image", wheels, *packages)
    refused = make_installation(tmp_path / "fresh", wheels).command("run", "--python", str(python))
    assert refused.returncode == 2
    assert words in refused.stderr


def test_a_program_that_is_not_there_is_no_interpreter(tmp_path: Path, wheels: Path) -> None:
    refused = make_installation(tmp_path / "fresh", wheels).command("run", "--python", "/nowhere/python")
    assert (refused.returncode, refused.stderr) == (2, "knowngood: --python /nowhere/python is no program here\n")
