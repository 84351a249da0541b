"""Rulings to write down in every form: a plausible one, and any at all with texts that would break a careless form."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from knowngood.domain.issue import Severity
from knowngood.domain.verdicts.verdict import Verdict, WorkaroundVerdict
from knowngood.domain.vocabulary import StatusLabel
from knowngood.gate.decision import Decision, MeasuredWorkaround, Reason, Ruling
from knowngood.gate.policy import Effect
from tests.make import HARDWARE, NOON

SERVER = "https://knowngood.example/team"

NO_ALIASING = MeasuredWorkaround(
    "no_aliasing",
    "Turn buffer donation off",
    WorkaroundVerdict.EFFECTIVE,
    "About a second copy of all parameters.",
    "In the environment, before the process starts:\n\n```bash\nexport XLA_ENABLE_PARAM_ALIASING=0\n```\n",
)
OUT_OF_PLACE = MeasuredWorkaround(
    "out_of_place", "Update out of place", WorkaroundVerdict.EFFECTIVE, "", "```python\nt1 = t1 + t0\n```\n"
)
CLONE = MeasuredWorkaround("clone", "Clone the tensor first", WorkaroundVerdict.INEFFECTIVE)


def make_reason(issue: str = "xla-8464", effect: Effect = Effect.BLOCK, **changes: Any) -> Reason:
    fields: dict[str, Any] = {
        "issue": issue,
        "title": "PyTorch/XLA reuses an executable that donates a live buffer: the process aborts",
        "component": "PyTorch/XLA",
        "severity": Severity.HIGH,
        "silent": False,
        "build": "torch-2.5.1+cu124",
        "hardware": HARDWARE,
        "verdict": Verdict.NOT_AFFECTED if effect is Effect.PASS else Verdict.AFFECTED,
        "effect": effect,
        "why": "passes" if effect is Effect.PASS else "fails here, and the policy blocks what fails",
        "measured_at": NOON - timedelta(days=3),
        "age_days": 3,
        "workarounds": () if effect is Effect.PASS else (NO_ALIASING, OUT_OF_PLACE, CLONE),
        "fixed_in": "" if effect is Effect.PASS else "(2.5.1, 2.6.0]",
        "first_fixed": "" if effect is Effect.PASS else "torch-2.6.0+cu124",
        "evidence_url": f"/cells/{issue}/torch-2.5.1%2Bcu124?hardware={HARDWARE}",
    }
    made = {**fields, **changes}
    helps = any(one.verdict == "effective" for one in made["workarounds"])
    failing = StatusLabel.WORKAROUND if helps else StatusLabel.FAILS
    return Reason(**{"sign": StatusLabel.PASSES if made["verdict"] is Verdict.NOT_AFFECTED else failing, **made})


def make_ruling(*reasons: Reason, **changes: Any) -> Ruling:
    """Of these reasons, with the decision and counts that follow from them."""
    effects = [reason.effect for reason in reasons]
    decision = Decision.PASS
    if Effect.BLOCK in effects:
        decision = Decision.BLOCK
    elif Effect.INSUFFICIENT in effects or not reasons:
        decision = Decision.INSUFFICIENT
    fields: dict[str, Any] = {
        "decision": decision,
        "why": f"{effects.count(Effect.BLOCK)} of {len(reasons)} watched issues blocks torch 2.5.1 (CUDA 12.4)",
        "build": "torch-2.5.1+cu124",
        "asked": "torch 2.5.1 from PyPI, Triton 3.1.0, Python 3.11",
        "nearest": (),
        "hardware": (HARDWARE,),
        "reasons": reasons,
        "notes": (),
        "counts": {effect: effects.count(effect) for effect in Effect},
        "decided_at": NOON,
        "known_at": NOON - timedelta(minutes=5),
    }
    return Ruling(**{**fields, **changes})


BLOCKED = make_ruling(
    make_reason(),
    make_reason("pytorch-1", Effect.WARN, silent=True, workarounds=(), stale=True, age_days=200),
    make_reason("pytorch-2", Effect.PASS),
    make_reason("pytorch-3", Effect.PASS, verdict=Verdict.NOT_APPLICABLE, age_days=None, measured_at=None),
    make_reason(
        "pytorch-4",
        Effect.PASS,
        verdict=Verdict.AFFECTED,
        ignored="not used here (ann, until 2026-12-31)",
        why="ignored",
    ),
    notes=("assumed: every measured hardware, the worst counts",),
)
UNTESTED = make_ruling(
    *(
        make_reason(
            id_,
            Effect.INSUFFICIENT,
            build="",
            hardware="",
            verdict=Verdict.NOT_RUN,
            workarounds=(),
            evidence_url=None,
        )
        for id_ in ("pytorch-1", "pytorch-2")
    ),
    build=None,
    nearest=("torch-2.5.1+cu124", "torch-2.6.0+cu124"),
    why="not tested: torch 2.5.2; nearest tested builds are torch 2.5.1 (CUDA 12.4), torch 2.6.0 (CUDA 12.4)",
)

_NASTY = (
    "",
    "]]>",
    "a | b \\| c \\",
    "`code` ``` ~~~",
    "::error file=x,line=1::boo",
    "##[error]boo",
    "%0A::warning::x %25 %",
    "a\r\n\r\nb\n# c\n- d",
    "<!-- <details> <script>alert(1)</script> </td>",
    "</testcase></testsuite>&amp;&#10;",
    "nul \x00 bell \x07 escape \x1b[31mred\x1b[0m",
    "\u202eright to left\u202c \u2028 \u2066",
    "emoji 👩‍🔬 中文 é",
    "[link](javascript:alert(1)) ![img](x) @torch #123 {0} $x$",
    "***bold*** __b__ ~~s~~ 1. - + > #",
    "half a pair \ud800 and \ufffe",
    " " * 30 + "x" * 200,
    "{% raw %} ${{ github.token }}",
)
texts = st.one_of(st.sampled_from(_NASTY), st.text(st.characters(exclude_categories=()), max_size=40))
"""Any text at all, half surrogate pairs too."""

_snippets = st.one_of(
    texts,
    st.builds("{}\n\n```python\n{}\n```\n{}".format, texts, texts, texts),
    st.builds("> ~~~~\n{}\n````{}\n{}\n".format, texts, texts, texts),
)
_moments = st.none() | st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
_paths = st.sampled_from(["", "/cells/a-1/torch-2.6.0%2Bcu124?hardware=cpu-x86_64", "/issues/a-1"])

workarounds = st.builds(
    MeasuredWorkaround,
    id=texts,
    title=texts,
    verdict=st.sampled_from(WorkaroundVerdict),
    trade_off=texts,
    snippet=_snippets,
)
reasons = st.builds(
    Reason,
    issue=texts,
    title=texts,
    component=texts,
    severity=st.sampled_from(Severity),
    silent=st.booleans(),
    build=texts,
    hardware=texts,
    verdict=st.sampled_from(Verdict),
    effect=st.sampled_from(Effect),
    why=texts,
    measured_at=_moments,
    age_days=st.none() | st.integers(0, 10_000),
    stale=st.booleans(),
    workarounds=st.lists(workarounds, max_size=3).map(tuple),
    applied=st.lists(texts, max_size=2).map(tuple),
    ignored=texts,
    fixed_in=texts,
    first_fixed=texts,
    evidence_url=_paths,
    is_new=st.none() | st.booleans(),
)
rulings = st.builds(
    Ruling,
    decision=st.sampled_from(Decision),
    why=texts,
    build=st.none() | texts,
    asked=texts,
    nearest=st.lists(texts, max_size=3).map(tuple),
    hardware=st.lists(texts, max_size=2).map(tuple),
    reasons=st.lists(reasons, max_size=4).map(tuple),
    notes=st.lists(texts, max_size=2).map(tuple),
    counts=st.fixed_dictionaries({effect: st.integers(0, 9) for effect in Effect}),
    decided_at=_moments,
    known_at=_moments,
)
