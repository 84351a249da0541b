"""Packs on disk: what was put in comes out, whatever interrupts the writer, and nothing damaged is ever laid out."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uv import find_uv_bin

from knowngood.domain.errors import BadPack
from knowngood_workers.pack import unpack
from knowngood_workers.pack.builder import open_pack
from knowngood_workers.pack.part_writer import PartWriter, fetch
from knowngood_workers.pack.unpack import PackProblem

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
SAID = {"format": unpack.FORMAT, "version": 1, "id": "abc", "python": PYTHON, "platform": "manylinux_2_28_x86_64"}
LAST = {"made_by": "0", "builds": [], "issues": [], "catalogue": [], "expected": [], "left_out": {}}
FILES = {"wheels/a.whl": b"a" * 700, "wheels/b.whl": b"b" * 2500, "locks/c.toml": b"", "d": b"d" * 12}


def make_pack(folder: Path, files: Mapping[str, bytes] = FILES, part_bytes: int = 1000, **said: Any) -> Path:
    with PartWriter(folder, part_bytes, {**SAID, **said}) as writer:
        for path, content in files.items():
            writer.put(path, content)
        writer.finish(LAST)
    return folder


def files_below(folder: Path) -> dict[str, bytes]:
    kept = (path for path in folder.rglob("*") if path.is_file() and path.name != "taken-in.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


def parts_of(pack: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(pack.glob("part-*"))}


contents = st.dictionaries(st.sampled_from(["a", "b/c", "b/d", "e.whl"]), st.binary(max_size=100), min_size=1)


@given(files=contents, part_bytes=st.integers(1, 150), broken_at=st.integers(0, 100), data=st.data())
def test_what_was_put_in_comes_out_however_it_was_cut_and_interrupted(
    files: dict[str, bytes],
    part_bytes: int,
    broken_at: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("pack")
    killed_before = data.draw(st.sampled_from(list(files)))
    with PartWriter(folder / "pack", part_bytes, SAID) as first, suppress(KeyboardInterrupt):
        for path, content in files.items():
            if path == killed_before:
                first.stream(path, sha256_of(content), partial(broken, content, broken_at))
            first.put(path, content)
    make_pack(folder / "pack", files, part_bytes)
    make_pack(folder / "undisturbed", files, part_bytes)

    unpack.unpack(folder / "pack", folder / "out")

    assert files_below(folder / "out") == files
    assert parts_of(folder / "pack") == parts_of(folder / "undisturbed")


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def broken(content: bytes, at: int) -> Iterator[bytes]:
    """A download whose process is stopped in the middle."""
    yield content[:at]
    raise KeyboardInterrupt


def test_a_download_that_breaks_off_is_tried_again_from_its_beginning(tmp_path: Path) -> None:
    tries = iter([OSError("reset by peer"), None])

    def chunks() -> Iterator[bytes]:
        yield b"x" * 150
        failure = next(tries)
        if failure:
            raise failure
        yield b"y" * 150

    with PartWriter(tmp_path / "pack", 100, SAID) as writer:
        writer.stream("wheel", sha256_of(b"x" * 150 + b"y" * 150), chunks)
        writer.finish(LAST)
    unpack.unpack(tmp_path / "pack", tmp_path / "out")
    assert files_below(tmp_path / "out") == {"wheel": b"x" * 150 + b"y" * 150}


def test_a_file_that_is_not_what_the_lock_says_is_not_packed(tmp_path: Path) -> None:
    refusal = "wheel could not be packed .its SHA-256 is not the one in the lock"
    with PartWriter(tmp_path / "pack", 100, SAID) as writer:
        with pytest.raises(BadPack, match=refusal):
            writer.stream("wheels/wheel", sha256_of(b"expected"), lambda: iter([b"another"]))
        writer.finish(LAST)
    unpack.unpack(tmp_path / "pack", tmp_path / "out")
    assert files_below(tmp_path / "out") == {}


def test_an_extended_pack_keeps_the_parts_that_were_carried_already(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack")
    before = parts_of(pack)
    make_pack(pack, {**FILES, "wheels/new.whl": b"n" * 1500, "d": b"changed"})
    after = parts_of(pack)
    assert {name: after[name] for name in before} == before
    assert len(after) > len(before)
    unpack.unpack(pack, tmp_path / "out")
    assert files_below(tmp_path / "out") == {**FILES, "wheels/new.whl": b"n" * 1500, "d": b"changed"}


def test_parts_that_were_taken_in_are_needed_no_more(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack")
    unpack.unpack(pack, tmp_path / "out")
    for name in parts_of(pack):
        (pack / name).unlink()
    make_pack(pack, {**FILES, "more": b"m"})
    unpack.unpack(pack, tmp_path / "out")
    assert files_below(tmp_path / "out") == {**FILES, "more": b"m"}


@pytest.mark.parametrize("part", [1, 2, 3, 4])
def test_one_flipped_byte_names_its_part_and_a_good_copy_of_it_mends_all(tmp_path: Path, part: int) -> None:
    pack = make_pack(tmp_path / "pack")
    damaged = pack / f"part-000{part}"
    good = damaged.read_bytes()
    damaged.write_bytes(good[:10] + bytes([good[10] ^ 1]) + good[11:])
    with pytest.raises(PackProblem, match=f"part-000{part} is damaged .* copy that part again"):
        unpack.unpack(pack, tmp_path / "out")
    damaged.write_bytes(good)
    unpack.unpack(pack, tmp_path / "out")
    assert files_below(tmp_path / "out") == FILES


def test_missing_parts_are_named_before_anything_is_read(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack")
    (pack / "part-0002").unlink()
    with pytest.raises(PackProblem, match="part-0002 of the pack is missing: copy what is not here"):
        unpack.unpack(pack, tmp_path / "out")
    assert files_below(tmp_path / "out") == {}


def resigned(pack: Path, **said: Any) -> None:
    manifest = {**json.loads((pack / "manifest.json").read_text()), **said}
    (pack / "manifest.json").write_text(json.dumps({**manifest, "sha256": unpack.digest_of(manifest)}))


def edited(pack: Path) -> None:
    text = (pack / "manifest.json").read_text()
    (pack / "manifest.json").write_text(text.replace("wheels/a.whl", "wheels/z.whl"))


def cut_off(pack: Path) -> None:
    (pack / "manifest.json").write_text((pack / "manifest.json").read_text()[:100])


def unfinished(pack: Path) -> None:
    (pack / "manifest.json").rename(pack / "unfinished.json")


def outside(pack: Path) -> None:
    files = json.loads((pack / "manifest.json").read_text())["files"]
    resigned(pack, files=[{**files[0], "path": "../../evil"}])


REFUSED = {
    "an edited manifest": (edited, "manifest.json is damaged"),
    "a manifest that was cut off": (cut_off, "manifest.json is damaged"),
    "a pack that was never finished": (unfinished, "is not finished; give the same `knowngood pack` command again"),
    "no pack at all": (lambda pack: (pack / "manifest.json").unlink(), "is no pack: it has no manifest.json"),
    "another product's": (lambda pack: resigned(pack, format="other"), "is no manifest of a Known Good pack"),
    "a later format": (lambda pack: resigned(pack, version=9), "is of pack format 9 and this release reads 1"),
    "a format that is none": (lambda pack: resigned(pack, version=True), "is of pack format True and this release"),
    "a format below the first": (lambda pack: resigned(pack, version=-1), "is of pack format -1 and this release"),
    "a path that leads out": (outside, "names a file outside itself"),
    "an id that leads out": (lambda pack: resigned(pack, id="../../evil"), "has no id that a folder could be named by"),
}


@pytest.mark.parametrize(("spoil", "words"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_whole_pack_of_ours_is_refused_with_a_sentence(tmp_path: Path, spoil: Any, words: str) -> None:
    pack = make_pack(tmp_path / "pack")
    spoil(pack)
    with pytest.raises(BadPack, match=words):
        open_pack(pack, tmp_path / "data", tell=lambda _: None)


@pytest.mark.parametrize("link", ["wheels", "wheels/a.whl", "wheels/a.whl.making", "taken-in.json.making", "uv"])
def test_nothing_is_written_through_a_link_where_a_pack_is_laid_out(tmp_path: Path, link: str) -> None:
    pack, target, elsewhere = make_pack(tmp_path / "pack"), tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").write_text("the only copy")
    (target / link).parent.mkdir(parents=True, exist_ok=True)
    (target / link).symlink_to(elsewhere if link == "wheels" else elsewhere / "thesis.txt")
    with pytest.raises(unpack.PackProblem, match=f"{link} is a symbolic link"):
        unpack.unpack(pack, target)
    assert files_below(elsewhere) == {"thesis.txt": b"the only copy"}
    (target / link).unlink()
    (target / "worker-environment" / "bin").mkdir(parents=True)
    (target / "worker-environment" / "bin" / "python").symlink_to(sys.executable)
    unpack.unpack(pack, target)
    assert files_below(target).items() >= FILES.items()


def test_a_pack_is_started_by_the_python_it_was_made_for(tmp_path: Path) -> None:
    pack = make_pack(tmp_path / "pack", python="2.7")
    ran = subprocess.run([sys.executable, pack / "run.py"], capture_output=True, text=True, check=False)
    assert ran.returncode == 4
    assert f"this pack is for Python 2.7 and this is {PYTHON}: start run.py with python2.7" in ran.stderr


@pytest.mark.parametrize(
    ("said", "words"),
    [({"python": "3.9"}, "is a pack for python"), ({"platform": "other"}, "is a pack for platform")],
)
def test_a_pack_for_another_machine_is_not_extended(tmp_path: Path, said: dict[str, str], words: str) -> None:
    pack = make_pack(tmp_path / "pack")
    with pytest.raises(BadPack, match=words):
        PartWriter(pack, 1000, {**SAID, **said})


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("the only copy")
    with pytest.raises(BadPack, match="holds other files"):
        PartWriter(tmp_path, 1000, SAID)


def test_a_wheel_at_no_address_that_can_be_read_is_refused() -> None:
    with pytest.raises(BadPack, match=r"x\.whl lies where it cannot be fetched from"):
        list(fetch("git+ssh://somewhere/x.whl", {}))


def test_a_wheel_made_of_what_is_installed_can_be_installed_though_its_package_brings_others(tmp_path: Path) -> None:
    """setuptools 81 holds whole packages, each with a RECORD of its own: torch 2.12.1 could not be provisioned."""
    site, again = tmp_path / "site", tmp_path / "again"
    content = {
        "outer/__init__.py": "",
        "outer/_vendor/inner-2.dist-info/RECORD": "inner.py,,\n",
        "outer-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: outer\nVersion: 1\n",
        "outer-1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    for name, text in content.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    record = site / "outer-1.dist-info/RECORD"
    record.write_text("".join(f"{name},,\n" for name in [*content, record.relative_to(site)]))
    (installed,) = distributions(path=[str(site)])
    unpack.rewrap(installed, "outer", tmp_path / "wheels")
    uv = [find_uv_bin(), "pip", "install", "-q", "--offline", "--no-index", "--no-deps", "--target", str(again)]
    subprocess.run([*uv, str(tmp_path / "wheels" / "outer-1-py3-none-any.whl")], check=True)
    assert (again / "outer/_vendor/inner-2.dist-info/RECORD").read_text() == "inner.py,,\n"
    assert "outer/__init__.py" in (again / "outer-1.dist-info/RECORD").read_text()
