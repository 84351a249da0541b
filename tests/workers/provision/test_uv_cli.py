"""Meanings of uv's output. The texts are uv 0.13.8's own, as printed on 2026-11-21."""

import sys
from pathlib import Path

import pytest

from knowngood_workers.provision.adopted_env import import_torch
from knowngood_workers.provision.index_config import bridge
from knowngood_workers.provision.resolver import ProvisionFailure
from knowngood_workers.provision.uv_cli import (
    Fault,
    Installer,
    InstallerFailed,
    ProcessObserver,
    classify_failure,
    run_watched,
    sentence_of,
    was_killed,
)

NO_VERSION = """\
error: No solution found when resolving dependencies
  cause: Because there is no version of torch==2.6.9 and you require torch==2.6.9, we can conclude that your \
requirements are unsatisfiable.
"""
NO_TAG = """\
warning: The requested Python version 3.13 is not available; 3.11.7 will be used to build dependencies instead.
error: No solution found when resolving dependencies
  cause: Because torch==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require \
torch==2.4.0, we can conclude that your requirements are unsatisfiable.

hint: You require CPython 3.13 (`cp313`), but we only found wheels for `torch` (v2.4.0) with the following Python ABI \
tags: `cp38`, `cp39`
"""
NOT_FOUND = """\
error: No solution found when resolving dependencies
  cause: Because numpy was not found in the package registry and you require numpy, we can conclude that your \
requirements are unsatisfiable.
"""
FORBIDDEN = (
    NOT_FOUND
    + """
hint: An index URL (http://mirror.example/simple) could not be queried due to a lack of valid authentication \
credentials (401 Unauthorized)
"""
)
NO_NAME = """\
error: Request failed after 1 retry in 1.4s
  cause: Failed to fetch: https://mirror.example/whl/cu126/torch/
  cause: error sending request for url (https://mirror.example/whl/cu126/torch/)
  cause: client error (Connect)
  cause: dns error
"""
UNTRUSTED = NO_NAME.replace("dns error", "invalid peer certificate: UnknownIssuer")
UNAVAILABLE = """\
error: Failed to fetch: http://mirror.example/simple/numpy/
  cause: HTTP status server error (503 Service Unavailable) for url (http://mirror.example/simple/numpy/)
"""
OFFLINE = """\
Resolved 32 packages in 23ms
error: Failed to download `filelock==3.16.1`
  cause: Network connectivity is disabled, but the requested data wasn't found in the cache: https://mirror.example/f.whl
"""
FULL = """\
error: Failed to install: torch-2.6.0-cp311-cp311-manylinux1_x86_64.whl (torch==2.6.0)
  cause: failed to copy file
  cause: No space left on device (os error 28)
"""
GONE = """\
error: No solution found when resolving dependencies
  cause: Because torch==9.1.0 has an invalid package format and you require torch==9.1.0, we can conclude that your \
requirements are unsatisfiable. The structure of `torch` (v9.1.0) was invalid: failed to read directory \
`/cache/archive-v0/EBNolR5QBXcLy2If`: No such file or directory (os error 2)
"""
BAD_REQUIREMENT = """\
error: Couldn't parse requirement in `requirements.in` at position 0
  cause: expected version to start with a number, but no leading ASCII digits were found
         torch===not version
              ^^^^^^^^^^^^^^
"""

ROWS = {
    "no such version": (NO_VERSION, Fault.UNSATISFIABLE, False),
    "no wheel for this Python": (NO_TAG, Fault.UNSATISFIABLE, False),
    "not found, which a broken index says too": (NOT_FOUND, Fault.UNSATISFIABLE, True),
    "credentials refused": (FORBIDDEN, Fault.UNREACHABLE, False),
    "no such host": (NO_NAME, Fault.UNREACHABLE, False),
    "a certificate of a proxy": (UNTRUSTED, Fault.UNTRUSTED, False),
    "server trouble": (UNAVAILABLE, Fault.UNREACHABLE, False),
    "not in the cache": (OFFLINE, Fault.UNREACHABLE, False),
    "disk full": (FULL, Fault.DISK_FULL, False),
    "an unpacked wheel that is gone": (GONE, Fault.OTHER, False),
    "a requirement that does not parse": (BAD_REQUIREMENT, Fault.OTHER, False),
    "killed without a word": ("", Fault.OTHER, False),
}


@pytest.mark.parametrize(("output", "fault", "is_doubtful"), ROWS.values(), ids=ROWS.keys())
def test_a_failure_of_uv_is_told_apart(output: str, fault: Fault, is_doubtful: bool) -> None:
    assert classify_failure(output) == (fault, is_doubtful)


def test_the_sentence_is_uvs_without_its_boilerplate() -> None:
    assert sentence_of(NO_TAG) == (
        "Because torch==2.4.0 has no wheels with a matching Python ABI tag (e.g., `cp313`) and you require "
        "torch==2.4.0, we can conclude that your requirements are unsatisfiable. You require CPython 3.13 (`cp313`), "
        "but we only found wheels for `torch` (v2.4.0) with the following Python ABI tags: `cp38`, `cp39`"
    )


def test_a_sentence_without_an_error_line_is_the_end_of_the_output() -> None:
    assert sentence_of("one\ntwo\nthree\nfour\nfive\nsix") == "two three four five six"


def test_neither_addresses_nor_our_own_folders_are_told(tmp_path: Path) -> None:
    cache = tmp_path / "private" / "cache"
    cache.parent.mkdir()
    cache.write_text("a file where uv wants a folder")
    installer = Installer(cache, given_index=bridge({}, {"UV_DEFAULT_INDEX": "http://me:secret@127.0.0.1:9/simple"}))
    with pytest.raises(InstallerFailed) as caught:
        installer.run("pip", "compile", "-q", str(cache))
    assert str(tmp_path) not in str(caught.value)
    assert "127.0.0.1" not in str(caught.value)


def test_a_program_that_hangs_is_stopped_in_time() -> None:
    ran = run_watched(["sleep", "30"], env={"PATH": "/usr/bin:/bin"}, observer=ProcessObserver(), timeout_s=0.1)
    assert ran.returncode != 0
    assert ran.stdout == "error: stopped after 0.1 s"


def test_a_terminals_ctrl_c_reaches_no_uv_which_would_look_like_one_that_failed() -> None:
    asks = [sys.executable, "-c", "import os; print(os.getpgrp() == os.getpid())"]
    assert run_watched(asks, env={}, observer=ProcessObserver()).stdout == "True"


@pytest.mark.parametrize(("does", "expected"), [("kill -KILL $$", True), ("kill -TERM $$", False), ("exit 9", False)])
def test_a_program_that_was_killed_is_known_from_one_that_failed(does: str, expected: bool) -> None:
    assert was_killed(run_watched(["sh", "-c", does], env={}, observer=ProcessObserver())) is expected


def test_an_interpreter_that_is_killed_while_uv_asks_it_is_no_failure_of_uv(tmp_path: Path) -> None:
    asked = tmp_path / "python3"
    asked.write_text("#!/bin/sh\nkill -KILL $$\n")
    asked.chmod(0o755)
    (tmp_path / "wanted.txt").touch()
    with pytest.raises(InstallerFailed, match=r"^it was killed \(SIGKILL\)"):
        Installer(tmp_path / "cache").run("pip", "compile", "--python", str(asked), str(tmp_path / "wanted.txt"))


def test_an_interpreter_that_was_killed_is_not_called_unable_to_import_torch(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(ProvisionFailure, match=r"was killed \(SIGKILL\)"):
        import_torch(python, {}, ProcessObserver())
