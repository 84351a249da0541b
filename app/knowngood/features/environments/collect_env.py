"""The output of `python -m torch.utils.collect_env`."""

import re
from dataclasses import replace

from knowngood.features.diagnose.log_cleaning import read_paste, stated_by, versions_of
from knowngood.features.environments.python_markers import pythons_of
from knowngood.features.environments.resolve import PinnedPackage, StatedEnvironment
from knowngood.features.environments.source import MOST_PACKAGES, Source, canonical

_PIP = re.compile(r"^\[pip3?\]\s{1,9}([A-Za-z0-9][\w.-]{0,80})==([\w.!+-]{1,60})$", re.MULTILINE)
_KNOWN = re.compile(r"torch|(?:pytorch-)?triton|nvidia-.*")


def read_collected(source: Source, python: str) -> StatedEnvironment:
    """It names few packages beside torch, and the GPUs. Raises OtherPython."""
    pasted = read_paste(source.text)
    stated = stated_by(versions_of(pasted))
    pythons_of(f"=={stated.python}.*" if stated.python else "", stated=python, source=source)
    packages = {canonical(name): version for name, version in _PIP.findall(pasted.text)[:MOST_PACKAGES]}
    return replace(
        stated,
        kind="collect_env",
        pins=(*stated.pins, *(PinnedPackage(*one) for one in packages.items() if not _KNOWN.fullmatch(one[0]))),
        python=python or stated.python,
        is_whole=False,
    )
