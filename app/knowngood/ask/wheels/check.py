"""Whether every build of the catalogue can still be installed: the indexes asked, and uv's resolver."""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from knowngood.ask.wheels.rules import DEFAULT_ORIGIN, check_build, listing_of
from knowngood.cli.context import opened
from knowngood.cli.knowledge import has_store
from knowngood.domain.builds.build import Build
from knowngood.domain.builds.packages import BuildCheck
from knowngood.domain.builds.platforms import LINUX
from knowngood.domain.errors import IndexUnusable
from knowngood.domain.grouping import grouped
from knowngood.domain.issue import EnvironmentRequest
from knowngood.domain.verdicts.outcome import TroubleCode
from knowngood.environments.wheels.resolution import RESOLUTION_S, TRIPLES, patient
from knowngood.settings import read_settings
from knowngood.store.engine import may_write, unit_of_work
from knowngood.store.evidence.changes import note_checks
from knowngood_workers.provision.provisioner import choose_cache
from knowngood_workers.provision.resolver import ProvisionFailure, Resolver
from knowngood_workers.provision.simple_index import SimpleIndex
from knowngood_workers.provision.uv_cli import Cancelled, Installer

_SAYS_NO = frozenset({TroubleCode.NO_BUILD, TroubleCode.WRONG_BUILD})


def check_listed(builds: Iterable[Build], index: SimpleIndex, backends: str) -> Iterator[BuildCheck]:
    """Ask the index of each origin once per project. Those of torch backends lie below `backends`; one that cannot be
    asked says nothing of its builds. Raises IndexUnusable where that is the default index.
    """
    for origin, of_origin in grouped(builds, lambda build: build.origin).items():
        is_default = origin == DEFAULT_ORIGIN
        asked = index if is_default else replace(index, only=f"{backends.rstrip('/')}/{origin}")
        try:
            torch = listing_of(asked.files_of("torch"))
            triton = listing_of(asked.files_of("triton")) if any(build.triton for build in of_origin) else {}
        except IndexUnusable as problem:
            if is_default:
                raise
            yield from (BuildCheck(build.id, None, f"not asked ({origin}): {problem}") for build in of_origin)
            continue
        yield from (check_build(build, torch, triton) for build in of_origin)


def check_resolved(builds: Iterable[Build]) -> Iterator[BuildCheck]:
    """Resolve each as it is provisioned, with numpy and setuptools of its date. Nothing is installed or kept."""
    with tempfile.TemporaryDirectory(prefix="knowngood-") as scratch:
        installer = Installer(choose_cache(Path(scratch), os.environ), Path(scratch))
        resolver = Resolver(Path(scratch) / "locks", installer, TRIPLES[LINUX])
        for build in builds:
            request = EnvironmentRequest(build.id, (), (), mutates=False)
            try:
                resolver.resolve(build, request, Path(sys.executable), patient())
            except ProvisionFailure as failure:
                is_no = failure.trouble.code in _SAYS_NO
                yield BuildCheck(build.id, False if is_no else None, failure.trouble.sentence)
            except Cancelled:
                yield BuildCheck(build.id, None, f"its resolution took longer than {RESOLUTION_S} s")
            else:
                yield BuildCheck(build.id, is_installable=True)


def keep(checks: Iterable[BuildCheck]) -> None:
    """Announce what is news of a listing, where there is a store that may be written. What a resolution finds is not
    kept: it is not done of every build.
    """
    if has_store(settings := read_settings()) and may_write(engine := opened(settings)):
        with unit_of_work(engine) as s:
            note_checks(s, checks, datetime.now(UTC))
