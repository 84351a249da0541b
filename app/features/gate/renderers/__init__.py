"""The forms that an answer of the gate comes in, and what each is called on the wire."""

from dataclasses import dataclass
from enum import StrEnum

from knowngood.app.features.gate.decision import Ruling

# Each form is imported by who asks for it: JUnit's and SARIF's parts take longer to import than the rest of an answer.
# ruff: noqa: PLC0415


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
    """What an answer says beside the ruling. `base` is the server's address, before the paths of evidence; `where` the
    file that the environment stands in; `advisory` makes warnings of what would be errors.
    """

    base: str = ""
    where: str = ""
    advisory: bool = False


def render(ruling: Ruling, form: Form, told: RenderOptions = RenderOptions()) -> str:
    """The answer as text that ends in a line end."""
    text = _render(ruling, form, told)
    return text if text.endswith("\n") else f"{text}\n"


def _render(ruling: Ruling, form: Form, told: RenderOptions) -> str:
    match form:
        case Form.TEXT:
            from knowngood.app.features.gate.renderers.text import answer_text

            return answer_text(ruling, told.base)
        case Form.JSON:
            from knowngood.app.features.gate.renderers.json import dump_decision

            return dump_decision(ruling, told.base)
        case Form.MARKDOWN:
            from knowngood.app.features.gate.renderers.markdown import answer_markdown

            return answer_markdown(ruling, told.base)
        case Form.SUMMARY:
            from knowngood.app.features.gate.renderers.github import github_summary

            return github_summary(ruling, told.base)
        case Form.GITHUB:
            from knowngood.app.features.gate.renderers.github import answer_github

            return answer_github(ruling, told.base, where=told.where, advisory=told.advisory)
        case Form.JUNIT:
            from knowngood.app.features.gate.renderers.junit import answer_junit

            return answer_junit(ruling, told.base)
        case Form.SARIF:
            from knowngood.app.features.gate.renderers.sarif import answer_sarif

            return answer_sarif(ruling, told.base, where=told.where)
