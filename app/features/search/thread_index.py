"""Which issues have to do with a thread upstream: as their own report, as another's, as a fix, as evidence. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from enum import IntEnum

from knowngood.app.domain.issue import Issue, LinkKind
from knowngood.app.features.search.notation import Thread
from knowngood.app.features.search.word_index import edits

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
                repository, sign, told = link.name.partition("#")
                if sign and told.isdecimal() and "/" in repository:
                    names[repository.rpartition("/")[2].casefold()][repository] += 1
                    self._by_number[told].append((issue.id, repository.casefold(), _RELATIONS[link.kind]))
            if issue.report and number.isdecimal() and "#" in issue.report.name:
                names[project.casefold()][issue.report.name.partition("#")[0]] += 1
        self.projects = {name: found.most_common(1)[0][0] for name, found in names.items()} | dict(_ALSO_CALLED)

    def find(self, thread: Thread) -> tuple[tuple[str, ...], Relation]:
        """The issues it belongs to most closely, and how; none where no issue here has to do with it."""
        wanted = thread.repository.casefold()
        found = [
            (relation, issue)
            for issue, repository, relation in self._by_number.get(thread.number, ())
            if not wanted or repository == wanted
        ]
        closest = min((relation for relation, _ in found), default=Relation.EVIDENCE)
        return tuple(sorted({issue for relation, issue in found if relation is closest})), closest

    def near(self, number: str) -> tuple[str, ...]:
        """Issues named by a number that differs by a figure or two that changed places."""
        found = [
            (edits(number, known, 1), issue)
            for known, links in self._by_number.items()
            if edits(number, known, 1) <= 1
            for issue, _, relation in links
            if relation is Relation.NAMED_BY
        ]
        return tuple(issue for _, issue in sorted(found)[:_NEAREST])
