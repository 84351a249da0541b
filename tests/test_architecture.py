"""Rules of the house that a machine can hold."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml

from tests.commands.given import Call

ROOT = Path(__file__).parents[1]
STANDALONE = ROOT / "workers" / "knowngood_workers" / "standalone"
OURS = {"knowngood", "knowngood_workers", "migrations", "tests"}


def tracked() -> list[Path]:
    """Files that are committed, and new ones that will be."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    return [path for path in (ROOT / name for name in listed.decode().split("\0") if name) if path.is_file()]


def imported_by(path: Path) -> set[str]:
    """Top-level names of the modules imported when the file runs; imports for type checkers alone are left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


def test_a_repro_imports_nothing_of_ours() -> None:
    repros = sorted((ROOT / "repros").glob("*/repro.py"))
    assert repros
    assert {path.parent.name: ours for path in repros if (ours := imported_by(path) & OURS)} == {}


@pytest.mark.parametrize("name", ["cgroup.py", "harness.py", "sandbox.py", "supervisor.py"])
def test_what_runs_beside_the_build_under_test_is_python_3_9_and_standard_library_only(name: str) -> None:
    source = (STANDALONE / name).read_text()
    ast.parse(source, feature_version=(3, 9))
    foreign = imported_by(STANDALONE / name) - set(sys.stdlib_module_names) - {"torch", "triton", "torch_xla"}
    assert not foreign


def test_no_tracked_file_names_a_registry_or_a_path_of_some_machine() -> None:
    """PyTorch's own index is upstream's, and what readers are told to install from."""
    forbidden = re.compile(
        rb"--(extra-)?index-url(?! (https://download\.pytorch\.org/|\{index_of_variant\())"
        rb"|\"resolved\": *\"http|registry *= *\"http|(^|[\s\"'=(:])/(root|home/[a-z]+|work)/",
        re.MULTILINE,
    )
    guilty = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.suffix not in {".gz", ".png"}
        and path != Path(__file__)
        and RECORDED not in path.parents
        and forbidden.search(path.read_bytes())
    ]
    assert not guilty


RECORDED = ROOT / "tests" / "environments" / "files"
PUBLIC = {"pypi.org", "files.pythonhosted.org", "download.pytorch.org", "conda.anaconda.org", "repo.anaconda.com"}


@pytest.mark.parametrize("path", sorted(RECORDED.iterdir()), ids=lambda path: path.name)
def test_a_recorded_environment_names_public_indexes_alone(path: Path) -> None:
    hosts = set(re.findall(r"https?://(?:[^/\s@]*@)?([a-z0-9.-]+)", path.read_text()))
    assert {host for host in hosts if not host.endswith(".example")} <= {*PUBLIC, "github.com"}


def test_the_locks_are_hashed_and_name_no_address() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (ROOT / name).read_text()
        assert "://" not in text
        pinned = re.findall(r"^[a-z0-9].*==", text, re.MULTILINE)
        assert len(pinned) <= text.count("--hash=sha256:")


def test_docker_compose_keeps_to_the_schema_of_compose() -> None:
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.compose-spec",
        "docker-compose.yml",
    ]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_the_services_of_docker_compose_run_commands_that_exist(command: Call) -> None:
    services = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    assert {"web", "dispatcher"} <= set(services)
    for service in services.values():
        program, name, *flags = service.get("command", ["postgres", ""])
        if program != "knowngood":  # tests/system/test_compose.py runs them all
            continue
        told = command(name, "--help")
        assert told.code == 0
        for flag in flags:
            assert not flag.startswith("--") or flag in told.out


PACKAGES = sorted(
    folder
    for top in ("app", "workers")
    for folder in (ROOT / top, *(ROOT / top).rglob("*/"))
    if (folder / "__init__.py").exists()
)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_package_is_small_and_says_what_it_is_for(package: Path) -> None:
    assert len(list(package.glob("*.py"))) <= 15
    words = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert words.partition("\n")[0].endswith(".")


# Names of 0.1.0 that meant nothing to anybody who had not made them.
WHIMSICAL = frozenset(
    """
    Visit House Answers MadeBefore NotHere BadQuestion WrongKind Doorkeeper Watcher Repeater Courier Letterbox Square
    Sign Arrivals Arrived Shelf Zygote Carrier Fence Reach Premises Workplace Told Telling Said Stated Asked Kept
    Edition Grounds Remedy Scene Manner Post Room
    """.split()  # noqa: SIM905 - a list that people edit
)


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@cache
def documented() -> list[tuple[str, Documented]]:
    """Modules, classes and functions of the product, with the path of their file."""
    return [
        (path.relative_to(ROOT).as_posix(), node)
        for top in ("app", "workers")
        for path in sorted((ROOT / top).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Documented)
    ]


def test_no_docstring_begins_with_a_relative_clause() -> None:
    """One that begins with "What" names no thing; the field's noun comes first."""
    guilty = [
        f"{path}:{getattr(node, 'lineno', 1)}"
        for path, node in documented()
        if (ast.get_docstring(node) or "").startswith("What ")
    ]
    assert not guilty, "begin with the thing: `The effect of ...`, not `What ... does`"


def test_classes_have_the_fields_names() -> None:
    defined = {node.name: path for path, node in documented() if isinstance(node, ast.ClassDef)}
    assert len(defined) > 500
    assert {name: defined[name] for name in WHIMSICAL & defined.keys()} == {}


DOCUMENTS = ("CONTRIBUTING.md", "docs/architecture.md", "README.md")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_path_that_a_document_names_is_there(document: str) -> None:
    text = (ROOT / document).read_text()
    named = re.findall(r"`((?:app|workers|tests|repros|docs)/[\w./-]+)`", text)
    assert named
    assert [path for path in named if not (ROOT / path).exists() and "NAME" not in path] == []
