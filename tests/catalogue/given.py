"""The full example of repros/README.md is the sound issue that these tests break in one place each."""

import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from knowngood.catalogue.loader import Catalogue, read_catalogue, shipped_catalogue
from knowngood.catalogue.script_analysis import OPENING, TAIL, assembled


@cache
def shipped() -> Catalogue:
    """The catalogue that the product comes with: a second to read, for whichever test of a process is the first."""
    return read_catalogue([shipped_catalogue()])


@dataclass(frozen=True)
class Example:
    """The two texts of an issue, and how to change and write them."""

    document: str
    script: str
    id: str = "pytorch-191308"

    def changed(self, *, document: tuple[str, str] | None = None, script: tuple[str, str] | None = None) -> "Example":
        """The example with one text put for another; the first must be there once, so that no row is a mistake."""
        for text, change in ((self.document, document), (self.script, script)):
            assert change is None or text.count(change[0]) == 1, change
        return replace(
            self,
            document=self.document.replace(*document) if document else self.document,
            script=self.script.replace(*script) if script else self.script,
        )

    def write(self, folder: Path) -> Path:
        place = folder / self.id
        place.mkdir(parents=True)
        (place / "issue.toml").write_text(self.document, encoding="utf-8")
        (place / "repro.py").write_text(self.script, encoding="utf-8")
        return folder


def read_example() -> Example:
    readme = (shipped_catalogue() / "README.md").read_text(encoding="utf-8")
    (document,) = re.findall(r"^````toml\n(.*?)^````$", readme, re.DOTALL | re.MULTILINE)
    (script,) = re.findall(r'^```python\n(""".*?)^```$', readme, re.DOTALL | re.MULTILINE)
    script = script.replace("# (standalone, first half)\n", OPENING + "\n")
    return Example(document, script.replace("# (standalone, second half)\n", TAIL))


def make_toy(file: Path, body: str, *, is_one_file: bool = True) -> Path:
    """A script that runs by itself, of a body that needs no torch; else it needs `standalone.py` above its folder."""
    text = f'"""toy-1: 100% pure."""\n\n{OPENING}\n{body}\n\n{TAIL}'
    file.parent.mkdir(exist_ok=True)
    file.write_text(assembled(text) if is_one_file else text, encoding="utf-8")
    return file
