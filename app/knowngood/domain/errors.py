"""The root of our exceptions. Each says what was found, what was expected and what to do."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knowngood.domain.message import Message


class KnownGoodError(Exception):
    """Anything we refuse on purpose; its text is fit to show. Status and exit codes are the edges' choice."""


class UnknownName(KnownGoodError):
    """A name that cannot be read, or that means nothing of this catalogue, or several things where one is wanted.

    `nearest` are ids that may be meant, the nearest first; `problem` is the text without them.
    """

    def __init__(self, problem: str, nearest: Sequence[str] = (), *, what: str = "nearest") -> None:
        super().__init__(f"{problem}; {what}: {', '.join(nearest)}" if nearest else problem)
        self.problem = problem
        self.nearest = tuple(nearest)


class UnknownBuild(UnknownName):
    """A name of a build that does not parse, or that is no one build of this catalogue."""


class UnknownIssue(UnknownName, LookupError):
    """A name of an issue that is no one issue of this catalogue."""


class BadRequest(KnownGoodError):
    """A question that cannot be asked: a flag, parameter or filter whose value has no meaning."""


class NotTested(KnownGoodError):
    """A fair question about an environment for which nothing that is known answers: another platform, say."""


class BadBundle(KnownGoodError):
    """A result bundle that is damaged, foreign, or of a format this release cannot read. Nothing of it was imported."""


class BadEnvironment(KnownGoodError):
    """A lock file or list of packages that cannot be read; `why` says where, what was expected and what to do."""

    def __init__(self, why: "Message") -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        from knowngood.domain.message import english  # noqa: PLC0415 - the library is imported without it

        return english(self.why)


class TextTooCostly(BadEnvironment):
    """A text that takes more of a processor or of memory to be read than anybody's may."""


class Busy(KnownGoodError):
    """A request for more at once than this server gives; the text says what to do instead."""


class OtherPython(BadEnvironment):
    """An environment or a build that is for other Pythons than the one that was stated beside it."""


class BadPack(KnownGoodError):
    """A pack that is damaged, incomplete, foreign, or cannot be made as asked. Nothing was run from it."""


class BadPolicy(KnownGoodError):
    """A policy file that is no TOML, or holds what a policy cannot hold. Nothing of it is applied."""


class StoreUnusable(KnownGoodError):
    """The database cannot be opened, is not ours, or is of a newer release; or there is no room left."""


class Unreadable(KnownGoodError):
    """A stored row that this release cannot read; the text names it. The rest of the store is sound."""


class PortTaken(KnownGoodError):
    """Something else listens where the dashboard was to listen."""


class BadSnapshot(KnownGoodError):
    """A snapshot that is damaged, foreign, too old, not signed by whom it should be, or newer than this release."""


class ServerUnusable(KnownGoodError):
    """A server of ours that does not answer, or not as one of ours."""


class NotInstalled(KnownGoodError):
    """A package that only an extra of this release brings; the text names the extra."""


class FleetUnusable(KnownGoodError):
    """A fleet that cannot be joined or led from here: no Ray, no token, no head at the address, or a machine unfit."""


class IndexUnusable(KnownGoodError):
    """A package index that cannot be reached, or whose answer makes no sense."""
