"""A log from terminals, schedulers, trackers and log collectors reads like the plain log it was."""

import json

import pytest

from knowngood.environments.log_cleaning import LONGEST, read_paste, stated_by, versions_of

LINE = "RuntimeError: it broke here"


@pytest.mark.parametrize(
    "wrapped",
    [
        pytest.param(LINE, id="as it is"),
        pytest.param(f"\x1b[1;31m{LINE}\x1b[0m", id="colours"),
        pytest.param(f"[31m{LINE}[0m", id="colours that lost their escape"),
        pytest.param(f"\x1b]8;;http://x\x07{LINE}\x1b]8;;\x07", id="a terminal's link"),
        pytest.param(f"[rank0]: {LINE}", id="torchrun"),
        pytest.param(f"[default3]:{LINE}", id="an older torchrun"),
        pytest.param(f"rank1: {LINE}", id="torch 2.5's ranks"),
        pytest.param(f"[1,0]<stderr>:{LINE}", id="mpirun"),
        pytest.param(f"(RayTrainWorker pid=1234, ip=10.0.0.7) {LINE}", id="Ray"),
        pytest.param(f"(EngineCore_0 pid=77) ERROR 04-01 12:00:00 [core.py:590] {LINE}", id="vLLM"),
        pytest.param(f"2026-04-01T12:00:00.1234567Z {LINE}", id="GitHub Actions"),
        pytest.param(f"2026-04-01 12:00:00,123 | ERROR | {LINE}", id="logging"),
        pytest.param(f"[2026-04-01 12:00:00,123] ERROR: {LINE}", id="logging in brackets"),
        pytest.param(f"E0401 12:00:00.123000 4242 torch/_dynamo/convert.py:77] [0/0] {LINE}", id="torch's own log"),
        pytest.param(f"Apr  1 12:00:00 node7 python[4242]: {LINE}", id="journald"),
        pytest.param(f"2026-04-01T12:00:00.1Z stderr F {LINE}", id="a container runtime"),
        pytest.param(f"worker-1  | {LINE}", id="docker compose"),
        pytest.param(f"> > {LINE}", id="quoted twice"),
        pytest.param(f"> [rank2]: 2026-04-01T12:00:00Z {LINE}", id="all of it"),
        pytest.param(f"E   {LINE}", id="pytest"),
        pytest.param(f"│ {LINE}    │", id="the box of rich"),
        pytest.param(f"{LINE}\x00", id="a NUL"),
    ],
)
def test_what_wraps_a_line_is_taken_off(wrapped: str) -> None:
    assert read_paste(wrapped).lines == (LINE,)


def test_code_and_compilers_keep_their_lines() -> None:
    text = "/u/x.cpp:55:13: error: 'tmp1' was not declared\n   55 |     auto tmp2 = tmp1;\n      |                 ^~~~"
    assert read_paste(text).text == text
    frame = '  File "/a/site-packages/torch/fx.py", line 1, in f\n    return {"a": [1]}'
    assert read_paste(frame).text == frame


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_end_as_on_any_system(end: str) -> None:
    assert read_paste(end.join(("one", "two", LINE))).lines == ("one", "two", LINE)


def test_a_traceback_inside_a_json_record_is_unfolded_and_keeps_its_place() -> None:
    record = json.dumps({"level": "error", "exc": {"trace": [f'Traceback\n  File "x.py", line 1\n{LINE}']}})
    pasted = read_paste(f"starting\n2026-04-01T12:00:00Z {record}\ndone")
    assert LINE in pasted.lines
    assert pasted.places[pasted.lines.index(LINE)] == 2


def test_a_json_document_over_many_lines_is_unfolded() -> None:
    assert LINE in read_paste(json.dumps([{"message": f"a\n{LINE}"}], indent=2)).lines


def test_a_record_that_was_cut_short_still_gives_its_lines() -> None:
    assert LINE in read_paste(f'{{"exc": "Traceback\\n  File \\"x.py\\"\\n{LINE}\\n').lines


def test_braces_at_the_end_of_a_message_lose_nothing() -> None:
    text = "Unsupported: call_function UserDefinedClassVariable(<class 'repro._Pair'>) [LazyVariableTracker()] {}"
    assert read_paste(text).lines == (text,)


def test_of_a_very_long_text_the_beginning_and_the_end_are_read() -> None:
    pasted = read_paste(f"PyTorch version: 2.6.0\n{'x' * 80}\n" + "noise\n" * LONGEST + LINE)
    assert pasted.left_out > 0
    assert pasted.lines[0] == "PyTorch version: 2.6.0"
    assert pasted.lines[-1] == LINE


def test_a_line_without_end_is_cut_to_its_ends() -> None:
    pasted = read_paste("a" * 900_000 + "z")
    assert len(pasted.text) < 5_000
    assert pasted.text.endswith("z")


@pytest.mark.parametrize("text", ["", " \n ", "\x00\x01\x02", "[" * 100_000, '{"a":' * 50_000, "\ud800"])
def test_anything_is_a_paste(text: str) -> None:
    read_paste(text)


COLLECT_ENV = """\
Collecting environment information...
PyTorch version: 2.7.1+cu126
Is debug build: False
CUDA used to build PyTorch: 12.6
Python version: 3.12.3 (main, Feb  4 2025, 14:48:35) [GCC 13.3.0] (64-bit runtime)
CUDA runtime version: 12.4.131
GPU models and configuration: GPU 0: NVIDIA H100 80GB HBM3
Nvidia driver version: 550.54.15
Versions of relevant libraries:
[pip3] numpy==2.2.6
[pip3] torch==2.7.1
[pip3] triton==3.3.1
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            COLLECT_ENV,
            {"torch": "2.7.1+cu126", "CUDA": "12.6", "Triton": "3.3.1", "Python": "3.12.3", "driver": "550.54.15"},
            id="collect_env",
        ),
        pytest.param(
            "torch==2.6.0\ntriton==3.2.0\nnvidia-cuda-runtime-cu12==12.4.127\ntorchvision==0.21.0",
            {"torch": "2.6.0", "Triton": "3.2.0", "CUDA": "12.4.127"},
            id="pip freeze",
        ),
        pytest.param("I use torch 2.7.1+cu126 on Python 3.11", {"torch": "2.7.1+cu126", "Python": "3.11"}, id="words"),
        pytest.param("pytorch 2.6 breaks", {"torch": "2.6.0"}, id="a release in short"),
        pytest.param("PyTorch version: 2.8.0.dev20250401+cu126", {"torch": "2.8.0.dev20250401+cu126"}, id="a nightly"),
        pytest.param(">>> torch.__version__\n'2.5.1+cu124'", {"torch": "2.5.1+cu124"}, id="the interpreter"),
        pytest.param(
            '  File "/opt/venv/lib/python3.10/site-packages/torch/x.py", line 1, in f', {"Python": "3.10"}, id="a path"
        ),
        pytest.param("torch-2.7.0%2Bcu128-cp312-cp312-manylinux.whl", {"torch": "2.7.0+cu128"}, id="a wheel"),
        pytest.param("[conda] torch    2.4.1   pypi_0  pypi", {"torch": "2.4.1"}, id="conda"),
        pytest.param("| NVIDIA-SMI 550.54  Driver Version: 550.54  CUDA Version: 12.4 |", {}, id="the driver's CUDA"),
        pytest.param("torchvision==0.22.1+cu126", {}, id="another package"),
        pytest.param("the torch burned for 2.5 hours", {}, id="prose"),
        pytest.param("torch 2.6s per step, torch 2.6 GB, torch is 2.6 times faster", {}, id="a measure"),
        pytest.param("it fails on torch 2.6 with a transposed mask", {"torch": "2.6.0"}, id="in a sentence"),
        pytest.param("my torch version is 2.6.0", {"torch": "2.6.0"}, id="said to be"),
        pytest.param("version 2.6 of torch, py3.12", {"torch": "2.6.0", "Python": "3.12"}, id="version of"),
        pytest.param("I use `torch` 2.6.0 and **triton** 3.2.0", {"torch": "2.6.0", "Triton": "3.2.0"}, id="marked up"),
        pytest.param("torch nightly 2.9.0.dev20250901", {"torch": "2.9.0.dev20250901"}, id="said to be a nightly"),
        pytest.param(
            "xFormers was built for:\n    PyTorch 2.0.0+cu118 with CUDA 1108 (you have 2.6.0+cu126)\n"
            "    Python  3.10.11 (you have 3.10.6)",
            {"torch": "2.6.0+cu126", "Python": "3.10.6"},
            id="what you have, and what it was built for",
        ),
        pytest.param("xformers 2.0.0+cu118, flash-attn==2.5.0+cu121", {}, id="versions after other packages' names"),
        pytest.param("> [rank0]: PyTorch version: 2.9.0+cu128", {"torch": "2.9.0+cu128"}, id="quoted"),
    ],
)
def test_versions_are_read_from_the_surest_source(text: str, told: dict[str, str]) -> None:
    found = {one.name: one.value for one in versions_of(read_paste(text))}
    kept = {name: value for name, value in found.items() if name != "GPU"}
    assert {name: kept.get(name) for name in told} == told
    assert told or "torch" not in kept


def test_two_torches_are_both_told() -> None:
    found = versions_of(read_paste("torch 2.6.0 works and torch 2.7.1 does not"))
    assert [one.value for one in found if one.name == "torch"] == ["2.6.0", "2.7.1"]


def test_both_ends_of_an_upgrade_are_told() -> None:
    found = versions_of(read_paste("after upgrading from torch 2.5.1 to 2.6.0 it fails"))
    assert [one.value for one in found if one.name == "torch"] == ["2.5.1", "2.6.0"]


def test_a_toolkit_that_lies_about_decides_no_build() -> None:
    stated = stated_by(versions_of(read_paste("torch 2.6.0\nCUDA 11.8 is installed\nPython 3.11.9")))
    assert [(pin.name, pin.version) for pin in stated.pins] == [("torch", "2.6.0")]
    assert stated.python == "3.11"
    built = stated_by(versions_of(read_paste(COLLECT_ENV)))
    assert ("nvidia-cuda-runtime", "12.6") in {(pin.name, pin.version) for pin in built.pins}
