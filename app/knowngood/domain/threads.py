"""Threads on GitHub as people write them, and the issues that have to do with each."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum

from knowngood.domain.issue import Issue, LinkKind

Projects = Mapping[str, str]
"""Repositories by their short names, in small letters: `triton` is `triton-lang/triton`."""

_ALSO_CALLED: Mapping[str, str] = {
    "torch": "pytorch/pytorch",
    "pytorch": "pytorch/pytorch",
    "pt": "pytorch/pytorch",
    "triton": "triton-lang/triton",
    "openai/triton": "triton-lang/triton",
    "xla": "pytorch/xla",
    "torch_xla": "pytorch/xla",
    "torch-xla": "pytorch/xla",
    "ao": "pytorch/ao",
    "torchao": "pytorch/ao",
    "vision": "pytorch/vision",
    "torchvision": "pytorch/vision",
    "transformers": "huggingface/transformers",
}
USUAL = "pytorch/pytorch"
"""The repository of a number that stands alone, where no issue here has it."""

_NEAREST = 3


_MEANS_A_THREAD = (
    "issue",
    "issues",
    "bug",
    "gh",
    "github",
    "pr",
    "pull",
    "report",
    "ticket",
    "see",
    "no",
    "discussion",
)
_ADDRESS = re.compile(
    r"<?(?:https?://)?(?:www\.)?github\.com/([\w.-]{1,60}/[\w.-]{1,100})/(?:issues|pull|discussions)/(\d{1,9})\b\S*",
    re.IGNORECASE,
)
_SHORT = re.compile(r"(?:([\w.-]{1,60})/)?([\w.-]{0,100}?)[ ]?#[ ]?(\d[\do]{0,8})", re.IGNORECASE)
_DASHED = re.compile(r"([a-z][a-z_]*(?:-[a-z][a-z_]*)*)[- ]?(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True)
class Thread:
    """`repository` is `pytorch/pytorch`, or empty where only a number is written."""

    repository: str
    number: str

    @property
    def name(self) -> str:
        return f"{self.repository}#{self.number}" if self.repository else f"#{self.number}"

    @property
    def address(self) -> str:
        return f"https://github.com/{self.repository or USUAL}/issues/{self.number}"

    @property
    def command(self) -> str:
        """The command that adds it to the catalogue, for people who have a repro."""
        project = (self.repository or USUAL).rpartition("/")[2].casefold()
        return f'knowngood new-issue {project}-{self.number} --title "WHAT BREAKS"'


_AROUND = "\"'`<>()[]{}.,;:!?"
_ALIKE = 0.8
_FEWEST_FIGURES = 3  # of a number that stands after a word such as `issue`


def thread_named(text: str, projects: Projects) -> Thread | None:
    """The thread that the whole text names: `#151290`, `pytorch#151290`, `pytorch-151290`, an address. A number alone
    names no thread: it may be anything.
    """
    if match := _ADDRESS.fullmatch(text):
        return Thread(match[1], match[2])
    plain = text.strip(_AROUND)
    if match := _SHORT.fullmatch(plain):
        return _short(match[1] or "", match[2].strip("-_ "), match[3].casefold().replace("o", "0"), projects)
    match = _DASHED.fullmatch(plain)
    name = match[1].casefold() if match else ""
    if match and name in projects:
        return Thread(projects[name], match[2])
    return Thread("", match[2]) if match and name in _MEANS_A_THREAD and len(match[2]) >= _FEWEST_FIGURES else None


def _short(owner: str, name: str, number: str, projects: Projects) -> Thread:
    """A misspelt repository is the one most like it."""
    if owner:
        known = {repository.casefold(): repository for repository in projects.values()}
        near = get_close_matches(f"{owner}/{name}".casefold(), known, 1, _ALIKE)
        return Thread(known[near[0]] if near else f"{owner}/{name}", number)
    near = get_close_matches(name.casefold(), projects, 1, _ALIKE) if name.casefold() not in _MEANS_A_THREAD else []
    return Thread(projects[near[0]] if near else "", number)


class Relation(IntEnum):
    """How a thread belongs to an issue, the closest first."""

    NAMED_BY = 0
    REPORT = 1
    FIX = 2
    EVIDENCE = 3


_RELATIONS = {
    LinkKind.REPORT: Relation.REPORT,
    LinkKind.FIX: Relation.FIX,
    LinkKind.EVIDENCE: Relation.EVIDENCE,
}


class ThreadIndex:
    """`projects` are repositories by their short names, in small letters."""

    def __init__(self, issues: Iterable[Issue]) -> None:
        self._by_number: dict[str, list[tuple[str, str, Relation]]] = defaultdict(list)
        names: dict[str, Counter[str]] = defaultdict(Counter)
        for issue in issues:
            project, _, number = issue.id.rpartition("-")
            if number.isdecimal():
                own = issue.report.name.partition("#")[0] if issue.report else ""
                self._by_number[number].append((issue.id, own.casefold(), Relation.NAMED_BY))
            for link in issue.links:
                repository, sign, link_number = link.name.partition("#")
                if sign and link_number.isdecimal() and "/" in repository:
                    names[repository.rpartition("/")[2].casefold()][repository] += 1
                    self._by_number[link_number].append((issue.id, repository.casefold(), _RELATIONS[link.kind]))
            if issue.report and number.isdecimal() and "#" in issue.report.name:
                names[project.casefold()][issue.report.name.partition("#")[0]] += 1
        self.projects = {name: repositories.most_common(1)[0][0] for name, repositories in names.items()} | dict(
            _ALSO_CALLED
        )

    def find(self, thread: Thread) -> tuple[tuple[str, ...], Relation]:
        """The issues it belongs to most closely, and how; none where no issue here has to do with it."""
        wanted = thread.repository.casefold()
        candidates = [
            (relation, issue)
            for issue, repository, relation in self._by_number.get(thread.number, ())
            if not wanted or repository == wanted
        ]
        closest = min((relation for relation, _ in candidates), default=Relation.EVIDENCE)
        return tuple(sorted({issue for relation, issue in candidates if relation is closest})), closest

    def near(self, number: str) -> tuple[str, ...]:
        """Issues named by a number that differs by a figure or two that changed places."""
        neighbours = [
            (edits(number, known, 1), issue)
            for known, links in self._by_number.items()
            if edits(number, known, 1) <= 1
            for issue, _, relation in links
            if relation is Relation.NAMED_BY
        ]
        return tuple(issue for _, issue in sorted(neighbours)[:_NEAREST])


# -- How many letters two words differ by ------------------------------------------------------------------------------


def edits(text: str, other: str, most: int) -> int:
    """Count letters to add, drop, change, or swap with their neighbour (optimal string alignment); more than `most`
    counts as `most + 1`.
    """
    before: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(text, 1):
        row = [i]
        for j, wanted in enumerate(other, 1):
            cost = min(above[j] + 1, row[-1] + 1, above[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and text[i - 2] == wanted:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return most + 1
        before, above = above, row
    return min(above[-1], most + 1)
