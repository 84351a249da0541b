"""Commands that measure something again: ours, and the same by hand with nothing but uv and python.

And a stored lock in the form that these install.
"""

import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, Issue, environment_request, variants_of
from knowngood.web.urls import issue_address, pins_address

# torch up to 2.6 imports setuptools when Inductor compiles, and most repros compare with numpy.
_ALWAYS = ("numpy", "setuptools")
_FOLDER = "known-good-check"


@dataclass(frozen=True)
class Subject:
    """The arm to measure again. `locked_by` names an attempt whose pins are installed instead of a new resolution."""

    issue: Issue
    build: Build
    hardware: str
    arm: str = BASELINE
    variant: str = ""
    locked_by: str = ""


def run_command(issue: str, build: str, hardware: str) -> str:
    return f"knowngood run --builds {build} --issues {issue} --hardware {hardware} --force"


def commands(subject: Subject, base: str) -> dict[str, str]:
    """`ours`, and the `plain` ones. `base` is the address of this server, where repro and lock are fetched from; empty
    where there is none: the repro is to be there already, under the name that pages give it.
    """
    issue, build = subject.issue, subject.build
    params = next((variant.params for variant in variants_of(issue, subject.arm) if variant.id == subject.variant), {})
    python = f"{_FOLDER}/bin/python"
    install = _from_lock(subject, base, python) if subject.locked_by else _resolved(issue, build, python)
    script = "repro.py" if base else f"{issue.id}.py"
    lines = [
        *([f"curl -O {base}{issue_address(issue.id)}/repro.py"] if base else []),
        f"uv venv --python {build.python} {_FOLDER}",
        *install,
        f"{python} {script}{_arguments(subject.arm, params)}",
    ]
    timed = f"knowngood costs --issues {issue.id} --hardware {subject.hardware} --python {python} -o costs.jsonl.gz"
    ours = timed if issue.is_timed else run_command(issue.id, build.id, subject.hardware)
    return {"ours": ours, "plain": "\n".join(lines)}


def _from_lock(subject: Subject, base: str, python: str) -> list[str]:
    """Its very wheels, by hash. Not `uv pip sync pylock.toml`: see `hashed_requirements`."""
    install = f"uv pip install --python {python} --no-deps --require-hashes{_backend(subject.build)}"
    return [f"curl -O {base}{pins_address(subject.locked_by)}", f"{install} -r requirements.txt"]


def _backend(build: Build) -> str:
    return "" if build.origin == "default" else f" --torch-backend {build.origin}"


def _resolved(issue: Issue, build: Build, python: str) -> list[str]:
    request = environment_request(issue, build)
    install = f"uv pip install --python {python} --exclude-newer {build.as_of}"
    wanted = shlex.join([f"torch=={build.requirement}", *_ALWAYS, *request.requirements])
    lines = [f"{install}{_backend(build)} {wanted}"]
    if request.no_deps:
        lines.append(f"{install} --no-deps {shlex.join(request.no_deps)}")
    if build.is_mismatched and build.triton:
        lines.append(f"{install} --no-deps triton=={build.triton}")
    return lines


def _arguments(arm: str, params: Mapping[str, str | int | float | bool]) -> str:
    chosen = [] if arm == BASELINE else ["--arm", arm]
    words = [*chosen, *(f"{name}={value}" for name, value in params.items())]
    return f" {shlex.join(words)}" if words else ""


def hashed_requirements(lock: str) -> str:
    """A stored lock as hashed requirements: one line per package. Empty where the text is no lock, or one that holds
    something without a SHA-256.

    Stored locks name no addresses (they are shipped), and uv refuses a pylock.toml whose wheels have none: "relative
    URL without a base" (uv 0.13.8, measured 2026-11-21). The hashes are what matters: only these very wheels are
    installed.
    """
    try:
        packages = tomllib.loads(lock).get("packages", [])
    except tomllib.TOMLDecodeError:
        return ""
    lines = [_line(package) for package in packages]
    return "".join(f"{line}\n" for line in lines) if all(lines) else ""


def _line(package: Mapping[str, Any]) -> str:
    archive, wheels = package.get("archive"), package.get("wheels", [])
    files = [archive] if archive else wheels
    hashes = [file.get("hashes", {}).get("sha256", "") for file in files]
    if not hashes or not all(hashes):
        return ""
    name = package["name"]
    what = f"{name} @ {archive['url']}" if archive and archive.get("url") else f"{name}==={package.get('version', '')}"
    return f"{what} {' '.join(f'--hash=sha256:{hash_}' for hash_ in hashes)}"
