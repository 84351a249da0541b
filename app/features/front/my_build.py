"""The build and the hardware that a pasted text tells of: `pip freeze`, a lock file, the output of collect_env."""

import re
from dataclasses import dataclass

from knowngood.app.domain.builds.build_names import find_build
from knowngood.app.domain.errors import BadEnvironment, KnownGoodError, UnknownBuild
from knowngood.app.domain.hardware_names import hardware_named
from knowngood.app.domain.verdicts.known import Known
from knowngood.app.features.diagnose.log_cleaning import read_paste, stated_by, versions_of
from knowngood.app.features.environments.detect import read_environment
from knowngood.app.features.environments.resolve import resolve

_COLLECTED = re.compile(r"^\s*PyTorch version:", re.MULTILINE)


class NotMine(KnownGoodError):
    """A text or a name that is no build of the catalogue; `nearest` are ids that may be meant."""

    def __init__(self, problem: str, nearest: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.nearest = nearest


@dataclass(frozen=True)
class ChosenBuild:
    """`build` is an id, `hardware` the name of a GPU as the text has it (empty: it names none that we know). `note` is
    what had to be assumed.
    """

    build: str
    hardware: str = ""
    note: str = ""


def chosen_by_name(text: str, known: Known) -> ChosenBuild:
    """Raises NotMine."""
    try:
        return ChosenBuild(find_build(text, known.builds).id)
    except UnknownBuild as error:
        raise NotMine(error.problem, tuple(error.nearest)) from None


def chosen_by_environment(text: str, known: Known) -> ChosenBuild:
    """Nothing of the text is kept. Raises NotMine."""
    hardware = ""
    if _COLLECTED.search(text):
        versions = versions_of(read_paste(text))
        stated = stated_by(versions)
        named = (one.value for one in versions if one.name == "GPU")
        hardware = next((found.name for found in map(hardware_named, named) if found and not found.is_any_gpu), "")
    else:
        try:
            stated = read_environment("", text.encode(errors="replace"))
        except BadEnvironment as error:
            raise NotMine(str(error)) from None
    found = resolve(stated, known.builds, known.builds)
    if found.build is None:
        raise NotMine(found.note or found.not_tested, found.nearest)
    return ChosenBuild(found.build, hardware, found.note)
