"""Where the bundles of a release are found: in the checkout, else where their own distribution was installed."""

import sys
from pathlib import Path

import pytest

from knowngood.app.catalogue.loader import shipped_catalogue
from knowngood.app.features.bundles import shipped

NAMES = ("b.jsonl.gz", "a.jsonl.gz")


def install(folder: Path) -> None:
    """What an installer leaves of a wheel with these files."""
    package, info = folder / "knowngood_evidence", folder / "knowngood_evidence-0.2.0.dist-info"
    for one in (package, info):
        one.mkdir(parents=True)
    for name in NAMES:
        (package / name).touch()
    (info / "METADATA").write_text("Metadata-Version: 2.4\nName: knowngood-evidence\nVersion: 0.2.0\n")
    (info / "RECORD").write_text("".join(f"knowngood_evidence/{name},,\n" for name in (*NAMES, "README.md")))


def test_a_checkout_finds_its_own() -> None:
    found = shipped.shipped_evidence()
    assert found == sorted(found)
    assert {one.parent for one in found} == {shipped_catalogue() / "evidence"}


def test_elsewhere_it_is_what_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipped, "SHIPPED", tmp_path / "none")
    assert shipped.shipped_evidence() == []
    install(tmp_path / "site")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    assert [one.name for one in shipped.shipped_evidence()] == sorted(NAMES)
