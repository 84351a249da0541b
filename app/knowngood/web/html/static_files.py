"""The few static files, read once; each address holds the digest of the content, so that no copy goes stale."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter, Response

from knowngood.web.errors import NotFound
from knowngood.web.html.i18n import CATALOGUES

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
