"""How a sentence names what to install: from where this installation came, and never by a name that no index has."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from knowngood.installation import how_to_install

README_WAY = '"/path/to/checkout[ray]"'
GIT = {"vcs": "git", "commit_id": "0123abc", "requested_revision": "main"}


def left_by_the_installer(site: Path, direct_url: str | None) -> None:
    info = site / "knowngood-0.2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: knowngood\nVersion: 0.2.0\n")
    if direct_url is not None:
        (info / "direct_url.json").write_text(direct_url)


@pytest.mark.parametrize(
    ("found", "source"),
    [
        pytest.param({"url": "file://HERE", "dir_info": {}}, '"HERE[ray]"', id="checkout"),
        pytest.param({"url": "file://HERE", "dir_info": {"editable": True}}, '-e "HERE[ray]"', id="editable"),
        pytest.param({"url": "file://HERE/a%20b.whl", "archive_info": {}}, '"HERE/a b.whl[ray]"', id="wheel"),
        pytest.param({"url": "file://HERE/gone", "dir_info": {}}, README_WAY, id="checkout that is gone"),
        pytest.param(
            {"url": "https://me:secret@git.example.org/kg.git", "vcs_info": GIT},
            '"knowngood[ray] @ git+https://git.example.org/kg.git@0123abc"',
            id="git",
        ),
        pytest.param(
            {"url": "ssh://git@git.example.org/all.git", "vcs_info": GIT, "subdirectory": "kg"},
            '"knowngood[ray] @ git+ssh://git@git.example.org/all.git@0123abc#subdirectory=kg"',
            id="folder of a repository",
        ),
        pytest.param(
            {"url": "https://example.org/knowngood-0.2.0-py3-none-any.whl", "archive_info": {}},
            '"knowngood[ray] @ https://example.org/knowngood-0.2.0-py3-none-any.whl"',
            id="wheel elsewhere",
        ),
        pytest.param({"dir_info": {}}, README_WAY, id="no address"),
    ],
)
def test_what_is_advised_comes_from_where_this_came_from(
    found: Mapping[str, object], source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a b.whl").touch()
    left_by_the_installer(tmp_path, json.dumps(found).replace("HERE", str(tmp_path)))
    monkeypatch.syspath_prepend(tmp_path)
    assert how_to_install("ray") == f"install it with: pip install {source.replace('HERE', str(tmp_path))}"


@pytest.mark.parametrize("direct_url", [None, "", "{", "[]", '"text"'])
def test_where_nothing_is_known_of_it_the_readmes_way_is_advised(
    direct_url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_by_the_installer(tmp_path, direct_url)
    monkeypatch.syspath_prepend(tmp_path)
    assert how_to_install("ray") == f"install it with: pip install {README_WAY}"
