"""The build and the hardware that a reader says to have."""

from dataclasses import dataclass

from knowngood.app.domain.builds.build_names import find_build
from knowngood.app.domain.errors import UnknownBuild
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.features.environments.service import NoSuchBuild, pasted_build


@dataclass(frozen=True)
class ChosenBuild:
    """`build` is an id, `hardware` the name of a GPU as the text has it (empty: it names none that we know)."""

    build: str
    hardware: str = ""


def chosen_by_name(text: str, known: Known) -> ChosenBuild:
    """Raises NoSuchBuild."""
    try:
        return ChosenBuild(find_build(text, known.builds).id)
    except UnknownBuild as error:
        raise NoSuchBuild(error.problem, error.nearest) from None


def chosen_by_environment(text: str, known: Known) -> ChosenBuild:
    """Nothing of the text is kept. Raises NoSuchBuild."""
    found = pasted_build(text, known.builds, known.tested)
    return ChosenBuild(found.build or "", found.gpu)
