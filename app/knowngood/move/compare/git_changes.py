"""Files of a git checkout that state another torch than they did at a revision, such as in a pull request."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from knowngood.domain.errors import BadEnvironment, OtherPython
from knowngood.environments.resolve import ResolvedBuild, resolve
from knowngood.environments.service import stated_in
from knowngood.environments.wheels.table import wheels_of
from knowngood.git_files import ask_git, refuse_flag
from knowngood.store.knowledge.model import Knowledge

_OPTION = "--from-diff"
_STATING = re.compile(
    r"(?:.*/)?(?:(?:.*[-_.])?(?:requirements|constraints)[^/]*\.txt|requirements/[^/]+\.txt|[^/]*\.lock"
    r"|pylock[^/]*\.toml|pyproject\.toml|[^/]*environment[^/]*\.ya?ml)"
)


@dataclass(frozen=True)
class ChangedTorch:
    """A file and the builds it stated before and states now. `problem` says why one of them cannot be read (empty:
    both were).
    """

    path: str
    before: ResolvedBuild | None = None
    after: ResolvedBuild | None = None
    problem: str = ""

    @property
    def builds(self) -> tuple[str, str] | None:
        """None where either is no build of the catalogue."""
        before, after = (side.build if side else None for side in (self.before, self.after))
        return (before, after) if before and after else None

    @property
    def sentence(self) -> str:
        if self.before is None or self.after is None:
            return f"left out: {self.problem}"
        unclear = [side for side in (self.before, self.after) if side.build is None]
        return "; ".join(
            [f"{self.before.description} becomes {self.after.description}", *(_why_not(side) for side in unclear)]
        )


def _why_not(side: ResolvedBuild) -> str:
    near = f"; nearest: {', '.join(side.nearest)}" if side.nearest else ""
    return f"{side.description} cannot be compared: {side.note or 'it is no build of the catalogue'}{near}"


def torch_changes(revision: str, knowledge: Knowledge) -> list[ChangedTorch]:
    """Compare the working tree with where it left `revision`, by path. Files that are new or gone compare with nothing
    and are left out. Raises BadRequest where git is missing or refuses.
    """
    refuse_flag(revision, _OPTION)
    root = Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))
    base = _git("merge-base", revision, "HEAD").strip()
    names = _git("-C", str(root), "diff", "--name-only", "-z", "--diff-filter=M", base, "--").split("\0")
    return list(_changed(root, base, sorted(name for name in names if _STATING.fullmatch(name)), knowledge))


def _changed(root: Path, base: str, paths: list[str], knowledge: Knowledge) -> Iterator[ChangedTorch]:
    for path in paths:
        try:
            before = _stated(path, _git("-C", str(root), "show", f"{base}:{path}").encode(), knowledge)
            after = _stated(path, (root / path).read_bytes(), knowledge)
        except (BadEnvironment, OtherPython) as error:
            yield ChangedTorch(path, problem=str(error))
            continue
        if before and after and before.description != after.description:
            yield ChangedTorch(path, before, after)


def _stated(path: str, content: bytes, knowledge: Knowledge) -> ResolvedBuild | None:
    """None where it states no torch."""
    stated = stated_in(content, Path(path).name)
    known = knowledge.known
    return resolve(stated, known.build_names, known.builds, wheels_of(known)) if stated.all_of("torch") else None


def _git(*arguments: str) -> str:
    return ask_git(_OPTION, *arguments).decode(errors="replace")
