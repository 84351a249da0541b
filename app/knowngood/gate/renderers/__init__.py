"""The forms that an answer of the gate comes in, and the media type of each."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial

from knowngood.cli.encoding import defused
from knowngood.gate.decision import Ruling
from knowngood.gate.renderers.code_quality import answer_code_quality
from knowngood.gate.renderers.github import answer_github, github_summary
from knowngood.gate.renderers.json import dump_decision
from knowngood.gate.renderers.junit import answer_junit
from knowngood.gate.renderers.markdown import answer_markdown
from knowngood.gate.renderers.sarif import answer_sarif
from knowngood.gate.renderers.text import answer_text


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    CODE_QUALITY = "codequality"
    GITHUB = "github"
    MARKDOWN = "markdown"
    SUMMARY = "summary"
    FULL = "full"


MEDIA = {
    Form.TEXT: "text/plain; charset=utf-8",
    Form.JSON: "application/json",
    Form.JUNIT: "application/xml",
    Form.SARIF: "application/sarif+json",
    Form.CODE_QUALITY: "application/json",
    Form.GITHUB: "text/plain; charset=utf-8",
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.SUMMARY: "text/markdown; charset=utf-8",
    Form.FULL: "text/plain; charset=utf-8",
}

_RENDERERS: Mapping[Form, tuple[Callable[..., str], tuple[str, ...]]] = {
    Form.TEXT: (answer_text, ("where",)),
    Form.JSON: (dump_decision, ()),
    Form.JUNIT: (answer_junit, ()),
    Form.SARIF: (answer_sarif, ("where",)),
    Form.CODE_QUALITY: (answer_code_quality, ("where",)),
    Form.GITHUB: (answer_github, ("where", "advisory")),
    Form.MARKDOWN: (answer_markdown, ()),
    Form.SUMMARY: (github_summary, ()),
    Form.FULL: (partial(answer_text, in_full=True), ("where",)),
}
"""The function of each form, and the options of `render` that it takes beside the base."""


def render(ruling: Ruling, form: Form, base: str = "", *, where: str = "", advisory: bool = False) -> str:
    """The answer as text that ends in a line end, and that may be printed to the log of a CI system. `base` is the
    server's address, before the paths of evidence; `where` the file that the environment stands in; `advisory` makes
    warnings of what would be errors.
    """
    answer, more = _RENDERERS[form]
    given = {"where": where, "advisory": advisory}
    text = answer(ruling, base, **{name: given[name] for name in more})
    text = text if form is Form.GITHUB else defused(text)  # GitHub's commands are what that form is made of
    return text if text.endswith("\n") else f"{text}\n"
