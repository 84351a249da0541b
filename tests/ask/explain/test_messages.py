"""What explain says of messages that an installation causes, as people posted them.

The 424 threads were gathered before the messages were written down. The 73 of `held_out.txt` were gathered by others,
who had not seen what was written, and committed before the messages met them: 72 were told right (5f97c26e).
"""

import re
from pathlib import Path

import pytest

from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.messages import shipped_messages
from knowngood.catalogue.hostile_text import is_slow
from tests.ask.explain.test_threads import Ask, ask, texts_of

__all__ = ["ask"]

HERE = Path(__file__).parent
MESSAGES = {known.meaning.id: known for known in shipped_messages()}
SPLIT = {  # kinds that became several messages or have another name, and one beside which another is right too
    "uv-no-solution": {"uv-no-solution", "macos-intel"},
    "cudnn-missing": {"cudnn8-missing", "cudnn9-unable-to-load", "cudnn-missing", "cudnn-version-clash"},
    "numpy2": {"numpy2", "numpy-not-available"},
    "cuda-home": {"cuda-home", "nvcc-missing"},
    "cublas-symbol": {"cublas-symbol", "cublas-not-found"},
    "torchcodec-load": {"torchcodec-load", "torchcodec-missing"},
    "apex-missing": {"apex-missing", "apex-amp-removed"},
    "rope": {"dtensor-import"},
    "setuptools-pkg": {"setuptools-pkg-resources", "setuptools-missing"},
}
INSTALL = "pip install --force-reinstall --no-deps"
CU126 = "--index-url https://download.pytorch.org/whl/cu126"
MISSED = {"https://github.com/turboderp-org/exllamav3/issues/101"}  # nothing in it says that it is Windows


def told(explained: Explanation) -> set[str]:
    """The messages that it names, and those that a row which it names says better."""
    rows = {match.issue for match in explained.matches}
    better = {id_ for id_, known in MESSAGES.items() if rows & set(known.better)}
    return {meaning.id for meaning in explained.meanings} | better


@pytest.mark.parametrize("file", ["threads", "held_out"])
def test_a_message_that_somebody_posted_is_told_with_what_to_do(ask: Ask, file: str) -> None:
    wrong = set()
    for head, text in texts_of(HERE / "messages" / f"{file}.txt").items():
        address, _, kind, _ = head.split()
        explained = ask(text)
        right = SPLIT.get(kind, {kind}) | (set(MESSAGES[kind].better) if kind in MESSAGES else set())
        wrong |= set() if told(explained) and told(explained) <= right else {address}
        assert all(meaning.command and meaning.fact and meaning.line for meaning in explained.meanings), address
    assert wrong == (MISSED if file == "held_out" else set())


@pytest.mark.parametrize("id_", MESSAGES)
def test_a_message_is_as_its_file_says(id_: str) -> None:
    known = MESSAGES[id_]
    threads = {head.split()[0] for head in texts_of(HERE / "messages" / "threads.txt") if head.split()[2] == id_}
    assert len(threads) >= 2 or id_ == "torch-not-installed"
    assert all(source.startswith("https://") for source in known.meaning.sources)
    assert all(re.fullmatch(r"2\.\d+(\.\d+)?", torch) for torch in known.commands)


@pytest.mark.sample(2, "soak")
@pytest.mark.parametrize("pattern", sorted({pattern for known in MESSAGES.values() for pattern in known.patterns}))
def test_a_message_is_quick_on_what_is_written_to_be_slow(pattern: str) -> None:
    assert not is_slow(pattern)


@pytest.mark.parametrize(
    ("stated", "text", "command"),
    [
        (
            "torch==2.6.0+cu126",
            "RuntimeError: operator torchvision::nms does not exist",
            f'{INSTALL} "torchvision==0.21.0" {CU126}',
        ),
        (
            "torch==2.14.1",
            "RuntimeError: operator torchvision::nms does not exist",
            f'{INSTALL} "torchvision>=0.29.1"',
        ),
        (
            "PyTorch 2.5.1+cu124 with CUDA 1204 (you have 2.6.0+cu126)",
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
            f'{INSTALL} "xformers==0.0.29.post2" {CU126}',
        ),
        (
            "torch 2.6.0",
            "cannot import name 'AttrsDescriptor' from 'triton.compiler.compiler'",
            'pip install "triton==3.2.0"',
        ),
    ],
)
def test_the_command_is_for_the_torch_that_is_stated(ask: Ask, stated: str, text: str, command: str) -> None:
    (meaning,) = ask(f"{text}\n    {stated}").meanings
    assert meaning.command == command
