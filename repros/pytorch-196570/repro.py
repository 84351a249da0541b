"""pytorch-196570: Inductor's outer-loop fusion on the CPU dies with KeyError: 'buf1' for a mask written in place.

A mask of -10000 has all of its entries set to 0 by index, is added to the scores, and goes through softmax. The
compiled result is compared with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch

SIGNATURE = r"KeyError: '(buf|op)\d+'"


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _by_index(x):
    mask = torch.full((8, 8), -10000.0)
    index = torch.arange(8)
    mask[index.unsqueeze(0), index.unsqueeze(1)] = 0
    return torch.softmax(x + mask, dim=-1)


def _by_where(x):
    index = torch.arange(8)
    keep = (index.unsqueeze(0) >= 0) & (index.unsqueeze(1) >= 0)
    return torch.softmax(x + torch.where(keep, 0.0, -10000.0), dim=-1)


def _out_of_place(x):
    index = torch.arange(8)
    place = (index.unsqueeze(0), index.unsqueeze(1))
    mask = torch.full((8, 8), -10000.0).index_put(place, torch.zeros(()))
    return torch.softmax(x + mask, dim=-1)


def _observe(function):
    torch.manual_seed(0)
    x = torch.randn(8, 8)
    off = float((function(x) - torch.softmax(x, dim=-1)).abs().max())
    if off > 1e-5:
        raise WrongResult("expected the softmax of plain torch, got values off by {:.3g} (tolerance 1e-5)".format(off))
    return {"elements": x.numel(), "off": off}


def control():
    return _observe(_by_index)


def baseline():
    return _observe(torch.compile(_by_index))


def where_mask():
    return _observe(torch.compile(_by_where))


def mask_outside():
    """The mask is made by plain torch, and handed to the compiled function."""
    compiled = torch.compile(lambda x, mask: torch.softmax(x + mask, dim=-1))

    def call(x):
        mask = torch.full((8, 8), -10000.0)
        index = torch.arange(8)
        mask[index.unsqueeze(0), index.unsqueeze(1)] = 0
        return compiled(x, mask)

    return _observe(call)


def aot_eager():
    return _observe(torch.compile(_by_index, backend="aot_eager"))


def no_simd():
    """Whether the loops are vectorised has no part in it."""
    return _observe(torch.compile(_by_index, options={"cpp.simdlen": 0}))


def out_of_place():
    """The functional form of the same write."""
    return _observe(torch.compile(_out_of_place))


def no_fusion():
    """Every node of the graph is a kernel of its own."""
    return _observe(torch.compile(_by_index, options={"max_fusion_size": 1}))


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
