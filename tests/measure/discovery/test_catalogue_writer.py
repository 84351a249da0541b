"""New builds in a file that people keep."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from knowngood.catalogue.loader import read_builds, shipped_catalogue
from knowngood.domain.errors import BadRequest
from knowngood.measure.discovery.cli import add_builds, as_toml
from knowngood.measure.discovery.releases import BuildProposal

SHIPPED = shipped_catalogue() / "builds.toml"
NEW = BuildProposal(
    torch="2.99.0",
    local="cu140",
    cuda="14.0",
    triton="4.0.0",
    as_of=date(2027, 2, 1),
    released=date(2027, 1, 10),
    pythons=("3.12",),
    git="0" * 40,
)
PATCH = replace(NEW, torch="2.6.1", local="cu124", cuda="12.4", triton="3.2.0", git="", pythons=())
FORCED = replace(NEW, torch="2.15.0", local="cu132", cuda="13.2", triton="3.9.0", with_triton="3.10.0", note="Forced.")


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    file = tmp_path / "builds.toml"
    file.write_bytes(SHIPPED.read_bytes())
    return file


def test_builds_stand_behind_the_last_older_one_of_their_kind_and_nothing_else_changes(kept: Path) -> None:
    before = kept.read_text()
    add_builds(kept, [FORCED, NEW, PATCH])
    after = kept.read_text()
    for made in (NEW, PATCH, FORCED):
        assert f"\n\n{as_toml(made)}\n\n" in after
        after = after.replace(f"{as_toml(made)}\n\n", "")
    assert after == before, "without the new tables it is what it was, comments, order and blank lines"
    ids = [line.split('"')[1] for line in kept.read_text().split("\n") if line.startswith("torch = ")]
    assert ids.index("2.6.1") == ids.index("2.6.0") + 1
    assert ids.index("2.99.0") == ids.index("2.15.0") + 1
    sections = kept.read_text().split("# --- ")
    assert 'torch = "2.99.0"' in sections[1]
    assert 'with_triton = "3.10.0"' in sections[2]
    added = {build.id for build in read_builds(kept)} - {build.id for build in read_builds(SHIPPED)}
    assert added == {
        "torch-2.99.0+cu140",
        "torch-2.99.0+cu140~py312",
        "torch-2.6.1+cu124",
        "torch-2.15.0+cu132~triton-3.10.0",
        "torch-2.15.0+cu132~triton-3.10.0~py312",
    }


def test_a_build_that_is_there_is_refused_and_the_file_stays(kept: Path) -> None:
    add_builds(kept, [NEW])
    before = kept.read_bytes()
    with pytest.raises(BadRequest, match="is there already"):
        add_builds(kept, [NEW])
    assert kept.read_bytes() == before
    assert [path.name for path in kept.parent.iterdir()] == ["builds.toml"]


def test_what_the_schema_refuses_is_not_written(kept: Path) -> None:
    before = kept.read_bytes()
    with pytest.raises(BadRequest, match="cannot take the new builds"):
        add_builds(kept, [NEW, replace(PATCH, cuda="11.8")])
    assert kept.read_bytes() == before


def test_line_ends_and_permissions_stay(kept: Path) -> None:
    kept.write_bytes(SHIPPED.read_bytes().replace(b"\n", b"\r\n"))
    kept.chmod(0o640)
    add_builds(kept, [NEW])
    assert kept.read_bytes().count(b"\n") == kept.read_bytes().count(b"\r\n")
    assert kept.stat().st_mode & 0o777 == 0o640


def test_an_empty_file_gets_its_first_build(tmp_path: Path) -> None:
    file = tmp_path / "builds.toml"
    file.write_text("# Ours.\n")
    add_builds(file, [NEW])
    assert file.read_text() == f"# Ours.\n\n{as_toml(NEW)}\n"


def test_a_linked_file_is_written_where_it_lies(kept: Path, tmp_path: Path) -> None:
    link = tmp_path / "elsewhere" / "builds.toml"
    link.parent.mkdir()
    link.symlink_to(kept)
    add_builds(link, [NEW])
    assert link.is_symlink()
    assert "2.99.0" in kept.read_text()


def test_a_file_that_is_not_there_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="cannot be read"):
        add_builds(tmp_path / "none.toml", [NEW])
