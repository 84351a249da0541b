"""The build that a text states: one rule for every door, be it a page, the gate, an upgrade or a search."""

from collections.abc import Collection, Mapping, Sequence

from knowngood.app.cli.loading import load
from knowngood.app.domain.builds.build import Build
from knowngood.app.domain.errors import BadEnvironment, KnownGoodError
from knowngood.app.features.environments.resolve import ResolvedBuild, resolve

# Readers of a dozen formats take 90 ms to import, which a question about a build id need not pay.
_READ = "knowngood.app.features.environments.detect:read_environment"

NO_BUILD = "No build here is this environment: {why}"
"""What every door says where there is none; `why` is NoSuchBuild's text."""


class NoSuchBuild(KnownGoodError):
    """A text or a name that is no build here; `nearest` are ids that may be meant."""

    def __init__(self, why: str, nearest: Sequence[str] = ()) -> None:
        super().__init__(why)
        self.nearest = tuple(nearest)


def stated_build(
    text: str,
    builds: Mapping[str, Build],
    tested: Collection[str],
    *,
    name: str = "",
    python: str = "",
    groups: Sequence[str] = (),
) -> ResolvedBuild:
    """`name` is that of the text's file; empty: it was pasted. Raises BadEnvironment for a text that cannot be read."""
    stated = load(_READ)(name, text.encode(errors="replace"), python=python, groups=groups)
    return resolve(stated, builds, tested)


def pasted_build(text: str, builds: Mapping[str, Build], tested: Collection[str]) -> ResolvedBuild:
    """Always with a build. Raises NoSuchBuild."""
    try:
        found = stated_build(text, builds, tested)
    except BadEnvironment as error:
        raise NoSuchBuild(str(error)) from None
    if found.build is None:
        raise NoSuchBuild(found.note, found.nearest)
    return found
