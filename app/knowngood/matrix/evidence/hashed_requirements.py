"""A stored lock as hashed requirements: what it pins, in a form that any index can serve.

Stored locks name no addresses (they are shipped), and uv refuses a pylock.toml whose wheels have none: "relative URL
without a base" (uv 0.13.8, measured 2026-11-21). The hashes are what matters: only these very wheels are installed.
"""

import tomllib
from collections.abc import Mapping
from typing import Any


def hashed_requirements(lock: str) -> str:
    """One line per package; empty where the text is no lock, or one that holds something without a SHA-256."""
    try:
        packages = tomllib.loads(lock).get("packages", [])
    except tomllib.TOMLDecodeError:
        return ""
    lines = [_line(package) for package in packages]
    return "".join(f"{line}\n" for line in lines) if all(lines) else ""


def _line(package: Mapping[str, Any]) -> str:
    archive, wheels = package.get("archive"), package.get("wheels", [])
    files = [archive] if archive else wheels
    hashes = [file.get("hashes", {}).get("sha256", "") for file in files]
    if not hashes or not all(hashes):
        return ""
    name = package["name"]
    what = f"{name} @ {archive['url']}" if archive and archive.get("url") else f"{name}==={package.get('version', '')}"
    return f"{what} {' '.join(f'--hash=sha256:{one}' for one in hashes)}"
