"""How long a run will still take, by what is done of it. Pure; the one clock of terminal, page and API."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from knowngood.domain.grouping import grouped
from knowngood.domain.measuring.planning import ENVIRONMENT_S, GUESS_S

Key = tuple[str, str, str]  # issue, arm, variant
Span = tuple[float, float]  # seconds on any one clock: from, to
_Timed = tuple[Key, Span]

_NOTHING_S = 0.01  # an arm that ended so soon was never started: its environment could not be made


@dataclass(frozen=True)
class JobAt:
    """How far one job is. `environment` is the time in which its environment was made or found, up to now where that
    still goes on (`is_ready` is False), None before it begins; `done` are the arms that have ended, `running` those
    that go on, up to now, and `to_do` the others.
    """

    build: str
    is_over: bool
    is_ready: bool
    environment: Span | None
    to_do: Sequence[Key]
    running: Sequence[_Timed]
    done: Sequence[_Timed]


def seconds_left(
    jobs: Sequence[JobAt], durations: Mapping[Key, float], environment_s: float | None, slots: int = 0
) -> float | None:
    """The environments and the arms that are left, each as long as its like in this run, as many at once as until now.
    Before the first arm has ended, as long as before this run and on so many `slots`; None where these are not known.

    `durations` are seconds of attempts before this run, and `environment_s` of making an environment (None: not timed).
    """
    done = [arm for job in jobs for arm in job.done if _s(arm[1]) > _NOTHING_S]
    if not done:
        return _arms_s(jobs, done, durations) / slots + _environments_s(jobs, environment_s) if slots else None
    arms = [span for _, span in (*done, *(arm for job in jobs for arm in job.running))]
    environments = [job.environment for job in jobs if job.environment]
    together = _width([*arms, *environments])
    alone = _width(arms) + _width(environments)
    overlap = together / alone if alone else 1.0
    return overlap * (
        _arms_s(jobs, done, durations) / _beside(arms) + _environments_s(jobs, environment_s) / _beside(environments)
    )


def _arms_s(jobs: Sequence[JobAt], done: Sequence[_Timed], before: Mapping[Key, float]) -> float:
    """Seconds until the last arm has ended, one after another. One that runs longer than its like counts as half done:
    otherwise nothing would account for the slow arms while the quick ones end.
    """
    going_on = [(key, _s(span)) for job in jobs if not job.is_over for key, span in job.running]
    known = [(key, _s(span)) for key, span in done]
    known += [(key, 2 * spent) for key, spent in going_on if spent > _expected(known, before)(key)]
    expected = _expected(known, before)
    waiting = sum(expected(key) for job in jobs if not job.is_over for key in job.to_do)
    return waiting + sum(max(expected(key) - spent, 0.0) for key, spent in going_on)


def _expected(known: Sequence[tuple[Key, float]], before: Mapping[Key, float]) -> Callable[[Key], float]:
    """The seconds an arm will take: as in this run with another build, else as before at this run's pace, else as other
    arms of its issue, else as those of all issues here.
    """
    own, of_issue = _means(known), _means((key[0], seconds) for key, seconds in known)
    timed = [(seconds, before[key]) for key, seconds in known if key in before]
    usual = fmean(before.values()) if before else GUESS_S
    # As if one more arm had taken what it always takes: the first one alone may have ended at once.
    pace = (sum(now for now, _ in timed) + usual) / (sum(then for _, then in timed) + usual)
    of_all = fmean(of_issue.values()) if of_issue else GUESS_S

    def expected(key: Key) -> float:
        if key in own:
            return own[key]
        return before[key] * pace if key in before else of_issue.get(key[0], of_all)

    return expected


def _environments_s(jobs: Sequence[JobAt], before_s: float | None) -> float:
    """Seconds until the last environment is there, one after another. The first of a build brings torch with it, and
    may be downloaded; further ones share nearly all with it.
    """
    took: dict[bool, list[float]] = {True: [], False: []}
    waiting: list[tuple[bool, float]] = []
    seen: set[str] = set()
    for job in sorted(jobs, key=lambda job: job.environment or (float("inf"), 0.0)):
        is_first, spent = job.build not in seen, _s(job.environment) if job.environment else 0.0
        seen.add(job.build)
        if job.is_ready and job.environment:
            took[is_first].append(spent)
        elif not job.is_over and (job.to_do or job.running):
            waiting.append((is_first, spent))
    usual = ENVIRONMENT_S if before_s is None else before_s
    first = fmean(took[True]) if took[True] else usual
    slowest = max((spent for is_first, spent in waiting if is_first), default=0.0)
    first = 2 * slowest if slowest > first else first  # half done, as an arm that runs longer than its like
    expected = {True: first, False: fmean(took[False]) if took[False] else min(first, usual)}
    return sum(max(expected[is_first] - spent, 0.0) for is_first, spent in waiting)


def _means(pairs: Iterable[tuple[object, float]]) -> dict[object, float]:
    groups = grouped(pairs, lambda pair: pair[0])
    return {name: fmean(seconds for _, seconds in every) for name, every in groups.items()}


def _s(span: Span) -> float:
    return max(0.0, span[1] - span[0])


def _beside(spans: Sequence[Span]) -> float:
    """How many went on at once, on the mean."""
    width = _width(spans)
    return sum(map(_s, spans)) / width if width else 1.0


def _width(spans: Iterable[Span]) -> float:
    """The time in which any of them went on."""
    width, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        width += max(0.0, end - max(begin, until))
        until = max(until, end)
    return width
