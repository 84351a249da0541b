import os
import stat
from pathlib import Path

import jinja2
import pytest
from jinja2 import Environment, FileSystemLoader, nodes
from starlette.testclient import TestClient

from knowngood.server import create_app
from knowngood.store.engine import connect
from knowngood.web.app_state import state_of
from knowngood.web.html.templates import TEMPLATES, TemplateBytecode, make_templates, read_assets
from tests.make import NOON


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Site":
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    monkeypatch.setattr("sys.pycache_prefix", None)
    return Site(tmp_path / "templates")


class Site:
    """A folder with one template, and what compiles it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.page, self.maker = folder / "page.html", folder.parent / "maker.py"
        self.page.write_text("{{ name }} was here")
        self.maker.write_text("trims = True")

    def shown(self) -> tuple[str, int]:
        """The page as a process that begins shows it, and how often that compiled something."""
        compiled: list[str] = []

        class Counting(Environment):
            def _generate(self, *given: object, **named: object) -> str:
                compiled.append("once")
                return super()._generate(*given, **named)  # type: ignore[arg-type]

        cache = TemplateBytecode(self.page.parent, made_by=self.maker)
        environment = Counting(loader=FileSystemLoader(self.page.parent), bytecode_cache=cache)
        return environment.get_template("page.html").render(name="Ada"), len(compiled)

    @property
    def kept(self) -> list[Path]:
        return list((self.page.parent / "__pycache__").glob("*"))


def test_a_template_is_compiled_once_for_all_processes(site: Site) -> None:
    assert site.shown() == ("Ada was here", 1)
    assert site.shown() == ("Ada was here", 0)


def test_what_was_compiled_may_be_read_by_whoever_may_read_the_template(site: Site) -> None:
    site.shown()
    (kept,) = site.kept
    assert stat.S_IMODE(kept.stat().st_mode) == 0o644


def test_a_changed_template_is_compiled_anew_even_where_its_time_and_size_stayed(site: Site) -> None:
    site.shown()
    before = site.page.stat()
    site.page.write_text("{{ name }} was gone")
    os.utime(site.page, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert site.shown() == ("Ada was gone", 1)
    assert len(site.kept) == 1


def test_another_release_of_jinja_compiles_anew(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.shown()
    monkeypatch.setattr(jinja2, "__version__", "99.1")
    assert site.shown() == ("Ada was here", 1)


def test_other_options_of_the_environment_compile_anew(site: Site) -> None:
    site.shown()
    site.maker.write_text("trims = False")
    assert site.shown() == ("Ada was here", 1)


@pytest.mark.parametrize("damaged", [b"", b"j2", b"something else", b"cut"])
def test_a_damaged_file_is_passed_over_and_made_anew(site: Site, damaged: bytes) -> None:
    site.shown()
    (kept,) = site.kept
    kept.write_bytes(kept.read_bytes()[:-20] if damaged == b"cut" else damaged)
    assert site.shown() == ("Ada was here", 1)
    assert site.shown() == ("Ada was here", 0)


def test_where_nothing_may_be_written_pages_are_shown_all_the_same(site: Site) -> None:
    (site.page.parent / "__pycache__").write_text("a file where the folder would be")
    assert site.shown() == ("Ada was here", 1)


def test_who_asks_python_to_write_no_bytecode_gets_none_of_templates(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert site.shown() == ("Ada was here", 1)
    assert not site.kept


def test_bytecode_goes_where_python_is_told_to_keep_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.pycache_prefix", str(tmp_path / "elsewhere"))
    assert [site.shown()[1], site.shown()[1]] == [1, 0]
    assert not site.kept


def test_before_the_first_request_every_template_is_at_hand() -> None:
    app = create_app(connect("sqlite://"), clock=lambda: NOON)
    with TestClient(app):
        held = state_of(app).templates.env.cache
        assert held is not None
        assert {name for _, name in held} == {path.name for path in TEMPLATES.glob("*.html")}


@pytest.mark.parametrize("name", sorted(path.name for path in TEMPLATES.glob("*.html")))
def test_no_template_filters_a_constant_which_would_be_done_once_and_kept(name: str) -> None:
    """What is kept would outlive a change of the filter."""
    tree = make_templates(read_assets()).env.parse((TEMPLATES / name).read_text())
    assert not [one.name for one in tree.find_all(nodes.Filter) if isinstance(one.node, nodes.Const)]
