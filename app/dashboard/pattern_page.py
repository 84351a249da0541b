"""`/pieces`: every visual piece that pages are made of, once, for whoever changes how they look."""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

from fastapi import APIRouter, Response
from markupsafe import Markup

from knowngood.app.dashboard.evidence.reproduce import Commands
from knowngood.app.dashboard.issues.workarounds import Elsewhere, WorkaroundView
from knowngood.app.domain.builds.build import DEFAULT_PYTHON, Build
from knowngood.app.domain.verdicts.matrix import Column
from knowngood.app.domain.verdicts.verdict import WorkaroundVerdict
from knowngood.app.domain.vocabulary import WORKAROUNDS, StatusLabel
from knowngood.app.web.html.grid import CellGlyph, Choice, drawn, heads_of
from knowngood.app.web.html.markdown import markdown, marked
from knowngood.app.web.html.status_labels import LEGEND, LegendEntry
from knowngood.app.web.request_context import Context, RequestContext

router = APIRouter(include_in_schema=False)


class Ink(StrEnum):
    """The custom properties of app.css that carry a meaning of their own."""

    PAPER = "paper"
    SHEET = "sheet"
    INK = "ink"
    QUIET = "quiet"
    RULE = "rule"
    STRONG_RULE = "strong-rule"
    ACCENT = "accent"
    LIT = "lit"


@dataclass(frozen=True)
class PiecesPage:
    legend: tuple[LegendEntry, ...]
    squares: Markup
    inferred_squares: Markup
    old_squares: Markup
    inks: tuple[Ink, ...]
    choices: tuple[Choice, ...]
    workarounds: tuple[WorkaroundView, ...]
    elsewhere: tuple[Elsewhere, ...]
    commands: Commands
    prose: Markup
    log: Markup
    long_word: str
    moments: tuple[datetime, ...]


@router.get("/pieces")
def pieces(context: Context) -> Response:
    return context.page("pieces.html", pieces_page(context))


def pieces_page(context: RequestContext) -> PiecesPage:
    return PiecesPage(
        legend=LEGEND,
        squares=_squares(context),
        inferred_squares=_squares(context, ground="cpu-x86_64"),
        old_squares=_squares(context, is_stale=True),
        inks=tuple(Ink),
        choices=(Choice("cpu-x86_64", "/pieces", is_chosen=True), Choice("cuda-sm_90", "/pieces", is_chosen=False)),
        workarounds=tuple(_workaround(context, rank, verdict) for rank, verdict in enumerate(WorkaroundVerdict, 1)),
        elsewhere=(Elsewhere("older", "Stay on 2.5", "does not apply to this build: torch <2.6"),),
        commands=Commands(ours="knowngood run --builds torch-2.7.1+cu126 --issues pytorch-151290", plain=_BY_HAND),
        prose=markdown(_PROSE),
        log=marked(_LOG, _LINE),
        long_word="a_name_without_any_place_to_break_it_" * 8,
        moments=tuple(context.now - timedelta(seconds=seconds) for seconds in (5, 600, 9000, 400_000)),
    )


def _squares(context: RequestContext, *, is_stale: bool = False, ground: str = "") -> Markup:
    """One for each sign, under the columns of a strip. They lead to this page: their cells are none."""
    heads = heads_of([Column((_build(f"2.{minor}.0"),)) for minor, _ in enumerate(StatusLabel, 4)], ())
    squares = (
        CellGlyph(
            "pytorch-151290",
            "cpu-x86_64",
            head,
            head.id,
            sign,
            is_stale,
            "2/6" if sign is StatusLabel.FLAKY else "",
            ground,
        )
        for sign, head in zip(StatusLabel, heads, strict=True)
    )
    led_here = re.sub(r'href="/cells/[^"]*"', 'href="/pieces"', drawn(squares, "li", context.language))
    return Markup(led_here)  # noqa: S704 - as drawn, and an address of ours


def _build(release: str) -> Build:
    return Build(
        id=f"torch-{release}+cu126",
        torch=f"{release}+cu126",
        requirement=release,
        cuda="12.6",
        triton="3.3.1",
        pinned_triton="3.3.1",
        python=DEFAULT_PYTHON,
        origin="default",
        as_of=date(2026, 1, 1),
    )


def _workaround(context: RequestContext, rank: int, verdict: WorkaroundVerdict) -> WorkaroundView:
    helps = verdict is WorkaroundVerdict.EFFECTIVE
    return WorkaroundView(
        id=verdict.value,
        title="Make the mask eagerly",
        body=markdown("Compile what comes after it:\n\n```python\nmask = make_mask(n)\n```"),
        trade_off="slower once, at the first step",
        verdict=verdict,
        sign=WORKAROUNDS[verdict].label,
        word=context.say(WORKAROUNDS[verdict].word),
        note="" if helps else "the arm ended with the issue's own signature",
        rank=rank if helps else 0,
    )


_BY_HAND = """\
uv venv --python 3.11 env
uv pip install --python env torch==2.7.1
env/bin/python pytorch-151290.py --arm baseline
"""
_LINE = "error: conflicting declaration 'int64_t tmp_acc0_arr [2]'"
_LOG = f"compiling /tmp/torchinductor/cabc.cpp\n{_LINE}\nnote: previous declaration as 'int32_t tmp_acc0_arr [2]'\n"
_PROSE = """\
A paragraph with `inline code`, **strong** and *soft* words and [a link](https://example.org).

> A quotation.

1. first
2. second

```python
def baseline(block: int = 1024) -> dict[str, int]:
    # what it observed
    return {"block": block}
```

| setting | seconds |
| --- | --- |
| `max_autotune` | 12.5 |
"""
