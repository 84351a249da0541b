"""The digest of an arm's code: what changes it and what does not."""

from pathlib import Path

import pytest

from knowngood.catalogue.script_analysis import arm_code, parse_script
from tests.catalogue.given import Example

TEXT = '''"""A script."""

import math
import torch
import torch._dynamo

LIMIT = 3
UNUSED = 4
torch._dynamo.config.suppress_errors = False


class WrongResult(Exception):
    """Raised where numbers differ."""


class Unused:
    pass


@torch.library.impl("ns::op", "cpu")
def _registered(x):
    return x + 1


def _deep(x):
    return x * LIMIT  # three


def _helper(x):
    return _deep(x)


def _unused(x):
    return x


# Between the functions.
def control(size=2):
    return {"size": size}


def baseline(size=2):
    """The suspect path."""
    if _helper(size) < 0:
        raise WrongResult("negative")
    return {"size": math.floor(size)}


if __name__ == "__main__":
    print(control())
'''


def _digests(text: str) -> tuple[str, str]:
    script = parse_script(text, Path("repro.py"))
    return arm_code(script, "control"), arm_code(script, "baseline")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return x * LIMIT  # three", "return x * LIMIT  # 3"),
        ("return x * LIMIT", "return x + LIMIT"),
        ("return _deep(x)", "return _deep(x) + 0"),
        ("LIMIT = 3", "LIMIT = 3.0"),
        ('"""Raised where', '"""Told where'),
        ("import math", "import cmath as math"),
        ('"""The suspect path."""', '"""The path."""'),
        ("def baseline(size=2)", "def baseline(size=3)"),
    ],
    ids=[
        "a comment of a helper",
        "a helper's helper",
        "a helper",
        "a constant",
        "a class",
        "an import",
        "a docstring",
        "a default",
    ],
)
def test_what_an_arm_uses_is_part_of_its_code(old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    control, baseline = _digests(TEXT)

    changed_control, changed_baseline = _digests(TEXT.replace(old, new))

    assert changed_control == control
    assert changed_baseline != baseline


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("suppress_errors = False", "suppress_errors = True"),
        ('"ns::op"', '"ns::other"'),
        ("return x + 1", "return x + 2"),
        ("LIMIT = 3", "LIMIT = 3\ntorch.manual_seed(0)"),
    ],
    ids=["a setting", "a registration", "what is registered", "a call"],
)
def test_what_acts_on_import_is_part_of_every_arm(old: str, new: str) -> None:
    control, baseline = _digests(TEXT)

    changed_control, changed_baseline = _digests(TEXT.replace(old, new))

    assert changed_control != control
    assert changed_baseline != baseline


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""A script."""', '"""Another docstring."""'),
        ("UNUSED = 4", "UNUSED = 5"),
        ("class Unused:\n    pass", "class Unused:\n    x = 1"),
        ("def _unused(x):\n    return x", "def _unused(x):\n    # A comment.\n    return -x"),
        ("# Between the functions.", "# Between functions."),
        ("    print(control())", "    print(baseline())"),
        ("LIMIT = 3", "\n\nLIMIT = 3"),
        ("\n", "\r\n"),
    ],
    ids=[
        "the docstring of the script",
        "a constant not used",
        "a class not used",
        "a comment in another function",
        "a comment between functions",
        "what makes it run by itself",
        "empty lines",
        "line ends",
    ],
)
def test_what_an_arm_does_not_use_is_no_part_of_its_code(old: str, new: str) -> None:
    assert _digests(TEXT.replace(old, new)) == _digests(TEXT)


def test_a_mended_signature_costs_no_run(example: Example) -> None:
    mended = example.script.replace(r"got torch\.int\d+", r"got torch\.int64")

    assert mended != example.script
    assert _digests(mended) == _digests(example.script)


def test_the_digest_is_the_same_on_every_python() -> None:
    """Pinned, since a digest that moved with our own interpreter would throw away every result. CI runs several."""
    assert _digests(TEXT) == ("46aab54df6c62322a2c99557bb29103a", "fdfad2d2042d4f4edb22b6405fc206df")
