import pytest

from knowngood.domain.measuring.isolation import Isolation, isolation_of, too_little

MEANS: dict[str, tuple[tuple[str, ...], Isolation]] = {
    "nothing was recorded": ((), Isolation.NONE),
    "evidence of the first releases": (("process", "no-network", "forked"), Isolation.NETWORK),
    "limits alone": (("process",), Isolation.PROCESS),
    "a network of its own and the host's files": (("process", "no-network"), Isolation.NETWORK),
    "filters beside an open network": (("process", "seccomp", "landlock"), Isolation.PROCESS),
    "filters beside open files": (("process", "no-network", "seccomp"), Isolation.NETWORK),
    "namespaces": (("process", "no-network", "namespaces"), Isolation.NAMESPACES),
    "one filter": (("process", "no-network", "namespaces", "seccomp"), Isolation.FILTERED),
    "the other filter, in any order": (("landlock", "namespaces", "no-network", "process"), Isolation.FILTERED),
    "namespaces that nobody limits": (("no-network", "namespaces"), Isolation.NONE),
}


@pytest.mark.parametrize("case", MEANS)
def test_the_level_follows_from_the_means(case: str) -> None:
    sandbox, expected = MEANS[case]
    assert isolation_of(sandbox) is expected


def test_each_level_is_above_those_before_it() -> None:
    assert [level.rank for level in Isolation] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("wanted", Isolation, ids=str)
@pytest.mark.parametrize("reached", Isolation, ids=str)
def test_a_worker_refuses_below_what_it_must(reached: Isolation, wanted: Isolation) -> None:
    problem = too_little(reached, wanted, "user namespaces are off")
    assert bool(problem) == (list(Isolation).index(reached) < list(Isolation).index(wanted))
    if problem:
        assert f"'{reached}' (user namespaces are off)" in problem
        assert f"asks for '{wanted}'" in problem
