"""The work of the readers on one text, before anything is looked up: an environment, a policy or a log."""

from knowngood.ask.explain.matcher import places_in, telling_words
from knowngood.ask.reading import pasted
from knowngood.domain.errors import BadEnvironment
from knowngood.environments.detect import read_environment
from knowngood.environments.log_cleaning import read_paste, stated_by, versions_of
from knowngood.gate.asking import has_policy
from tests.hostile.shapes import Made


def read(made: Made) -> str:
    """The outcome in a few words."""
    name, content = made
    if name == "log":
        return _read_log(content.decode())
    if name == "pyproject.toml":
        has_policy(content.decode())
    try:
        found = read_environment(name, content)
    except BadEnvironment as error:
        return f"refused: {error}"
    return f"{found.kind}, {len(found.pins)} packages"


def _read_log(text: str) -> str:
    paste = read_paste(text)
    versions = versions_of(paste)
    stated_by(versions)
    return f"{pasted(text)}, {len(places_in(paste.text))} places, {len(telling_words(paste.lines))} words"
