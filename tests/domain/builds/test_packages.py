"""Which rows concern an environment, and which releases of its packages go with a build."""

from collections.abc import Mapping
from datetime import date

import pytest

from knowngood.domain.builds.build import Companion
from knowngood.domain.builds.packages import built_for_another, concerns, named_by, release_for
from knowngood.domain.issue import Issue, Link, LinkKind, Packages, Requires
from knowngood.domain.issue_selectors import Watch, names_of
from tests.make import make_build, make_issue

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


RELEASES = {
    "xla": {"2.5.0": {"3.11"}, "2.5.1": {"3.11"}, "2.7.0": {"3.11"}, "2.9.0": {"3.11", "3.12"}},
    "text": {"2.5.0": {"3.11"}, "2.5.9": {"3.11"}, "2.5.10": {"3.11"}},
    "none": {},
}


@pytest.mark.parametrize(
    ("package", "torch", "python", "release"),
    [
        pytest.param("xla", "2.5.1+cu124", "3.11", "2.5.1", id="the same release"),
        pytest.param("xla", "2.5.0+cu124", "3.11", "2.5.0", id="the same release, though there is a newer one"),
        pytest.param("xla", "2.9.1+cu128", "3.11", "2.9.0", id="of the same minor"),
        pytest.param("xla", "2.9.1+cpu", "3.12", "2.9.0", id="whatever the wheel is built for"),
        pytest.param("xla", "2.7.1+cu126", "3.12", "", id="no wheel for that Python"),
        pytest.param("xla", "2.10.0+cu128", "3.11", "", id="a newer torch"),
        pytest.param("xla", "2.8.0+cu128", "3.11", "", id="a minor that was left out"),
        pytest.param("xla", "2.9.0.dev20250901+cu128", "3.11", "2.9.0", id="a nightly of that minor"),
        pytest.param("text", "2.5.2+cu124", "3.11", "2.5.10", id="the newest by number"),
        pytest.param("none", "2.5.1+cu124", "3.11", "", id="nothing was ever released"),
    ],
)
def test_a_release_goes_with_the_builds_of_its_minor(package: str, torch: str, python: str, release: str) -> None:
    assert release_for(make_build(torch, python=python), RELEASES[package]) == release


XLA_29 = Companion("torch-xla", "2.9.0", "pytorch/xla#1", date(2026, 11, 27))
NO_XLA = Companion("torch-xla", "", "pytorch/xla#1", date(2026, 11, 27))
NEWER = "torch-xla {} is built for torch 2.8, and torch is 2.9.1+cu128: 2.9.0 goes with 2.9.1+cu128 (PyPI, asked 2026-1"
NONE = "torch-xla 2.9.0 is built for torch 2.9, and torch is 2.10.0+cu128: PyPI has none for torch 2.10 (PyPI, asked 20"


@pytest.mark.parametrize(
    ("torch", "companion", "found", "said"),
    [
        pytest.param("2.9.1+cu128", XLA_29, "2.9.0", "", id="of the same minor"),
        pytest.param("2.9.1+cu128", XLA_29, "2.8.1", NEWER.format("2.8.1"), id="of another"),
        pytest.param("2.9.1+cu128", XLA_29, "2.8.0+cxx11", NEWER.format("2.8.0+cxx11"), id="with a local part"),
        pytest.param("2.9.1+cu128", XLA_29, "2.9", "", id="without a patch"),
        pytest.param("2.9.1+cu128", XLA_29, "", "", id="in a version that nobody says"),
        pytest.param("2.9.1+cu128", XLA_29, "nightly", "", id="in no version"),
        pytest.param("2.10.0+cu128", NO_XLA, "2.9.0", NONE, id="where there is none"),
        pytest.param("2.10.0+cu128", NO_XLA, "2.10.0", "", id="where somebody made one"),
    ],
)
def test_a_package_of_another_minor_is_said_with_its_source(
    torch: str, companion: Companion, found: str, said: str
) -> None:
    build = make_build(torch, companions=(companion,))
    told = list(built_for_another(build, {"torch-xla": found, "numpy": "2.2.6"}))
    assert [one.startswith(said) for one in told] == [True] * bool(said)
    assert all(one.endswith("a claim, not measured: pytorch/xla#1)") for one in told)
    assert list(built_for_another(build, {"numpy": "2.2.6"})) == []
