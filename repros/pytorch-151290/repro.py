"""pytorch-151290: Inductor's C++ for a compiled create_block_mask declares one array twice, so that g++ refuses it.

A reduction under a vectorised loop gets a buffer for its scalar tail and, where Inductor also splits it over threads, a
buffer of the same name for the partial sums. Each case computes something small and compares it with plain torch.
"""

if __name__ == "__main__":  # Standalone, first half: a package missing below ends in 2, never in Python's own 1.
    import os, sys
    sys.excepthook = lambda *failure: (sys.__excepthook__(*failure), sys.stdout.flush(), os._exit(2))
import torch
import torch.nn.functional as F

SIGNATURE = r"(conflicting declaration|redeclaration of|redefinition of) .{0,80}tmp_acc\d+_arr"

ENV = {"big_chunk": {"TORCHINDUCTOR_CPP_MIN_CHUNK_SIZE": "100000000"}}


class WrongResult(Exception):
    """The code compiled, and computes something else than it should."""


def _causal(batch, head, query, key):
    return query >= key


def _mask(how, queries, keys, block):
    """Which blocks of a causal mask hold anything: as create_block_mask says, and counted plainly."""
    from torch.nn.attention.flex_attention import create_block_mask  # seconds that the other cases do without

    create = how(create_block_mask)
    got = create(_causal, 1, 1, queries, keys, device="cpu", BLOCK_SIZE=block).to_dense()[0, 0].bool()
    allowed = torch.arange(queries)[:, None] >= torch.arange(keys)[None, :]
    expected = allowed.view(queries // block, block, keys // block, block).any(3).any(1)
    return got, expected, torch.equal(got, expected)


def _block_1024(how):
    return _mask(how, 1024, 2048, 1024)


def _block_128(how):
    return _mask(how, 1024, 2048, 128)


def _upstream(how):
    """The call of the report."""
    return _mask(how, 512, 512, 128)


def _count_positive(x):
    return (x > 0).sum(0)


def _plain_sum(how):
    """The same fault in one line, without flex attention."""
    x = torch.randn(16384, 6)
    got, expected = how(_count_positive)(x), torch.count_nonzero(x > 0, dim=0)
    return got, expected, torch.equal(got, expected)


class _Twin(torch.nn.Module):
    """The model of pytorch/pytorch#151523, where the array is one of floats."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 16, (1, 7), (2, 1))

    def forward(self, x, weights):
        x = F.hardshrink(self.conv(x), lambd=0)
        return torch.mv(weights, x.view(x.size(0), -1)[0])


def _twin_mv(how):
    model, x, weights = _Twin().eval(), torch.randn(2, 3, 127, 255), torch.randn(10, 254976)
    got = how(model)(x, weights)
    expected = model.double()(x.double(), weights.double())
    return got, expected, torch.allclose(got.double(), expected, atol=0.1, rtol=1e-3)


_CASES = {"block_1024": _block_1024, "block_128": _block_128, "upstream": _upstream,
          "plain_sum": _plain_sum, "twin_mv": _twin_mv}


def _run(case, threads, how):
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    with torch.no_grad():
        got, expected, same = _CASES[case](how)
    if not same:
        raise WrongResult("expected {}, got {}".format(expected.tolist(), got.tolist()))
    return {"case": case, "elements": got.numel(), "sum": float(got.double().sum()),
            "threads": torch.get_num_threads(), "vector_isa": torch.backends.cpu.get_cpu_capability()}


def control(case="block_1024", threads=2):
    """Not compiled."""
    return _run(case, threads, lambda function: function)


def baseline(case="block_1024", threads=2):
    return _run(case, threads, torch.compile)


def eager_mask(case="block_1024", threads=2):
    """create_block_mask as it is, beside a compiled flex_attention."""
    return _run(case, threads, lambda function: function)


def aot_eager(case="block_1024", threads=2):
    return _run(case, threads, lambda function: torch.compile(function, backend="aot_eager"))


def cpp_threads_1(case="block_1024", threads=2):
    """Inductor splits nothing in this graph."""
    return _run(case, threads, lambda function: torch.compile(function, options={"cpp.threads": 1}))


def one_thread(case="block_1024", threads=2):
    """The whole process has one thread; `threads` is what it would have had."""
    return _run(case, 1, torch.compile)


def big_chunk(case="block_1024", threads=2):
    """ENV sets how much work is worth a thread to more than there ever is."""
    return _run(case, threads, torch.compile)


def no_simd(case="block_1024", threads=2):
    """Without vectors there is no tail."""
    return _run(case, threads, lambda function: torch.compile(function, options={"cpp.simdlen": 0}))


def dynamic_true(case="block_1024", threads=2):
    """Inductor does not know the sizes, and so does not split the reduction."""
    return _run(case, threads, lambda function: torch.compile(function, dynamic=True))


def block_128(case="block_1024", threads=2):
    """The default BLOCK_SIZE, whatever `case` has: the outer loops are long enough to be split themselves."""
    return _run("block_128", threads, torch.compile)


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
