"""pytorch-151523: Inductor's C++ for Conv2d, hardshrink, view and mv is refused by g++, with any g++ and two threads.

The report's model, compiled for the CPU. What varies is what a reader of the thread suspects: the C++ compiler that
Inductor calls, and the number of threads. The result is held against the same model in double precision.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import shutil
import subprocess

import torch
import torch.nn.functional as F

SIGNATURE = r"(conflicting declaration|redeclaration of|redefinition of) .{0,80}tmp_acc\d+_arr"


class NotApplicable(Exception):
    """The compiler that the variant names is not on this machine."""


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


class _Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, (1, 7), (2, 1))

    def forward(self, x, weight):
        x = F.hardshrink(self.conv(x), lambd=0)
        return torch.mv(weight, x.view(x.size(0), -1)[0])


def _compiler(name):
    """The first line that the compiler says of itself; asked before anything is compiled with it."""
    if not shutil.which(name):
        raise NotApplicable("there is no {} here".format(name))
    said = subprocess.run([name, "--version"], stdout=subprocess.PIPE, check=True)
    return said.stdout.decode(errors="replace").splitlines()[0]


def _run(compiler, threads, how):
    version = _compiler(compiler)
    print("compiler:", version, "- threads:", threads)
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model, x, weight = _Model().eval(), torch.randn(2, 3, 127, 255), torch.randn(10, 254976)
    with torch.no_grad():
        got = how(model)(x, weight)
        expected = model.double()(x.double(), weight.double())
    if not torch.allclose(got.double(), expected, atol=0.1, rtol=1e-3):
        raise WrongResult("expected {}, got {}, tolerance 0.1".format(expected.tolist(), got.tolist()))
    return {"result": got.tolist(), "threads": torch.get_num_threads(), "compiler": version}


def _inductor(compiler, **options):
    """torch.compile, with Inductor told which C++ compiler to call."""
    return lambda model: torch.compile(model, options={"cpp.cxx": (compiler,), **options})


def control(compiler="g++", threads=2):
    """Not compiled; the compiler is asked for, and not used."""
    return _run(compiler, threads, lambda model: model)


def baseline(compiler="g++", threads=2):
    return _run(compiler, threads, _inductor(compiler))


def cpp_threads_1(compiler="g++", threads=2):
    """Inductor splits nothing in this graph."""
    return _run(compiler, threads, _inductor(compiler, **{"cpp.threads": 1}))


def no_simd(compiler="g++", threads=2):
    """Without vectors there is no tail."""
    return _run(compiler, threads, _inductor(compiler, **{"cpp.simdlen": 0}))


def one_thread(compiler="g++", threads=2):
    """The whole process has one thread; `threads` is what it would have had."""
    return _run(compiler, 1, _inductor(compiler))


def aot_eager(compiler="g++", threads=2):
    """No C++ at all."""
    return _run(compiler, threads, lambda model: torch.compile(model, backend="aot_eager"))


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
