"""The forms that an answer of the gate comes in, and the media type of each."""

from collections.abc import Mapping
from enum import StrEnum

from knowngood.cli.encoding import defused
from knowngood.cli.loading import load
from knowngood.gate.decision import Ruling


class Form(StrEnum):
    TEXT = "text"
    JSON = "json"
    JUNIT = "junit"
    SARIF = "sarif"
    CODE_QUALITY = "codequality"
    GITHUB = "github"
    MARKDOWN = "markdown"
    SUMMARY = "summary"


MEDIA = {
    Form.TEXT: "text/plain; charset=utf-8",
    Form.JSON: "application/json",
    Form.JUNIT: "application/xml",
    Form.SARIF: "application/sarif+json",
    Form.CODE_QUALITY: "application/json",
    Form.GITHUB: "text/plain; charset=utf-8",
    Form.MARKDOWN: "text/markdown; charset=utf-8",
    Form.SUMMARY: "text/markdown; charset=utf-8",
}


_HERE = "knowngood.gate.renderers"
_RENDERERS: Mapping[Form, tuple[str, tuple[str, ...]]] = {
    Form.TEXT: (f"{_HERE}.text:answer_text", ("where",)),
    Form.JSON: (f"{_HERE}.json:dump_decision", ()),
    Form.JUNIT: (f"{_HERE}.junit:answer_junit", ()),
    Form.SARIF: (f"{_HERE}.sarif:answer_sarif", ("where",)),
    Form.CODE_QUALITY: (f"{_HERE}.code_quality:answer_code_quality", ("where",)),
    Form.GITHUB: (f"{_HERE}.github:answer_github", ("where", "advisory")),
    Form.MARKDOWN: (f"{_HERE}.markdown:answer_markdown", ()),
    Form.SUMMARY: (f"{_HERE}.github:github_summary", ()),
}
"""The function of each form, and the options of `render` that it takes beside the base. Imported when asked for:
JUnit's and SARIF's parts take longer to import than the rest of an answer.
"""


def render(ruling: Ruling, form: Form, base: str = "", *, where: str = "", advisory: bool = False) -> str:
    """The answer as text that ends in a line end, and that may be printed to the log of a CI system. `base` is the
    server's address, before the paths of evidence; `where` the file that the environment stands in; `advisory` makes
    warnings of what would be errors.
    """
    target, more = _RENDERERS[form]
    given = {"where": where, "advisory": advisory}
    text: str = load(target)(ruling, base, **{name: given[name] for name in more})
    text = text if form is Form.GITHUB else defused(text)  # GitHub's commands are what that form is made of
    return text if text.endswith("\n") else f"{text}\n"
