"""The words that people write of failures and builds, and what each is taken for: every table of them. Pure."""

from collections.abc import Mapping
from enum import StrEnum


class HitKind(StrEnum):
    """`thread` is an issue upstream that the catalogue has not; `error` and `environment` are what was pasted."""

    ISSUE = "issue"
    THREAD = "thread"
    BUILD = "build"
    HARDWARE = "hardware"
    QUERY = "query"
    COMPARE = "compare"
    UPGRADE = "upgrade"
    ERROR = "error"
    ENVIRONMENT = "environment"


CONDITIONS: Mapping[str, str] = {
    "silent": "silent:yes",
    "silently": "silent:yes",
    "wrong numbers": "silent:yes",
    "wrong results": "silent:yes",
    "wrong result": "silent:yes",
    "静默": "silent:yes",
    "crash": "signature:signal",
    "crashes": "signature:signal",
    "segfault": "signature:signal",
    "segmentation fault": "signature:signal",
    "hang": "signature:hang",
    "hangs": "signature:hang",
    "deadlock": "signature:hang",
    "fail": "status:affected",
    "fails": "status:affected",
    "failing": "status:affected",
    "broken": "status:affected",
    "breaks": "status:affected",
    "broke": "status:affected",
    "affected": "status:affected",
    "pass": "status:not_affected",
    "passes": "status:not_affected",
    "works": "status:not_affected",
    "flaky": "status:flaky",
    "no workaround": "cure:none",
    "without workaround": "cure:none",
    "without a workaround": "cure:none",
    "with a workaround": "cure:effective",
    "has a workaround": "cure:effective",
    "severe": "severity:>=high",
    "high severity": "severity:>=high",
}
"""Conditions of the query language, by the words that mean them."""

PURPOSES: Mapping[str, HitKind] = {
    "vs": HitKind.COMPARE,
    "versus": HitKind.COMPARE,
    "compare": HitKind.COMPARE,
    "compared": HitKind.COMPARE,
    "->": HitKind.COMPARE,
    "→": HitKind.COMPARE,
    "diff": HitKind.COMPARE,
    "changed": HitKind.COMPARE,
    "upgrade": HitKind.UPGRADE,
    "upgrading": HitKind.UPGRADE,
    "update": HitKind.UPGRADE,
    "best": HitKind.UPGRADE,
    "升级": HitKind.UPGRADE,
}
"""The interest that somebody has in the builds they name."""

SAID_OTHERWISE: Mapping[str, str] = {
    "oom": "memory",
    "recompile": "anew",
    "recompiles": "anew",
    "recompilation": "anew",
    "cudagraph": "graphs",
    "cudagraphs": "graphs",
    "aotinductor": "aoti",
    "attention": "sdpa",
    "gradient": "grad",
    "segfault": "dies",
    "crash": "dies",
    "wrong": "silent",
}
"""Words of the index, by other words for them."""

_SAID_BESIDE = """
a about an and any are at be bug bugs can do does for from i in install installed is issue issues it me my of on or
pip please problem problems show than the there to torch pytorch use using version what when where which why with
"""
SAID_BESIDE = frozenset(_SAID_BESIDE.split())
"""Words of a question that name nothing."""

_SAID_EVERYWHERE = """
the and for with from that this was were are not but have has had you your can could would should what when where
which there here they them then than its into out our all any one two get got use used using also only just does did
how why will been because about after before some more most other such very like same each please thanks help hello
file line most recent call last traceback self args kwargs return none true false def class import lib site packages
python python3 conda miniconda3 train main script usr home root opt env venv conda user raise error exception torch
module
"""
SAID_EVERYWHERE = frozenset(_SAID_EVERYWHERE.split())
"""Words of the language itself, and of every traceback: they tell no two failures apart."""

ELSEWHERE = frozenset({"windows", "macos"})
"""Platforms on which nothing is measured: no issue is found by them."""

_PACKAGES = """
accelerate apex bitsandbytes causal-conv1d cupy datasets deepspeed diffusers einops exllamav2 fairscale fastai
flash-attn flash-attention flash-linear-attention flashinfer gsplat jax keras liger-kernel lightning mamba-ssm
megatron-core mmcv monai numba numpy nunchaku onnx onnxruntime opencv-python optimum pandas peft pillow
pytorch-lightning pytorch3d ray sageattention scikit-learn scipy sentence-transformers sglang spacy tensorflow
tensorrt timm tokenizers torch-geometric torch-scatter torch-sparse torch-tensorrt torch-xla torchao torchaudio
torchcodec torchdata torchmetrics torchrec torchtext torchtitan torchtune torchvision transformer-engine
transformers triton-windows trl ultralytics unsloth vllm xformers
"""
PACKAGES = frozenset(_PACKAGES.split())
"""Packages that people have next to torch, by canonical name: each is itself, and no misspelling of another word."""
