"""Which rows concern an environment."""

from collections.abc import Mapping

import pytest

from knowngood.app.domain.builds.packages import concerns, named_by
from knowngood.app.domain.issue import Issue, Link, LinkKind, Packages, Requires
from knowngood.app.domain.issue_selectors import Watch, names_of
from tests.make import make_issue

HERE = {"torchao": "0.12.0", "numpy": "2.2.6"}
PLAIN = make_issue("plain-1")
AO = make_issue(
    "ao-2901",
    requires=Requires(package="torchao"),
    packages=Packages(("torchao==0.12.0",)),
    links=(Link(LinkKind.REPORT, "https://github.com/pytorch/ao/issues/2901", "ao#2901"),),
)
HELPED = make_issue("helped-1", packages=Packages(("torchao==0.12.0",)))


@pytest.mark.parametrize(
    ("issue", "packages", "named", "counts"),
    [
        pytest.param(AO, HERE, False, True, id="the environment has it"),
        pytest.param(AO, {"numpy": "2.2.6"}, False, False, id="it does not"),
        pytest.param(AO, {"numpy": "2.2.6"}, True, False, id="it does not, whatever is named"),
        pytest.param(AO, {}, True, False, id="it has none at all"),
        pytest.param(AO, None, False, False, id="nothing is known of it"),
        pytest.param(AO, None, True, True, id="nothing is known, and the row is named"),
        pytest.param(HELPED, None, False, True, id="a package that only helps the script"),
        pytest.param(PLAIN, {}, False, True, id="no package"),
    ],
)
def test_a_row_of_a_package_counts_for_who_has_it(
    issue: Issue, packages: Mapping[str, str] | None, named: bool, counts: bool
) -> None:
    assert concerns(issue, packages, named=named) is counts


@pytest.mark.parametrize(
    ("watch", "named"),
    [
        (Watch(), set()),
        (Watch(issues=("ao-2901",)), {"ao-2901"}),
        (Watch(issues=("pytorch/ao#2901",)), {"ao-2901"}),
        (Watch(packages=("TorchAO",)), {"ao-2901"}),
        (Watch(components=("Inductor C++",)), set()),
        (Watch(issues=("plain-1",)), {"plain-1"}),
    ],
)
def test_a_row_is_named_by_its_id_its_report_or_its_package(watch: Watch, named: set[str]) -> None:
    rows = {issue.id: issue for issue in (PLAIN, AO, HELPED)}
    assert named_by(watch, rows.values(), names_of(rows)) == named
