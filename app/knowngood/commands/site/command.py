"""`knowngood site -o DIR`: the application's own pages, made in this process over a copy of what is known, as files."""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from fastapi import FastAPI
from pydantic import TypeAdapter

from knowngood.ask.wheels.facts import Facts, facts_of
from knowngood.catalogue.script_analysis import script_of
from knowngood.cli.console import bytes_in_words
from knowngood.cli.knowledge import ground_here, recorded_here
from knowngood.cli.lazy import command
from knowngood.cli.options import PATH, option
from knowngood.cli.output import err
from knowngood.commands.site.data import FORMAT, search_script, site_data, site_schema
from knowngood.commands.site.pages import FOLDERS, SiteLinks, SitePage, ask, compacted, pages_of, relinked
from knowngood.domain.errors import BadRequest
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.matrix import shown_builds
from knowngood.domain.vocabulary import many
from knowngood.environments.wheels.locks import constraints_of, shipped_locks
from knowngood.environments.wheels.table import wheels_of
from knowngood.server import create_app
from knowngood.store.catalogue import save_known
from knowngood.store.engine import connect, unit_of_work
from knowngood.store.knowledge.model import Recorded
from knowngood.store.migrations import bring_up
from knowngood.web.app_state import StaticSite
from knowngood.web.auth.principal import AccessPolicy
from knowngood.web.html.i18n import Language
from knowngood.web.html.templates import read_assets
from knowngood.web.urls import SITE_DATA, SITE_SEARCH, constraints_address, issue_address

_MARK = "knowngood-site.txt"
_MARKED = "Made by `knowngood site`, which puts a new site in the place of this folder.\n"


@command(
    "Write the pages as files, with the data as JSON, to be opened from disk or served by any host.\n\n"
    "They show the results of this release, together with those of the local store if there is one. A site "
    "that was made before is replaced; any other folder has to be empty.",
    option("-o", "--output", type=PATH, required=True, help="The folder to write."),
    example="site -o public",
)
def site(output: Path) -> None:
    ground = ground_here()
    known = _with_scripts(ground.knowledge.known)
    with _replaced(output) as folder:
        write_site(known, recorded_here(ground), folder, lambda line: err.print(line, soft_wrap=True))
        sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    err.print(
        f"{output}: {many(len(sizes), 'file')}, {bytes_in_words(sum(sizes))}; open {output / 'index.html'}",
        soft_wrap=True,
    )


def write_site(known: Known, recorded: Recorded, folder: Path, tell: Callable[[str], None]) -> None:
    """Write the site. The same knowledge gives the same bytes: pages are as of the newest measurement, not of today."""
    now = max((cell.measured_at for cell in known.cells.values() if cell.measured_at), default=known.as_of)
    pages, shared = tuple(pages_of(known)), _shared(known)
    builds = [build.id for build in shown_builds(known)]
    links = SiteLinks(pages, shared, builds=builds, classes=known.hardware)
    _write_shared(known, now, links, folder)
    with _application(known, now, StaticSite(links, recorded)) as app:
        asyncio.run(_write_pages(app, pages, links, folder, tell))
    (folder / _MARK).write_text(_MARKED, encoding="utf-8")


def _with_scripts(known: Known) -> Known:
    issues = {id_: replace(issue, script=script_of(issue)) for id_, issue in known.issues.items()}
    return replace(known, issues=issues)


def _shared(known: Known) -> Mapping[str, str]:
    """The files that both languages have in common, by the addresses that pages know them by."""
    return {
        **{asset.address: f"assets/{asset.name}" for asset in read_assets().values()},
        **{
            f"{issue_address(issue.id)}/repro.py": f"repros/{issue.id}.py"
            for issue in known.issues.values()
            if issue.script
        },
        **{constraints_address(id_): f"constraints/{id_}.txt" for id_ in _constraints(known)},
        **{address: address.lstrip("/") for address in (SITE_DATA, SITE_SEARCH)},
    }


def _write_shared(known: Known, now: datetime, links: SiteLinks, folder: Path) -> None:
    def address_of(address: str) -> str | None:
        return links.relative(address, "index.html", Language.ENGLISH)

    contents = {
        **{f"assets/{asset.name}": asset.content for asset in read_assets().values()},
        **{f"repros/{issue.id}.py": issue.script.encode() for issue in known.issues.values() if issue.script},
        SITE_DATA.lstrip("/"): site_data(known, now, address_of),
        SITE_SEARCH.lstrip("/"): search_script(known),
        **{f"constraints/{id_}.txt": text.encode() for id_, text in _constraints(known).items()},
        "data/facts.json": TypeAdapter(Facts).dump_json(facts_of(known)),
        "data/knowngood.schema.json": site_schema(),
        "data/FORMAT.md": FORMAT.read_bytes(),
    }
    for file, content in contents.items():
        _write(folder / file, content)


def _constraints(known: Known) -> Mapping[str, str]:
    builds = (build for build in shown_builds(known) if build.id in shipped_locks())
    return {build.id: constraints_of(build, known.build_names, wheels_of(known)) for build in builds}


@contextmanager
def _application(known: Known, now: datetime, site: StaticSite) -> Iterator[FastAPI]:
    """The application over a store that holds what is known and no attempts, for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="knowngood-site-") as folder:
        engine = connect(f"sqlite:///{folder}/copy.sqlite3")
        bring_up(engine)
        with unit_of_work(engine) as s:
            save_known(s, known, now)
        rules = AccessPolicy(requests_per_s=0)
        yield create_app(engine, clock=lambda: now, version=version("knowngood"), rules=rules, site=site)
        engine.dispose()


async def _write_pages(
    app: FastAPI, pages: Sequence[SitePage], links: SiteLinks, folder: Path, tell: Callable[[str], None]
) -> None:
    for kind, some in groupby(pages, key=lambda page: page.kind):
        alike = tuple(some)
        for page in alike:
            for language, below in FOLDERS.items():
                html = (await ask(app, page.address, language)).decode()
                linked = relinked(html, page.file, language, links)
                _write(folder / below / page.file, compacted(linked).encode())
        tell(f"{kind}: {many(len(alike) * len(FOLDERS), 'page')}")


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


# -- the folder --------------------------------------------------------------------------------------------------------


@contextmanager
def _replaced(output: Path) -> Iterator[Path]:
    """A folder to write to that takes the place of `output` when all went well, so that nobody sees half a site. Raises
    BadRequest where `output` holds anything but a site of ours, or cannot be written.
    """
    target = Path(os.path.realpath(output))
    try:
        _refuse_foreign(target, output)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as beside:
            made = Path(beside) / "new"
            made.mkdir()
            yield made
            _swap(made, target, Path(beside) / "old")
    except OSError as error:
        raise BadRequest(f"{output} cannot be written: {error.strerror or error}") from None


def _refuse_foreign(target: Path, output: Path) -> None:
    if not target.exists():
        return
    if not target.is_dir():
        raise BadRequest(f"{output} is a file; name a folder that is empty, new, or a site made before")
    if any(target.iterdir()) and not (target / _MARK).is_file():
        raise BadRequest(f"{output} is not empty and no site made before; name a folder that is, or a new one")


def _swap(made: Path, target: Path, old: Path) -> None:
    if not target.exists():
        made.rename(target)
        return
    target.rename(old)
    try:
        made.rename(target)
    except OSError:
        old.rename(target)
        raise
