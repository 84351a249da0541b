"""The forms that an answer of the gate comes in, and the media type of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from knowngood.app.features.gate.decision import Ruling
from knowngood.app.features.gate.renderers.github import answer_github, github_summary
from knowngood.app.features.gate.renderers.json import dump_decision
from knowngood.app.features.gate.renderers.junit import answer_junit
from knowngood.app.features.gate.renderers.markdown import answer_markdown
from knowngood.app.features.gate.renderers.sarif import answer_sarif
from knowngood.app.features.gate.renderers.text import answer_text


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    GITHUB = "github"
    MARKDOWN = "markdown"
    SUMMARY = "summary"


MEDIA = {
    Form.TEXT: "text/plain; charset=utf-8",
    Form.JSON: "application/json",
    Form.JUNIT: "application/xml",
    Form.SARIF: "application/sarif+json",
    Form.GITHUB: "text/plain; charset=utf-8",
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.SUMMARY: "text/markdown; charset=utf-8",
}


@dataclass(frozen=True)
class RenderOptions:
    """Options of an answer beside the ruling. `base` is the server's address, before the paths of evidence; `where` the
    file that the environment stands in; `advisory` makes warnings of what would be errors.
    """

    base: str = ""
    where: str = ""
    advisory: bool = False


_RENDERERS: Mapping[Form, Callable[[Ruling, RenderOptions], str]] = {
    Form.TEXT: lambda ruling, options: answer_text(ruling, options.base),
    Form.JSON: lambda ruling, options: dump_decision(ruling, options.base),
    Form.JUNIT: lambda ruling, options: answer_junit(ruling, options.base),
    Form.SARIF: lambda ruling, options: answer_sarif(ruling, options.base, where=options.where),
    Form.GITHUB: lambda ruling, options: answer_github(
        ruling, options.base, where=options.where, advisory=options.advisory
    ),
    Form.MARKDOWN: lambda ruling, options: answer_markdown(ruling, options.base),
    Form.SUMMARY: lambda ruling, options: github_summary(ruling, options.base),
}


def render(ruling: Ruling, form: Form, options: RenderOptions = RenderOptions()) -> str:
    """The answer as text that ends in a line end."""
    text = _RENDERERS[form](ruling, options)
    return text if text.endswith("\n") else f"{text}\n"
