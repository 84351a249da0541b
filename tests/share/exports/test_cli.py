"""`knowngood export` in the words of other tools, as somebody types it."""

import csv
import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from knowngood.share.bundle import check_bundle
from knowngood.share.exports.formats import Format
from tests.commands.given import Call
from tests.fixtures.databases import NewStore
from tests.make import HARDWARE
from tests.web.given import BAD, BUILDS, ISSUES

Done = subprocess.CompletedProcess[bytes]


@pytest.fixture(scope="module")
def url(new_store: NewStore, filled_store: str) -> str:
    return new_store(filled_store)


def export(url: str, *arguments: str) -> Done:
    return subprocess.run(
        [sys.executable, "-c", "from knowngood.main import main; main()", "export", *arguments],
        env={**os.environ, "KNOWNGOOD_DATABASE_URL": url},
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_each_format_is_one_file_that_its_own_readers_take(call_notebook: Call, tmp_path: Path) -> None:
    files = {form: tmp_path / form for form in Format}
    for form, file in files.items():
        done = call_notebook("export", "--format", form, "-o", str(file))
        assert (done.code, done.out) == (0, ""), done.err
        assert str(file) in done.err.replace("\n", "")
    assert {one["id"] for one in json.loads(files[Format.OSV].read_bytes())["vulns"]} >= {"KNOWNGOOD-pytorch-151290"}
    rows = list(csv.DictReader(StringIO(files[Format.CSV].read_text(), newline=""), strict=True))
    assert len(rows) == len(ISSUES) * len(BUILDS) * 2
    assert len(list(ET.fromstring(files[Format.JUNIT].read_bytes()).iter("testcase"))) == len(rows)  # noqa: S314 - ours
    assert check_bundle(files[Format.BUNDLE]).counts["attempt"] > 0
    assert sorted(path.name for path in tmp_path.iterdir() if "partial" in path.name) == []


def test_a_bundle_that_was_refused_leaves_nothing_behind(url: str, tmp_path: Path) -> None:
    small = "import knowngood.share.store as e; e.MOST_LINES = 3; from knowngood.main import main; main()"
    command = [sys.executable, "-c", small, "export", "-o", str(tmp_path / "all.jsonl.gz")]
    settings = {**os.environ, "KNOWNGOOD_DATABASE_URL": url}
    done = subprocess.run(command, env=settings, capture_output=True, timeout=60, check=False)
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert b"export it in parts" in b" ".join(done.stderr.split())


def test_a_selection_goes_to_the_standard_output(url: str) -> None:
    where = ("--issues", "pytorch-151290", "--builds", BAD.id, "--hardware", HARDWARE)
    done = export(url, "--format", "csv", "-o", "-", *where)
    (row,) = csv.DictReader(StringIO(done.stdout.decode(), newline=""), strict=True)
    assert (row["issue"], row["build"], row["verdict"], row["evidence_url"]) == (
        "pytorch-151290",
        BAD.id,
        "affected",
        "",
    )
    assert done.stderr.decode() == "standard output: 1 cell\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--format", "xlsx", "-o", "x"),
            f'--format "xlsx" is not known; known: {", ".join(Format)}',
        ),
        (("--format", "kcidb", "-o", "x"), "--format kcidb is no more: bundle has the evidence"),
        (("-o", "-"), "a bundle is written to a file"),
        (("--format", "csv", "-o", "/nowhere/at/all.csv"), "/nowhere/at/all.csv cannot be written: No such file"),
        (("--format", "csv", "-o", "-", "--issues", "pytorch-15129"), "nearest: pytorch-151290"),
        (("--format", "csv", "-o", "-", "--hardware", "cuda-sm_1"), "was never measured here; known: cpu-x86_64"),
    ],
)
def test_what_cannot_be_exported_gets_a_sentence_and_nothing_is_written(
    call_notebook: Call, arguments: tuple[str, ...], words: str
) -> None:
    done = call_notebook("export", *arguments)
    assert (done.code, done.out, "Traceback" in done.err) == (2, "", False)
    assert words in done.err
