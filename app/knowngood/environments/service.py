"""The build that a text states: one rule for every door, be it a page, the gate, an upgrade or a search."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from knowngood import foreign_text
from knowngood.domain.builds.build_names import BuildNames
from knowngood.domain.errors import BadEnvironment, KnownGoodError
from knowngood.domain.hardware_names import class_named
from knowngood.domain.message import Message, english
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.verdict import FAILING
from knowngood.environments.resolve import ResolvedBuild, StatedEnvironment, resolve
from knowngood.environments.wheels.table import WheelTable


class NoSuchBuild(KnownGoodError):
    """A text or a name that is no build here; `nearest` are ids that may be meant."""

    def __init__(self, why: Message, nearest: Sequence[str] = ()) -> None:
        super().__init__(english(why))
        self.why = why
        self.nearest = tuple(nearest)


def stated_build(
    text: str,
    names: BuildNames,
    tested: Collection[str],
    table: WheelTable,
    *,
    name: str = "",
    python: str = "",
    groups: Sequence[str] = (),
    platforms: Mapping[str, str] | None = None,
) -> ResolvedBuild:
    """`name` is that of the text's file; empty: it was pasted. `platforms` are those stated beside it. Raises
    BadEnvironment for a text that cannot be read.
    """
    stated = stated_in(text.encode(errors="replace"), name, python, groups)
    return resolve(replace(stated, platforms={**stated.platforms, **(platforms or {})}), names, tested, table)


def stated_in(content: bytes, name: str, python: str = "", groups: Sequence[str] = ()) -> StatedEnvironment:
    """Read a file behind the door for foreign text. Raises as `read_environment`, and as `foreign_text.read`."""
    from knowngood.environments.detect import read_environment

    return foreign_text.read(read_environment, name, content, python=python, groups=groups)


def pasted_build(text: str, names: BuildNames, tested: Collection[str], table: WheelTable) -> ResolvedBuild:
    """Resolve a pasted text to a build. Raises NoSuchBuild where there is none."""
    try:
        resolved = stated_build(text, names, tested, table)
    except BadEnvironment as error:
        raise NoSuchBuild(error.why) from None
    if resolved.build is None:
        raise NoSuchBuild(resolved.why_none, resolved.nearest)
    return resolved


def worst_gpu(resolved: ResolvedBuild, known: Known) -> str:
    """The GPU, among those that a text names, that its wheel holds no code for, or nobody knows; else the one on which
    most issues fail. Empty where it names none.
    """

    def trouble(gpu: str) -> tuple[bool, bool, int]:
        build, class_ = known.builds[resolved.build or ""], class_named(gpu, known.hardware)
        failing = sum(known.cell(issue, build, class_).verdict in FAILING for issue in known.issues.values())
        return known.serves(build, class_) is False, bool(known.against(build, class_)), failing

    return max(resolved.gpus, key=trouble, default="")
