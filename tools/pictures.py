"""`make pictures`: the pictures of the README, made anew from the shipped evidence by the pages as they are now, and
the one that other sites show beside a link.

Needs a Chromium. The store is a new one in a temporary folder; the clock stands at the newest evidence, so that
pictures made later differ only where pages or evidence do.
"""

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from knowngood.server import create_app
from knowngood.store.engine import Engine, connect, reading
from knowngood.store.queries import load_cells
from tests.serving import served

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/pictures"
ICON = ROOT / "app/knowngood/web/static/icon.svg"
MOST_BYTES = 150_000
_QUALITIES = (0.92, 0.85, 0.75, 0.6)


@dataclass(frozen=True)
class Picture:
    name: str
    address: str
    scheme: str = "light"
    height: int = 760


PICTURES = (
    Picture("front", "/?mine=2.7.1", height=900),
    Picture("matrix", "/matrix?mine=2.7.1"),
    Picture("issue", "/issues/pytorch-151290?build=torch-2.7.1%2Bcu126", height=760),
    Picture("upgrade", "/upgrade?from=torch-2.5.1%2Bcu124&hardware=cpu-x86_64", scheme="dark", height=760),
    Picture("compare", "/compare?a=2.7.1&b=2.8.0", height=760),
)

PREVIEW = ROOT / "app/knowngood/web/static/preview.png"
_MOST_PREVIEW_BYTES = 60_000
_CARD = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; width: 1200px; height: 630px; box-sizing: border-box; padding: 84px 96px; background: #fbfaf6; }}
body {{ color: #1c1e21; font: 30px/1.5 sans-serif; }}
header {{ display: flex; gap: 24px; align-items: center; font: 600 48px/1 serif; }}
header svg {{ width: 60px; height: 60px; }}
h1 {{ font: 600 66px/1.15 serif; margin: 52px 0 24px; }}
p {{ margin: 0; color: #5a5e64; }}
div {{ display: flex; gap: 10px; margin-top: 52px; }}
i {{ width: 74px; height: 44px; border-radius: 4px; box-sizing: border-box; border: 2px solid #5f2ea8; }}
.passes {{ background: #dcf1da; border-color: #1b6b38; }}
.cure {{ background: #b99ee0; }}
.fails {{ background: #5f2ea8; }}
.notrun {{ border: 2px dashed #bdb9ad; }}
</style><header>{icon}Known Good</header><h1>Which PyTorch build<br>is known good for you?</h1>
<p>Bugs of torch.compile, Inductor and Triton, run on real builds,<br>
with the workarounds that were measured to help.</p><div>{row}</div>"""

_AS_WEBP = """async ([png, quality]) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${png}`)).blob());
  const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
  canvas.getContext('2d').drawImage(image, 0, 0);
  return canvas.toDataURL('image/webp', quality).split(',')[1];
}"""


def shipped(folder: Path) -> Engine:
    """A store with all shipped evidence, through the command that users have."""
    environment = {**os.environ, "KNOWNGOOD_DATA_DIR": str(folder)}
    environment.pop("KNOWNGOOD_DATABASE_URL", None)
    evidence = sorted(str(path) for path in (ROOT / "repros/evidence").glob("*.jsonl.gz"))
    for arguments in (["migrate"], ["import", *evidence]):
        subprocess.run([sys.executable, "-m", "knowngood", *arguments], env=environment, cwd=ROOT, check=True)
    return connect(f"sqlite:///{next(folder.glob('*.sqlite3'))}")


def newest(engine: Engine) -> datetime:
    with reading(engine) as session:
        moments = [cell.measured_at for cell in load_cells(session) if cell.measured_at]
    return max(moments, default=datetime.now(UTC)) + timedelta(minutes=10)


def take(browser: Browser, site: str, picture: Picture) -> bytes:
    """As WebP of at most MOST_BYTES, as good as that allows."""
    context = browser.new_context(
        viewport={"width": 1280, "height": picture.height},
        device_scale_factor=1.25,
        color_scheme=picture.scheme,  # type: ignore[arg-type]  # light or dark
    )
    page = context.new_page()
    answer = page.goto(site + picture.address)
    if answer is None or not answer.ok:
        raise SystemExit(f"{picture.address} is not there; change it in tools/pictures.py")
    png = base64.b64encode(page.screenshot()).decode()
    page.goto("about:blank")
    for quality in _QUALITIES:
        made = base64.b64decode(page.evaluate(_AS_WEBP, [png, quality]))
        if len(made) < MOST_BYTES:
            context.close()
            return made
    raise SystemExit(f"{picture.name} is larger than {MOST_BYTES} bytes at any quality")


def preview(browser: Browser) -> bytes:
    """It says no figure, so that it stays true."""
    page = browser.new_page(viewport={"width": 1200, "height": 630})
    signs = [*["passes"] * 4, "fails", "fails", "cure", "cure", "notrun", "cure", "passes", "passes"]
    row = "".join(f'<i class="{sign}"></i>' for sign in signs)
    page.set_content(_CARD.format(icon=ICON.read_text(encoding="utf-8"), row=row))
    made = page.screenshot()
    page.close()
    if len(made) > _MOST_PREVIEW_BYTES:
        raise SystemExit(f"the preview is larger than {_MOST_PREVIEW_BYTES} bytes")
    return made


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("no Chromium on this machine")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        engine = shipped(Path(folder))
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        PREVIEW.write_bytes(preview(browser))
        now = newest(engine)
        with served(create_app(engine, clock=lambda: now)) as site:
            for picture in PICTURES:
                made = take(browser, site, picture)
                (FOLDER / f"{picture.name}.webp").write_bytes(made)
                print(f"docs/pictures/{picture.name}.webp: {len(made):,} bytes")
        browser.close()
        engine.dispose()


if __name__ == "__main__":
    main()
