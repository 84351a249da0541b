from typing import Any

import pytest

from knowngood.domain.errors import BadRequest, UnknownIssue
from knowngood.domain.issue import Issue, Link, LinkKind, Packages, Severity
from knowngood.domain.issue_selectors import Watch, find_issue, find_issues, meant_by, names_of, watched_issues
from tests.make import make_issue


def reported_at(url: str) -> tuple[Link, ...]:
    return (
        Link(LinkKind.REPORT, url, "the report"),
        Link(LinkKind.FIX, "https://github.com/org/fix/pull/9", "the fix"),
    )


ISSUES = {
    issue.id: issue
    for issue in (
        make_issue(
            "xla-8464",
            component="PyTorch/XLA",
            severity=Severity.CRITICAL,
            links=reported_at("https://github.com/pytorch/xla/issues/8464"),
            packages=Packages(requirements=("torch_xla=={torch}",), per_release={"2.1": ("Other.Thing==1.0",)}),
        ),
        make_issue(
            "pytorch-151290", links=reported_at("https://github.com/pytorch/pytorch/issues/151290#issuecomment-1")
        ),
        make_issue("fla-160", links=reported_at("https://github.com/fla-org/flash-linear-attention/issues/160")),
        make_issue("forum-1", severity=Severity.LOW, links=reported_at("https://discuss.example.org/t/1")),
    )
}
NAMES = names_of(ISSUES)


def watched(catalogue: dict[str, Issue] = ISSUES, /, **watch: Any) -> list[str]:
    found, _ = watched_issues(Watch(**watch), catalogue, names_of(catalogue))
    return [issue.id for issue in found]


@pytest.mark.parametrize(
    ("text", "id_"),
    [
        ("xla-8464", "xla-8464"),
        (" XLA-8464 ", "xla-8464"),
        ("pytorch/xla#8464", "xla-8464"),
        ("PyTorch/XLA#8464", "xla-8464"),
        ("https://github.com/pytorch/xla/issues/8464", "xla-8464"),
        ("github.com/pytorch/xla/issues/8464#issuecomment-3", "xla-8464"),
        ("xla#8464", "xla-8464"),
        ("#8464", "xla-8464"),
        ("#846", None),
        ("#xla-8464", None),
        ("all", None),
        ("pytorch/pytorch#151290", "pytorch-151290"),
        ("fla-org/flash-linear-attention#160", "fla-160"),
        ("someone/fla#160", "fla-160"),
        ("https://github.com/org/fix/pull/9", None),
        ("xla-846", None),
        ("8464", "xla-8464"),
        ("", None),
        ("#", None),
    ],
)
def test_an_issue_is_meant_by_its_id_and_by_its_report(text: str, id_: str | None) -> None:
    assert meant_by(text, NAMES) == ((id_,) if id_ else ())


@pytest.mark.parametrize(
    ("watch", "ids"),
    [
        ({"issues": ("fla-160",)}, ["fla-160"]),
        ({"components": ("pytorch/xla",)}, ["xla-8464"]),
        ({"packages": ("torch-xla",)}, ["xla-8464"]),
        ({"packages": ("Torch_XLA",)}, ["xla-8464"]),
        ({"packages": ("other-thing",)}, ["xla-8464"]),
        ({"packages": ("torch",)}, []),
        ({"severity": Severity.CRITICAL}, ["xla-8464"]),
        ({"severity": Severity.HIGH}, ["fla-160", "pytorch-151290", "xla-8464"]),
        ({"issues": ("forum-1",), "severity": Severity.CRITICAL}, ["forum-1", "xla-8464"]),
        ({"issues": ("xla-8464", "pytorch/xla#8464")}, ["xla-8464"]),
        ({"issues": ("all",)}, ["fla-160", "forum-1", "pytorch-151290", "xla-8464"]),
        ({"issues": ("zzz", " ALL ")}, ["fla-160", "forum-1", "pytorch-151290", "xla-8464"]),
    ],
)
def test_everything_that_a_watch_names_counts_once(watch: dict[str, Any], ids: list[str]) -> None:
    assert watched(**watch) == ids


@pytest.mark.parametrize(
    ("watch", "words"),
    [
        ({"issues": ("xla-8465", "fla-160")}, 'no issue is called "xla-8465" here; nearest: xla-8464'),
        ({"issues": ("15129",)}, 'no issue is called "15129" here; nearest: pytorch-151290'),
        ({"components": ("Inductr C++",)}, 'no component is called "Inductr C++" here; nearest: Inductor C++'),
        ({"issues": ("zzz",)}, 'no issue is called "zzz" here'),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest(watch: dict[str, Any], words: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        watched(**watch)
    assert str(refusal.value).startswith(words)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["pytorch/xla#8464", "FLA-160"], ["xla-8464", "fla-160"]),
        (["fla-160", "xla-8464", "fla-160"], ["xla-8464", "fla-160"]),
        (["zzz", "all"], ["xla-8464", "pytorch-151290", "fla-160", "forum-1"]),
        ([], []),
    ],
)
def test_issues_are_found_in_the_order_of_the_catalogue(written: list[str], ids: list[str]) -> None:
    assert [issue.id for issue in find_issues(written, ISSUES)] == ids


def test_one_issue_is_found_or_refused_with_what_may_be_meant() -> None:
    twins = {**ISSUES, "vision-8464": make_issue("vision-8464", links=())}
    assert find_issue("#160", ISSUES).id == "fla-160"
    with pytest.raises(UnknownIssue, match="is more than one issue here; candidates: xla-8464, vision-8464"):
        find_issue("#8464", twins)
    with pytest.raises(UnknownIssue, match='"all" is every issue here; name one'):
        find_issue("all", ISSUES)
    with pytest.raises(UnknownIssue, match='no issue is called "fla160" here; nearest: fla-160') as refused:
        find_issue("fla160", ISSUES)
    assert (refused.value.problem, refused.value.nearest[0]) == ('no issue is called "fla160" here', "fla-160")


def test_ten_thousand_unknown_names_are_refused_at_once_in_a_short_sentence() -> None:
    issues = {f"toy-{n}": make_issue(f"toy-{n}", links=()) for n in range(1000)}
    with pytest.raises(BadRequest) as refusal:
        watched(issues, issues=tuple(f"no-{n}{'x' * 100}" for n in range(10_000)))
    assert "and 9997 more here" in str(refusal.value)
    assert len(str(refusal.value)) < 500
