"""Files as they are at a revision of a git checkout: nothing is written, and no hook, filter or fetch is run. This
imports the standard library alone, as what asks for it does.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from knowngood.domain.errors import BadRequest

_TIMEOUT_S = 60
_MOST_BYTES = 24_000_000
_MADE_ANEW = re.compile(
    r"(?:^|/)(?:\.git|\.?venv|\.tox|\.nox|__pycache__|node_modules|[^/]+\.egg-info|site-packages)(?:/|$)"
)
_READING_ALONE = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}


def file_at(revision: str, path: Path, option: str) -> bytes | None:
    """The content of a file at a revision; None where that has no such file. `option` is the one that names the
    revision. Raises BadRequest where git is missing or does not know it.
    """
    folder = ("-C", str(path.parent))
    refuse_flag(revision, option)
    entry = ask_git(option, *folder, "ls-tree", "-l", "-z", revision, "--", path.name).split(maxsplit=4)
    if not entry or entry[1] != b"blob":
        return None
    if int(entry[3]) > _MOST_BYTES:
        raise BadRequest(f"{path} has {int(entry[3]):,} bytes at {revision}; at most {_MOST_BYTES:,} are read")
    return ask_git(option, *folder, "cat-file", "blob", entry[2].decode())


def files_in(folder: Path, option: str) -> list[str]:
    """The files that git knows or would add, by their paths in the folder; where that is in no git, or there is none,
    all but what is made anew in any case.
    """
    try:
        listed = os.fsdecode(ask_git(option, "-C", str(folder), "ls-files", "-coz", "--exclude-standard")).split("\0")
    except BadRequest:
        every = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        listed = [name for name in every if not _MADE_ANEW.search(name)]
    return sorted(name for name in {*listed} - {""} if (folder / name).is_file())


def refuse_flag(revision: str, option: str) -> None:
    if revision.startswith("-"):
        raise BadRequest(f'{option} "{revision}" is no revision; name a branch, a tag or a commit')


def ask_git(option: str, *arguments: str) -> bytes:
    """The output of git, for the option that wants it. Raises BadRequest where git is missing or refuses."""
    git = shutil.which("git")
    if git is None:
        raise BadRequest(f"{option} needs git, and there is none on the PATH")
    how = {**os.environ, **_READING_ALONE}
    try:
        done = subprocess.run(
            [git, *arguments], capture_output=True, timeout=_TIMEOUT_S, check=False, stdin=subprocess.DEVNULL, env=how
        )
    except subprocess.TimeoutExpired:
        raise BadRequest(f"git took more than {_TIMEOUT_S} s for {option}") from None
    if done.returncode:
        says = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[0][:200]
        raise BadRequest(f"{option} asks git, which says: {says} (a shallow clone must fetch a revision first)")
    return done.stdout
