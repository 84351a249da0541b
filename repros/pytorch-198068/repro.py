"""pytorch-198068: a custom operator writes through a view at the wrong place in a dynamic AOTInductor package.

An operator copies into buffer[1] of a buffer of two blocks. The exported program is compiled by AOTInductor for a
dynamic number of rows; the blocks that come back are compared with what must be in them.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"expected the blocks to sum to \[[^]x\n]*\], got"


class WrongResult(Exception):
    """The computation ended without an error and with a wrong result."""


def _operator():
    @torch.library.custom_op("knowngood_198068::put", mutates_args=("target",))
    def put(target: torch.Tensor, source: torch.Tensor) -> None:
        torch.ops.aten.copy_.default(target, source)

    @put.register_fake
    def _(target, source):
        return None

    return torch.ops.knowngood_198068.put


class _IntoView(torch.nn.Module):
    """Hands the operator a view into the second block."""

    def __init__(self, put):
        super().__init__()
        self.put = put

    def forward(self, x):
        buffer = torch.zeros(2, x.shape[0], 4)
        self.put(buffer[1], x)
        return buffer


class _IntoFresh(_IntoView):
    """Hands the operator a tensor of its own, and copies that into the second block."""

    def forward(self, x):
        buffer, block = torch.zeros(2, x.shape[0], 4), torch.zeros_like(x)
        self.put(block, x)
        buffer[1] = block
        return buffer


class _Stacked(_IntoView):
    """Makes two blocks, and one buffer of them at the end."""

    def forward(self, x):
        blocks = [torch.zeros_like(x), torch.zeros_like(x)]
        self.put(blocks[1], x)
        return torch.stack(blocks)


def _check(function):
    got = function(torch.full((5, 4), 7.0)).sum((1, 2)).tolist()
    if got != [0.0, 140.0]:
        raise WrongResult("expected the blocks to sum to [0.0, 140.0], got {}".format(got))
    return {"sums": got}


def _package(model, dynamic):
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(model, (torch.ones(5, 4),), dynamic_shapes=({0: rows},) if dynamic else None)
    return aoti_load_package(aoti_compile_and_package(program))


def control(dynamic=True):
    return _check(_IntoView(_operator()))


def baseline(dynamic=True):
    return _check(_package(_IntoView(_operator()), dynamic))


def static_shapes(dynamic=True):
    """The offset of the view is a number."""
    return _check(_package(_IntoView(_operator()), False))


def fresh_tensor(dynamic=True):
    """No view goes to the operator."""
    return _check(_package(_IntoFresh(_operator()), dynamic))


def stacked(dynamic=True):
    """No view goes to the operator."""
    return _check(_package(_Stacked(_operator()), dynamic))


def just_in_time(dynamic=True):
    """No package, and the same lowering."""
    return _check(torch.compile(_IntoView(_operator()), dynamic=dynamic))


# Standalone, second half; the first stands above the imports. Both are the same in every repro: see repros/README.md.
def _run_here(arm, params, report):
    """The child: run one arm and leave in the file `report` what it observed or raised."""
    import ast, faulthandler, json, pathlib, traceback

    def value_of(text):
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            return text

    if "HANG_S" in globals():  # a hang ends as the stacks of every thread, where SIGNATURE is then looked for
        faulthandler.dump_traceback_later(globals()["HANG_S"], exit=True)
    try:
        told = {"observed": globals()[arm](**{name: value_of(text) for name, _, text in params})}
    except Exception as failure:
        traceback.print_exc()
        told = {"raised": type(failure).__name__}
    pathlib.Path(report).write_text(json.dumps(told, default=str))
    return 0


def _standalone():
    """The parent: run one arm in a child, so that a crash is survived. 0: good, 1: the issue, 2: anything else."""
    import argparse, inspect, json, pathlib, re, shutil, signal, subprocess, tempfile

    arms = [name for name, value in globals().items()
            if inspect.isfunction(value) and value.__module__ == __name__ and not name.startswith("_")]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arm", default="baseline", choices=arms)
    parser.add_argument("--list", action="store_true", help="name the arms and stop")
    parser.add_argument("--report", help=argparse.SUPPRESS)
    parser.add_argument("params", nargs="*", metavar="name=value", type=lambda param: param.partition("="))
    asked = parser.parse_intermixed_args()
    if asked.list:
        print(*arms, sep="\n")
        return 0
    if asked.report:
        return _run_here(asked.arm, asked.params, asked.report)
    scratch = pathlib.Path(tempfile.mkdtemp())  # the compilers' caches are fresh: a filled one can hide the issue
    report, log = scratch / "report", scratch / "log"
    env = {"TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"), "TRITON_CACHE_DIR": str(scratch / "triton")}
    env.update(globals().get("ENV", {}).get(asked.arm, {}))  # set before the child's interpreter starts
    again = [sys.executable, "-u", "-X", "faulthandler", os.path.abspath(__file__), *sys.argv[1:], "--report", report]
    try:
        with log.open("wb") as output:
            status = subprocess.run(again, env={**os.environ, **env}, stdout=output, stderr=output).returncode
        text = log.read_text(errors="replace")
        told = json.loads(report.read_text()) if report.exists() else {}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(text, end="")
    observed, raised = told.get("observed"), told.get("raised")
    if status == 0 and observed and isinstance(observed, dict):
        print(*("observed %s = %s" % item for item in observed.items()), sep="\n")
        print("GOOD: %s returned what it observed." % asked.arm)
        return 0
    ended = "left with status %d" % status if status >= 0 else "was killed by " + signal.Signals(-status).name
    if status == 0 and told:
        ended = "raised " + raised if raised else "returned nothing it observed"
    found = re.search(SIGNATURE, text) if SIGNATURE else raised == "WrongResult"
    if found and (raised or status != 0) and raised != "NotApplicable":
        print("THE ISSUE: %s %s%s." % (asked.arm, ended, ", and its text has the signature" if SIGNATURE else ""))
        return 1
    print("CANNOT SAY: %s %s, which is neither good nor the issue." % (asked.arm, ended))
    return 2


if __name__ == "__main__":
    sys.exit(_standalone())
