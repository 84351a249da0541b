"""The pytest plugin `knowngood`: tests that a known issue breaks are expected to fail where it fails.

Every run of pytest where this package is installed imports this file: it imports pytest alone, and the rest when a mark
or the option is used.
"""

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from knowngood.domain.errors import KnownGoodError

if TYPE_CHECKING:
    from knowngood.gate.in_code.finding import Finding

_MARK = "knowngood"
_ENDS_THE_PROCESS = frozenset({"signal", "hang"})
_ACTIONS = ("xfail", "skip")
_MARKER = (
    'knowngood(issue, action="xfail", hardware=None, raises=None): where the issue fails in this environment the test '
    'is expected to fail (xfail, strict), or with action="skip", or where the issue ends or hangs the process, skipped'
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("knowngood").addoption(
        "--knowngood-watch",
        action="append",
        default=[],
        metavar="ISSUES",
        help="print in the header what these issues (ids, comma-separated) do in this environment",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Asked of the controller alone where there are workers."""
    written = ",".join(config.getoption("--knowngood-watch")).split(",")
    findings = [_find(issue.strip(), "--knowngood-watch") for issue in written if issue.strip()]
    return [f"knowngood: {finding}" for finding in findings]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """A mark that cannot be understood is an error of collecting its file: one that xdist's workers can tell of too."""
    report = yield
    items = [item for item in report.result or () if isinstance(item, pytest.Item)]
    try:
        for item in items:
            for mark in item.iter_markers(_MARK):
                _read(mark, item.nodeid)
    except pytest.UsageError as error:
        report.outcome, report.longrepr, report.result = "failed", str(error), []
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """After others have left out tests and added marks."""
    for item in items:
        for mark in item.iter_markers(_MARK):
            _expect(item, mark)


def _expect(item: pytest.Item, mark: pytest.Mark) -> None:
    finding, how = _read(mark, item.nodeid)
    if not finding.affected:
        item.add_report_section("call", _MARK, f"{finding}; so the test runs as any other")
    elif how.get("action") == "skip" or finding.signature in _ENDS_THE_PROCESS:
        item.add_marker(pytest.mark.skip(reason=str(finding)))
    else:
        raises = {"raises": how["raises"]} if "raises" in how else {}
        item.add_marker(pytest.mark.xfail(reason=str(finding), strict=True, **raises))


def _read(mark: pytest.Mark, where: str) -> "tuple[Finding, Mapping[str, Any]]":
    """The finding that is asked for, and how. Raises UsageError."""
    if len(mark.args) != 1 or not isinstance(mark.args[0], str) or set(mark.kwargs) - {"action", "hardware", "raises"}:
        raise pytest.UsageError(f"{where}: the mark is written {_MARKER.partition(':')[0]}")
    if (action := mark.kwargs.get("action", _ACTIONS[0])) not in _ACTIONS:
        raise pytest.UsageError(f'{where}: knowngood: action="{action}" is none of {", ".join(_ACTIONS)}')
    return _find(mark.args[0], where, mark.kwargs.get("hardware")), mark.kwargs


def _find(issue: str, where: str, hardware: str | None = None) -> "Finding":
    from knowngood.gate.in_code.service import finding

    try:
        return finding(issue, hardware=hardware)
    except KnownGoodError as error:
        raise pytest.UsageError(f"{where}: knowngood: {error}") from None
