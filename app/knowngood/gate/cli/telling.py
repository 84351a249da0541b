"""A ruling that was made in this process, in the forms that were asked for."""

from collections.abc import Sequence

from knowngood.gate.cli.result import Answer
from knowngood.gate.decision import Ruling
from knowngood.gate.renderers import Form, RenderOptions, render
from knowngood.gate.request import GateRequest


def told(
    ruling: Ruling, asked: GateRequest, forms: Sequence[str], *, advisory: bool, remarks: Sequence[str] = ()
) -> Answer:
    how = RenderOptions(where=asked.environment.name if asked.environment else "", advisory=advisory)
    return Answer(ruling.decision.value, {form: render(ruling, Form(form), how) for form in forms}, remarks)
