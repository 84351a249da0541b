"""The build and the hardware that a reader says to have."""

from knowngood.domain.builds.build_names import asked_build
from knowngood.domain.errors import UnknownBuild
from knowngood.domain.verdicts.known import Known
from knowngood.features.environments.service import NoSuchBuild, pasted_build
from knowngood.web.my_build import MyBuild


def chosen_by_name(text: str, known: Known) -> MyBuild:
    """Raises NoSuchBuild."""
    try:
        return MyBuild(asked_build(text, known.builds).id)
    except UnknownBuild as error:
        raise NoSuchBuild(error.problem, error.nearest) from None


def chosen_by_environment(text: str, known: Known) -> MyBuild:
    """With the GPU that the text names, if any that we know; nothing else of it is kept. Raises NoSuchBuild."""
    found = pasted_build(text, known.builds, known.tested)
    return MyBuild(found.build or "", found.gpu)
