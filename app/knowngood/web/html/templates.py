"""The template environment: undefined names are errors, text is escaped, static files go by their digest.

And these few static files, read once: each address holds the digest of the content, so that no copy goes stale.
"""

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

import jinja2
from fastapi import APIRouter, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.bccache import Bucket, FileSystemBytecodeCache
from markupsafe import Markup
from starlette.templating import Jinja2Templates

from knowngood.domain.builds.plain_names import plain_name
from knowngood.domain.issue import BOUNDS
from knowngood.domain.verdicts.status import status_of
from knowngood.domain.verdicts.verdict import FAILING, is_stale
from knowngood.domain.vocabulary import OUTCOMES, STATUSES, VERDICTS, WORKAROUNDS
from knowngood.query.search_box import EXAMPLE_MEANINGS
from knowngood.web.errors import NotFound
from knowngood.web.html import i18n
from knowngood.web.html.grid import drawn
from knowngood.web.html.i18n import CATALOGUES
from knowngood.web.html.markdown import coded, markdown, python, uncoded, without_folders
from knowngood.web.html.status_labels import (
    CAUSES,
    LEGEND,
    LEGEND_LINE,
    bare_word,
    remarks_in_words,
    runs_in_words,
    word_of,
)
from knowngood.web.urls import (
    SITE_DATA,
    SITE_SEARCH,
    attempt_address,
    badge_address,
    build_address,
    cell_address,
    cell_anchor,
    compare_address,
    costs_address,
    feed_address,
    ground_address,
    issue_address,
    matrix_address,
    notes_address,
    page_of_build,
    run_address,
    upgrade_address,
    watch_list_address,
)

STATIC = Path(__file__).parents[1] / "static"
TEMPLATES = Path(__file__).parents[1] / "templates"

_MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}


@dataclass(frozen=True)
class Asset:
    name: str
    content: bytes
    media: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:12]

    @property
    def address(self) -> str:
        return f"/static/{self.digest}/{self.name}"


def read_assets(folder: Path = STATIC) -> Mapping[str, Asset]:
    files = sorted(path for path in folder.iterdir() if path.suffix in _MEDIA)
    return {path.name: Asset(path.name, path.read_bytes(), _MEDIA[path.suffix]) for path in files}


def assets_version(assets: Mapping[str, Asset]) -> str:
    """The digest of all that shapes a page beside its data: assets, templates and the words of other languages. Part
    of every ETag.
    """
    parts = [asset.digest for asset in assets.values()]
    shaping = [*sorted(TEMPLATES.glob("*.html")), *sorted(CATALOGUES.rglob("*.mo"))]
    parts += [hashlib.sha256(path.read_bytes()).hexdigest() for path in shaping]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def static_router(assets: Mapping[str, Asset]) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/static/{digest}/{name}")
    def static_file(digest: str, name: str) -> Response:
        asset = assets.get(name)
        if asset is None:
            raise NotFound(f'there is no static file "{name}"')
        # An address of an older release still answers, but nobody may keep the answer under it.
        caching = "public, max-age=31536000, immutable" if digest == asset.digest else "no-cache"
        return Response(asset.content, media_type=asset.media, headers={"Cache-Control": caching})

    return router


def make_templates(assets: Mapping[str, Asset]) -> Jinja2Templates:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=TemplateBytecode(TEMPLATES, made_by=Path(__file__)),
        cache_size=-1,  # all of them
    )
    environment.globals["static"] = {name: asset.address for name, asset in assets.items()}
    # The sprite stands in every page: symbols are there with the first byte, and in a page that was saved or printed.
    environment.globals["sprite"] = Markup(assets["signs.svg"].content.decode())  # noqa: S704 - our own file
    environment.globals["query_examples"] = EXAMPLE_MEANINGS
    environment.globals |= {
        "VERDICTS": VERDICTS,
        "OUTCOMES": OUTCOMES,
        "FAILING": FAILING,
        "AMOUNTS": BOUNDS,
        "CAUSES": CAUSES,
    }
    environment.globals |= {
        "WORKAROUNDS": WORKAROUNDS,
        "STATUSES": STATUSES,
        "legend": LEGEND,
        "legend_line": LEGEND_LINE,
    }
    environment.globals |= {
        function.__name__: function
        for function in (
            attempt_address,
            badge_address,
            build_address,
            cell_address,
            cell_anchor,
            compare_address,
            costs_address,
            ground_address,
            is_stale,
            issue_address,
            feed_address,
            matrix_address,
            notes_address,
            page_of_build,
            run_address,
            status_of,
            upgrade_address,
            watch_list_address,
        )
    }
    environment.globals |= {"site_data": SITE_DATA, "site_search": SITE_SEARCH}
    environment.filters |= {
        function.__name__: function for function in (coded, uncoded, markdown, python, without_folders)
    }
    environment.filters |= {
        function.__name__: function for function in (bare_word, remarks_in_words, runs_in_words, word_of)
    }
    environment.filters |= {
        "drawn": drawn,
        "plain_name": plain_name,
        "exact": i18n.exact,
        "duration": i18n.duration,
        "spent": i18n.spent,
        "size": i18n.size,
    }
    return Jinja2Templates(env=environment)


def load_templates(templates: Jinja2Templates) -> None:
    """Load the templates before the first request: reading them back takes 20 ms, compiling them most of a second."""
    for name in templates.env.list_templates(["html"]):
        templates.env.get_template(name)


_FOR_ALL = 0o644


# Compiled templates are kept beside their sources in `__pycache__` on the terms of Python's own bytecode: written where
# that may be written, read by whoever may read the source, made anew where anything that they were made of changed.
# Of a cold process's first look at a page a third was compiling templates (0.66 s for all of them, 20 ms to read them
# back; one core of a shared machine, 2026-11-23).


class TemplateBytecode(FileSystemBytecodeCache):
    """`made_by` is what compiles beside jinja: a file whose text says how.

    A file is named by its template and Python; that it fits the text of the template, jinja's release and `made_by`
    stands in it. Filters of constants would be called as a template is compiled: a test keeps them out.
    """

    def __init__(self, templates: Path, made_by: Path) -> None:
        folder = Path(cache_from_source(str(templates / "any.py"))).parent
        super().__init__(str(folder), f"%s.jinja.{sys.implementation.cache_tag}")
        self._compiler = f"{jinja2.__version__}\n{made_by.read_text()}"

    def get_source_checksum(self, source: str) -> str:
        return hashlib.sha256(f"{self._compiler}\n{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        with suppress(OSError):
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        path = Path(self._get_cache_filename(bucket))
        with suppress(OSError):  # a folder that may only be read, a full disk
            path.parent.mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
            path.chmod(_FOR_ALL)
