"""Which rows concern an environment: those of a package concern whoever has it. Source: DECISIONS 65."""

from collections.abc import Iterable, Mapping

from knowngood.app.domain.builds.package_names import canonical_package
from knowngood.app.domain.issue import Issue
from knowngood.app.domain.issue_selectors import Names, Watch, meant_by


def concerns(issue: Issue, packages: Mapping[str, str] | None, *, named: bool) -> bool:
    """Whether a watched row counts. `packages` are those of the environment by canonical name (None: nothing is known
    of them); `named` says that the question names this very row.
    """
    package = issue.requires.package
    if not package:
        return True
    return named if packages is None else package in packages


def named_by(watch: Watch, issues: Iterable[Issue], names: Names) -> frozenset[str]:
    """The ids of those `issues` that `watch`, its lists filled in, names by themselves or by the package that they
    concern.
    """
    ids = {id_ for text in watch.issues for id_ in meant_by(text, names)}
    packages = {canonical_package(text) for text in watch.packages}
    return frozenset(issue.id for issue in issues if issue.id in ids or issue.requires.package in packages)
