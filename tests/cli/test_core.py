"""Whoever only asks needs six packages, and what these need: every other one is refused here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CORE = ("click", "cryptography", "packaging", "pydantic", "regex", "yaml")
NEEDED_BY_THEM = ("annotated_types", "cffi", "pydantic_core", "typing_extensions", "typing_inspection")
GUARDED = """
import json, sys
from importlib.abc import MetaPathFinder

class Refuse(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in sys.stdlib_module_names or top.startswith("_") or top in {allowed}:
            return None
        raise ModuleNotFoundError(f"not of the core: {{name}}", name=name)

sys.meta_path.insert(0, Refuse())
from knowngood.app.main import main
for asked in json.load(sys.stdin):
    sys.argv = ["knowngood", *asked.split()]
    try:
        main()
    except SystemExit as ended:
        print(f"{{asked}}: {{ended.code}}", file=sys.stderr)
"""
GATE = "gate --build torch-2.5.1+cu124 --issues xla-8464"
ASKED = {
    **{f"{GATE} --format {form}": 1 for form in ("text", "json", "junit", "sarif", "github", "markdown")},
    "gate -r ENVIRONMENT --issues xla-8464 --policy POLICY": 1,
    "gate --here --issues xla-8464": 3,
    **{f"compare 2.5.1 2.7.1 --format {form}": 0 for form in ("text", "json", "markdown")},
    **{f"upgrade --from 2.5.1 --issues xla-8464 --format {form}": 0 for form in ("text", "json", "markdown")},
    "explain LOG": 3,
    "explain LOG --json": 3,
    "issue 151290": 0,
    "issue pytorch-151290 -r ENVIRONMENT": 0,
    "issue xla-8464 --json": 0,
    "find stride status:affected": 0,
    "find stride --json": 0,
    "env -r ENVIRONMENT": 0,
    "env -r PROJECT --json": 0,
    "env -r SCRIPT": 0,
    "env": 3,
    "status": 0,
    "status --json": 0,
}


@pytest.fixture
def places(tmp_path: Path) -> dict[str, Path]:
    texts = {
        "ENVIRONMENT": "torch==2.5.1+cu124\n",
        "POLICY": 'python = "3.11"\nhardware = ["cpu-x86_64"]\n',
        "PROJECT": '[project]\nname = "x"\ndependencies = ["torch==2.6.0"]\n',
        "SCRIPT": '# /// script\n# dependencies = ["torch==2.6.0"]\n# ///\n',
        "LOG": "KeyError: 'x'\nPyTorch version: 2.6.0+cu124\n",
    }
    files = {
        "ENVIRONMENT": "requirements.txt",
        "POLICY": "knowngood.toml",
        "PROJECT": "pyproject.toml",
        "SCRIPT": "train.py",
        "LOG": "log.txt",
    }
    for name, text in texts.items():
        (tmp_path / files[name]).write_text(text)
    return {name: tmp_path / file for name, file in files.items()}


def test_asking_imports_the_core_alone(places: dict[str, Path], tmp_path: Path) -> None:
    code = GUARDED.format(allowed={*CORE, *NEEDED_BY_THEM, "knowngood"})
    asked = {" ".join(str(places.get(word, word)) for word in one.split()): end for one, end in ASKED.items()}
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "nobody")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(list(asked)),
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told = ("knowngood: answered from", "knowngood: whether this machine has a GPU")
    ended = [line for line in done.stderr.splitlines() if not line.startswith(told)]
    assert ended == [f"{one}: {end}" for one, end in asked.items()]
