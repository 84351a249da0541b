"""Pasted failures against the shipped catalogue and its evidence: every issue is found by its own failure, noise does
not hide it, and what is somebody else's fault is never called one of ours.
"""

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import permutations
from pathlib import Path

import pytest

from knowngood.ask.explain.answer import Explanation
from knowngood.ask.explain.matcher import (
    FailureLibrary,
    complete,
    make_failure_library,
    recognise,
)
from knowngood.ask.text_index import SearchBudget
from knowngood.catalogue_digest import shipped_evidence
from knowngood.domain.builds.build import Build
from knowngood.domain.issue import BASELINE, BOUNDS, Issue
from knowngood.domain.measuring.job import Attempt
from knowngood.domain.message import english
from knowngood.domain.verdicts.known import Known
from knowngood.domain.verdicts.outcome import Outcome, classify
from knowngood.share.bundle import LogText, check_bundle, read_items
from knowngood.store.knowledge.model import Knowledge
from tests.ask.explain.substitutions import SUBSTITUTED, as_of_another
from tests.catalogue.given import shipped

FROM_THE_REPORTS = {
    "fla-160-deltanet": "NameError: name 's2' is not defined",
    "pytorch-138354": "WrongResult: expected an output laid out as the query, strides (8, 1), got strides (16, 1)",
    "pytorch-146260": "torch._inductor.exc.LoweringException: NoValidChoicesError: No choices to select",
    "pytorch-152012": "AttributeError: 'NoneType' object has no attribute 'is_python_constant'",
    "pytorch-153476": "AttributeError: 'dict_keys' object has no attribute 'symmetric_difference'",
    "pytorch-166589": "WrongResult: expected Unsupported from the graph break, got the result [2.0]",
    "triton-6124": (
        "WrongResult: expected the product of float32 matmuls, got a relative error of 2e-2 (rows, columns, width)"
    ),
    "unsloth-4001": "AttributeError: 'KernelMetadata' object has no attribute 'cluster_dims'",
}
"""Issues that have not failed on any machine of ours yet: their words as upstream has them."""

# Issues that are one fault, in the same words: by any failure of one the others are found too.
ONE_FAULT = (
    {"fla-160", "fla-160-deltanet", "pytorch-136504"},
    {"pytorch-151290", "pytorch-151523"},
    {"comfyui-gguf-257", "pytorch-151589"},
)

# What is found beside the right issue, and why that is no fault of the signatures.
ALSO = {
    **{pair: "one fault" for twins in ONE_FAULT for pair in permutations(sorted(twins), 2)},
    ("pytorch-172386", "pytorch-117265"): "a wrong gradient in a list, whatever its numbers",
    ("pytorch-64529", "pytorch-117265"): "a wrong gradient of one number, five times over",
    ("pytorch-191136", "pytorch-198343"): "the view that cannot be made, and one particular of it",
    ("pytorch-193265", "pytorch-145861"): "an IndexError of any tuple; told as possible",
    ("pytorch-193793", "pytorch-183610"): "both are killed by SIGFPE, of which the one row says no more",
}

# Whose own words are anybody's, so that they are sure only beside a traceback like the recorded ones.
POSSIBLE = {
    "fla-160-deltanet",  # its own was never recorded here: it stands behind its twins
}


@dataclass(frozen=True)
class Shelf:
    """The shipped catalogue, and the failures recorded of each issue: text by attempt, oldest first."""

    issues: Mapping[str, Issue]
    builds: Mapping[str, Build]
    failures: Mapping[str, Sequence[str]]
    passed: Mapping[str, Sequence[str]]

    def open_library(self, *, without_the_last: bool = False) -> FailureLibrary:
        """The known failures, without the last one of each issue, so that nobody is recognised by himself."""
        kept = {id_: texts[: -1 if without_the_last else None][:4] for id_, texts in self.failures.items()}
        return make_failure_library(self.issues.values(), kept)

    @property
    def measured(self) -> Knowledge:
        """Every build is tested, and no cell says anything."""
        known = Known(self.issues, self.builds, {}, (), datetime(2026, 11, 23, tzinfo=UTC))
        return Knowledge(known, frozenset(self.builds))

    def ask(self, text: str, library: FailureLibrary) -> Explanation:
        measured = self.measured
        found = recognise(library, text, SearchBudget(time.thread_time, 60.0, 20.0))
        return complete(found, library.issues, measured)


@pytest.fixture(scope="module")
def shelf() -> Shelf:
    catalogue = shipped()
    issues = {issue.id: issue for issue in catalogue.issues}
    builds = {build.id: build for build in catalogue.builds}
    failures: dict[str, list[str]] = defaultdict(list)
    passed: dict[str, list[str]] = defaultdict(list)
    items = [item for path in shipped_evidence() for item in read_items(check_bundle(path))]
    logs = {item.digest: item.text for item in items if isinstance(item, LogText)}
    for item in sorted((one for one in items if isinstance(one, Attempt)), key=lambda one: (one.finished_at, one.id)):
        if item.issue in issues and item.build in builds:
            log = logs.get(item.log_digest, "")
            judged = classify(item.record, issues[item.issue], item.arm, builds[item.build], log)
            if judged.outcome is Outcome.PASS and log.strip():
                passed[item.issue].append(log)
            if judged.outcome is Outcome.MATCH and item.arm == BASELINE:
                raised = item.record.raised
                failures[item.issue].append(f"{log}\n{raised.text if raised and raised.text not in log else ''}")
    for id_, text in FROM_THE_REPORTS.items():
        failures.setdefault(id_, [text])
    return Shelf(issues, builds, failures, passed)


@pytest.fixture(scope="module")
def library(shelf: Shelf) -> FailureLibrary:
    return shelf.open_library()


@pytest.mark.system
def test_every_issue_is_found_first_by_a_failure_of_its_own_that_nobody_kept(shelf: Shelf) -> None:
    """The confusion table: which issue a failure is taken for, and which others are named beside it."""
    assert set(shelf.failures) == {
        issue.id for issue in shelf.issues.values() if not (issue.is_smoke or issue.signature.kind in BOUNDS)
    }
    library = shelf.open_library(without_the_last=True)
    lost, also, possible = [], set(), set()
    for id_, texts in shelf.failures.items():
        found = shelf.ask(texts[-1], library).matches
        ids = [match.issue for match in found]
        allowed = {id_} | {other for right, other in ALSO if right == id_}
        if not ids or ids[0] not in allowed or id_ not in ids:
            lost.append((id_, ids))
            continue
        also |= {(id_, other) for other in ids if other != id_}
        if found[ids.index(id_)].strength != "sure":
            possible.add(id_)
    assert lost == []
    assert also <= set(ALSO)
    assert possible == POSSIBLE


def test_the_search_with_a_time_limit_finds_what_the_verdicts_found(shelf: Shelf) -> None:
    """Two engines read one pattern: on every recorded failure both find the same place, in every shipped signature."""
    budget = SearchBudget(time.thread_time, 240.0, 60.0)
    firsts = [texts[0] for texts in shelf.failures.values()]
    for issue in shelf.issues.values():
        pattern = issue.signature.pattern
        for text in (*firsts, *shelf.failures[issue.id]):
            bounded, plain = budget.search(pattern, text, 0, len(text)), re.search(pattern, text)
            assert (bounded and bounded.span()) == (plain and plain.span()), issue.id


def a_failure(shelf: Shelf, id_: str) -> str:
    return shelf.failures[id_][-1].strip()


def test_60_failures_of_other_programs_are_recognised(shelf: Shelf) -> None:
    """Of each issue the newest recorded failure that holds all that is substituted, which the library does not keep."""
    mine = {
        id_: newest_with([ours for ours, _ in changes], shelf.failures[id_]) for id_, changes in SUBSTITUTED.items()
    }
    kept = {id_: [one for one in texts if one != mine.get(id_)][:4] for id_, texts in shelf.failures.items()}
    library = make_failure_library(shelf.issues.values(), kept)
    assert len(mine) == 60
    lost = {}
    for id_, text in mine.items():
        found = [match.issue for match in shelf.ask(as_of_another(id_, text), library).matches]
        if not found or not any({found[0], id_} <= twins for twins in (*ONE_FAULT, {id_})):
            lost[id_] = found
    assert lost == {}


def newest_with(words: Sequence[str], texts: Sequence[str]) -> str:
    return next(text for text in reversed(texts) if all(word in text for word in words))


def test_200_texts_about_something_else_are_never_surely_one_of_ours(shelf: Shelf, library: FailureLibrary) -> None:
    """Failures of other kinds, as they were printed, and what passing attempts of ours printed, chosen by a seed."""
    texts = (Path(__file__).parent / "unrelated.txt").read_text(encoding="utf-8").split("\n=== ")[1:]
    logs = sorted({log for logs in shelf.passed.values() for log in logs})
    texts += random.Random(20261123).sample(logs, 200 - len(texts))  # noqa: S311 - no secret
    taken = {
        text.partition("\n")[0]: [match.issue for match in found.matches if match.strength == "sure"]
        for text in texts
        if (found := shelf.ask(text.partition("\n")[2], library)).known
    }
    assert taken == {}


def each_line(prefix: str, text: str) -> str:
    return "\n".join(f"{prefix}{line}" for line in text.splitlines())


ENVIRONMENT = """\
PyTorch version: 2.7.1+cu126
CUDA used to build PyTorch: 12.6
OS: Ubuntu 24.04.1 LTS (x86_64)
Python version: 3.11.9 (main, Apr  6 2026, 17:59:24) [GCC 13.2.0] (64-bit runtime)
Is CUDA available: True
[pip3] torch==2.7.1
[pip3] triton==3.3.1
"""


def boxed(text: str) -> str:
    return "\n".join(["╭─ Traceback ─╮", *(f"│ {line} │" for line in text.splitlines()), "╰──╯"])


def in_json(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'2026-04-01T12:00:00Z stderr F {{"level": "error", "exc_info": "{escaped}"}}'


PASTES = [
    ("ao-2901", lambda text: each_line("[rank0]: ", text)),
    ("fla-160", lambda text: f"training went well for 3 h, then\n\n{text}\n\nany idea? torch 2.6"),
    ("pytorch-104505", lambda text: each_line("> ", f"On Tuesday somebody wrote:\n{text}")),
    ("pytorch-106893", lambda text: text.replace("\n", "\r\n")),
    ("pytorch-131411", lambda text: each_line("2026-04-01T12:00:00.1234567Z ", text)),
    ("pytorch-132972", lambda text: f"```python-traceback\n{text}\n```\n\n<details>\n{ENVIRONMENT}</details>"),
    ("pytorch-192985", in_json),
    ("pytorch-138422", lambda text: each_line("(RayTrainWorker pid=31337, ip=10.0.0.7) ", text)),
    ("pytorch-140171", lambda text: "\x1b[31m" + text.replace("\n", "\x1b[0m\n\x1b[31m") + "\x1b[0m"),
    ("pytorch-151290", lambda text: each_line("worker-1  | ", text)),
    ("pytorch-151589", lambda text: each_line("(EngineCore_0 pid=7) ERROR 04-01 12:00:00 [core.py:590] ", text)),
    ("pytorch-152887", boxed),
    ("pytorch-169908", lambda text: "noise of a long night\n" * 20_000 + text),
    ("pytorch-170398", lambda text: each_line("E       ", text)),
    ("pytorch-176712", lambda text: each_line("Apr  1 12:00:00 node7 python[4242]: ", text)),
    ("pytorch-178244", lambda text: f"{ENVIRONMENT}\n{text}\n{ENVIRONMENT}"),
    ("pytorch-185515", lambda text: each_line("> > [rank3]: 2026-04-01 12:00:00,123 ERROR ", text)),
    ("pytorch-186807", lambda text: f"\x00\ufeff{text}\x00"),
    ("pytorch-193265", lambda text: each_line("[1,0]<stderr>:", text)),
    ("pytorch-196570", lambda text: re.sub(r"\$ENVIRONMENT", "/opt/conda/envs/train", text)),
    ("pytorch-197087", lambda text: each_line("    ", text)),
    ("xla-8464", lambda text: each_line("F0401 12:00:00.123456    4242 pjrt.cc:77] ", text)),
]


@pytest.mark.parametrize(("id_", "wrap"), PASTES, ids=[id_ for id_, _ in PASTES])
def test_noise_around_a_failure_does_not_hide_it(shelf: Shelf, library: FailureLibrary, id_: str, wrap: object) -> None:
    assert callable(wrap)
    found = shelf.ask(wrap(a_failure(shelf, id_)), library)
    assert id_ in [match.issue for match in found.matches if match.strength == "sure"]


def test_the_build_is_read_out_of_the_report(shelf: Shelf, library: FailureLibrary) -> None:
    found = shelf.ask(f"{a_failure(shelf, 'pytorch-151290')}\n{ENVIRONMENT}", library)
    assert found.build == "torch-2.7.1+cu126"
    assert "names no CUDA variant" not in english(found.note)


EAGER_TRACE = """\
Traceback (most recent call last):
  File "/srv/u/train.py", line 88, in <module>
    main()
  File "/srv/u/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1751, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "/srv/u/lib/python3.11/site-packages/transformers/models/llama/modeling_llama.py", line 312, in forward
    {code}
{message}
"""

UNRELATED = {
    "nothing": "",
    "blanks": " \n\t\n",
    "NUL": "\x00" * 1000,
    "plain English": "My training is slower than last week, and nobody in the team knows why. Can you help?",
    "out of memory": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
        "capacity of 79.10 GiB of which 1.2 GiB is free."
    ),
    "no module": "ModuleNotFoundError: No module named 'flash_attn'",
    "a key": "KeyError: 'input_ids'",
    "an index": EAGER_TRACE.format(code="h = hidden[2]", message="IndexError: tuple index out of range"),
    "a concatenation": EAGER_TRACE.format(
        code="shape = x.shape + 1", message='TypeError: can only concatenate tuple (not "int") to tuple'
    ),
    "shapes": EAGER_TRACE.format(
        code="x @ w", message="RuntimeError: mat1 and mat2 shapes cannot be multiplied (4x8 and 16x4)"
    ),
    "a device assert": "RuntimeError: CUDA error: device-side assert triggered\nCompile with TORCH_USE_CUDA_DSA",
    "NCCL": "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1970, unhandled system error",
    "disk": "OSError: [Errno 28] No space left on device",
    "a compiler": "main.cpp:3:5: error: 'foo' was not declared in this scope\nmake: *** [all] Error 1",
    "somebody's test": "AssertionError: expected [1, 2, 3], got [1, 2, 4], tolerance 0",
    "another test": "E  AssertionError: expected 0, got 256",
    "Java": 'Exception in thread "main" java.lang.NullPointerException\n\tat com.example.Main.main(Main.java:5)',
    "Rust": "thread 'main' panicked at 'index out of bounds: the len is 3 but the index is 5', src/main.rs:4:5",
    "a harmless line": "No CUDA runtime is found, using CUDA_HOME='/usr/local/cuda'",
    "a name": "NameError: name 'model' is not defined",
    "segmentation": "Segmentation fault (core dumped)",
    "an environment alone": ENVIRONMENT,
    "HTML": "<script>alert(1)</script><b>error</b>",
    "letters": "a" * 1_000_000,
    "ten megabytes": "INFO step 1 loss 2.31\n" * 500_000,
    "binary": bytes(range(256)).decode("latin-1") * 400,
}


Ask = Callable[[str], Explanation]


@pytest.fixture(scope="module")
def ask_unrelated(shelf: Shelf, library: FailureLibrary) -> Ask:
    """Each text once: ten megabytes are a second of processor."""
    return cache(lambda name: shelf.ask(UNRELATED[name], library))


@pytest.mark.parametrize("name", UNRELATED)
def test_somebody_elses_fault_is_no_match(ask_unrelated: Ask, name: str) -> None:
    assert [match.issue for match in ask_unrelated(name).matches] == []


@pytest.mark.parametrize(
    "name", ["plain English", "Java", "disk", "letters", "ten megabytes", "nothing", "a harmless line"]
)
def test_what_is_like_nothing_here_has_nothing_near(ask_unrelated: Ask, name: str) -> None:
    assert ask_unrelated(name).nearest == ()


NEAR = [
    ("flex_attention backward on torch 2.6 raises no choices to select at head dim 128", "pytorch-146260"),
    ("torch.compile of a NamedTuple with __getitem__ goes wrong", "pytorch-142399"),
    ("create_block_mask does not compile on CPU, g++ complains", "pytorch-151290"),
    ("fused rms_norm backward needs too much shared memory", "pytorch-169908"),
]


@pytest.mark.parametrize(("text", "id_"), NEAR)
def test_a_description_leads_to_the_issue_by_its_words(
    shelf: Shelf, library: FailureLibrary, text: str, id_: str
) -> None:
    found = shelf.ask(text, library)
    assert id_ in [one.issue for one in (*found.nearest, *found.silent)][:3]


def test_wrong_numbers_lead_to_issues_that_raise_nothing(shelf: Shelf, library: FailureLibrary) -> None:
    found = shelf.ask("compiled int8 matmul on the CPU gives wrong results, torch.testing.assert_close fails", library)
    assert not found.matches
    assert "pytorch-191308" in [one.issue for one in found.silent]
    assert all(shelf.issues[one.issue].silent for one in found.silent)


HOSTILE = {
    "one letter": "a" * 1_000_000,
    "starts without ends": "Unsupported: " * 80_000,
    "starts on lines": "pointless_cumsum_replacement\n" * 35_000,
    "declarations": "redefinition of " * 62_000,
    "wrong results": "WrongResult: expected " * 47_000,
    "frames": '  File "/x/site-packages/torch/a.py", line 1, in f\n' * 20_000,
    "versions": "torch 2." * 125_000,
    "brackets": "[" * 1_000_000,
    "quotes": "> " * 500_000,
    "JSON": '{"a":' * 200_000,
    "short lines": "x\n" * 500_000,
    "spaces in quoted lines": ("> " + "\t" * 3_980 + "x\n") * 250,
}


@pytest.mark.sample(4, "system")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_megabyte_written_to_be_slow_is_answered_in_bounded_time(
    shelf: Shelf, library: FailureLibrary, text: str
) -> None:
    """CPU time, because the machine may be busy: 1.6 s at most here (2026-11-21); ten times that is a fault."""
    measured = shelf.measured
    started = time.process_time()
    complete(recognise(library, text, SearchBudget(time.thread_time)), library.issues, measured)
    assert time.process_time() - started < 15
