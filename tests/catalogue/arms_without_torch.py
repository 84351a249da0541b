"""Asks scripts for their arms where no torch is: `python arms_without_torch.py FILE...` prints what each lists.

Whatever package a script imports is found, and whatever it takes from one is there and does nothing. A function that is
given to a decorator of such a package stays the function.
"""

import json
import runpy
import sys
from contextlib import redirect_stdout
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from inspect import isfunction
from io import StringIO
from types import ModuleType
from typing import Any


class _Idle(type):
    def __getattr__(cls, name: str) -> Any:
        return cls

    def __call__(cls, *arguments: Any, **_: Any) -> Any:
        if cls is not Nothing or not arguments or not isfunction(arguments[0]):
            return cls
        vars(arguments[0]).setdefault("register_fake", cls)  # of an operator that a decorator makes
        return arguments[0]

    def __getitem__(cls, key: object) -> Any:
        return cls


class Nothing(metaclass=_Idle):
    """Scripts make classes of it, too."""


class _Package(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # is set by whoever imports it, if it is not there
            raise AttributeError(name)
        return Nothing


class _AnyPackage(MetaPathFinder, Loader):
    def find_spec(self, fullname: str, *_: object) -> ModuleSpec:
        return ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def _listed(file: str) -> list[str]:
    said = StringIO()
    sys.argv = [file, "--list"]
    try:
        with redirect_stdout(said):
            runpy.run_path(file, run_name="__main__")
    except SystemExit as ended:
        return said.getvalue().split() if ended.code == 0 else [f"ended in {ended.code}"]
    return ["ended by itself"]


if __name__ == "__main__":
    sys.meta_path.append(_AnyPackage())
    json.dump({file: _listed(file) for file in sys.argv[1:]}, sys.stdout)
