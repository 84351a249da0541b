"""The origin of this installation, for sentences that say how to add what it lacks."""

import json
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

_LOGIN = re.compile(r"(?<=//)(?!git@)[^/@\s]*@")


def how_to_install(extra: str) -> str:
    """The command that adds an extra: from where this installation came (PEP 610), else as the README has it.

    Never the name alone: no index has it, and anyone may register it there.
    """
    try:
        source = _source(distribution("knowngood").read_text("direct_url.json") or "", f"[{extra}]")
    except (PackageNotFoundError, OSError, ValueError, LookupError, TypeError):  # no installer left a word of it
        source = f'"/path/to/checkout[{extra}]"'
    return f"install it with: pip install {source}"


def _source(direct_url: str, extra: str) -> str:
    origin = json.loads(direct_url)
    url = _LOGIN.sub("", origin["url"])
    if "vcs_info" in origin:
        folder = f"#subdirectory={origin['subdirectory']}" if "subdirectory" in origin else ""
        vcs = origin["vcs_info"]
        return f'"knowngood{extra} @ {vcs["vcs"]}+{url}@{vcs["commit_id"]}{folder}"'
    if "archive_info" in origin and not url.startswith("file:"):
        return f'"knowngood{extra} @ {url}"'
    path = Path(url2pathname(urlsplit(url).path)).resolve(strict=True)
    return f'{"-e " if origin.get("dir_info", {}).get("editable") else ""}"{path}{extra}"'
