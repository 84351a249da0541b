"""What makes somebody else's failure out of one of ours: other shapes, classes, names and numbers.

By issue: (words of the recorded failure, what stands there instead). Every path is another one as well. Of 89 issues
these are all whose failure is torch's, Triton's or a compiler's, and of the others, which our script raises, those with
the most in them that can be another.
"""

from collections.abc import Mapping, Sequence

Changes = Sequence[tuple[str, str]]

SUBSTITUTED: Mapping[str, Changes] = {
    # Raised by torch, Triton or a compiler, in words that people paste.
    "ao-2901": [("_quantised", "load_quantised_model")],
    "deepmd-kit-wheel-strides": [("_fuse", "descriptor"), ("tabulate_fusion_se_a", "tabulate_fusion_se_t")],
    "fla-160": [("name 's0'", "name 's27'")],
    "pytorch-104505": [("length 2, where view 1", "length 5, where view 3"), ("_through_two_views", "shift")],
    "pytorch-106893": [("_Once", "StraightThrough")],
    "pytorch-120233": [("_increment", "forward")],
    "pytorch-131411": [("_Config", "RopeScaling"), (", val)", ", factor)"), (".val", ".factor")],
    "pytorch-132972": [("{'o', 'u', 'w', 'k', 'n'}", "{'cache'}"), ("x: torch.Tensor, y", "q: torch.Tensor, kv")],
    "pytorch-133762": [("<class 'repro._Pair'>", "<class 'llm.layers.SegmentedMoments'>")],
    "pytorch-136504": [("name 's0'", "name 's94'")],
    "pytorch-138422": [],
    "pytorch-140171": [("sizes [10]", "sizes [4, 96]"), ("strides [1]", "strides [96, 1]"), ("size 80", "size 1536")],
    "pytorch-142399": [("l_pair_0_", "l_sizes_1_"), ("_first", "width_of")],
    "pytorch-144048": [("_increment", "forward")],
    "pytorch-145861": [],
    "pytorch-146151": [("[4, 256, 256]", "[2, 4096, 1280]"), ("524288", "41943040")],
    "pytorch-146260": [],
    "pytorch-151290": [("tmp_acc0_arr", "tmp_acc3_arr"), ("int64_t tmp", "float tmp")],
    "pytorch-151589": [],
    "pytorch-152012": [("_through", "forward")],
    "pytorch-152887": [("in _add", "in decode_step"), ("return x + 1", "return self.head(h)")],
    "pytorch-153476": [("einops.py", "vendored_einops.py")],
    "pytorch-165892": [("size=[1, 1024, 1024]", "size=[8, 77, 640]"), ("aten.bmm.dtype", "aten.mm.dtype")],
    "pytorch-169908": [
        ("triton_per_fused__fused_rms_norm", "triton_red_fused_native_layer_norm"),
        ("262280", "327696"),
    ],
    "pytorch-170398": [("twice_0", "attn_fwd_inner_12")],
    "pytorch-176712": [("fp32", "fp64")],
    "pytorch-178244": [("tmp2", "tmp41")],
    "pytorch-185515": [
        ("Float as Byte", "BFloat16 as Char"),
        ("but got 3", "but got 4096"),
        ("size=[3, 2]", "size=[9, 64]"),
    ],
    "pytorch-186807": [("region(target, x)", "layer(cache, x)")],
    "pytorch-191136": [("[4, 2]", "[16, 3, 8]"), ("(0, 1)", "(8, 0, 1)"), ("(8,)", "(48, 8)")],
    "pytorch-191203": [("size=()", "size=(1,)")],
    "pytorch-193265": [],
    "pytorch-196570": [("'buf1'", "'buf117'")],
    "pytorch-197087": [
        ("argmin_combine", "argmax_combine"),
        ("ks1**2*x0", "ks0**3*x2"),
        ("(have \u2018int\u2019)", "(have \u2018long int\u2019)"),
    ],
    "pytorch-198343": [
        ("[4, 16, 16]", "[1, 64, 80, 80]"),
        ("(256, 1, 16)", "(409600, 1, 5120, 64)"),
        ("(1024,)", "(64, -1)"),
    ],
    "triton-7835": [],
    "unsloth-4001": [],
    "xla-8464": [("CopyToHostAsync()", "ToLiteral()")],
    # Raised by our script, as somebody has them who ran it with other values: python repro.py n=64.
    "deepmd-kit-3910": [("(0, 0)", "(511, 63)")],
    "pytorch-105264": [("expected 0, got 256", "expected 0, got 512")],
    "pytorch-113539": [("(3, 2, 1)", "(8, 4, 1)"), ("(6,)", "(32,)")],
    "pytorch-117265": [("2.0, 2.0, 2.0", "2.0, 2.0, 2.0, 2.0, 2.0"), ("1.0, 1.0, 1.0", "1.0, 1.0, 1.0, 1.0, 1.0")],
    "pytorch-138354": [("(8, 1)", "(512, 64, 1)"), ("(16, 1)", "(1024, 64, 1)")],
    "pytorch-138908": [("row 0", "row 31")],
    "pytorch-149502": [("4 calls", "12 calls"), ("after 5", "after 17")],
    "pytorch-169253": [("got 0", "got 1")],
    "pytorch-174074": [("[-1.75, 0.25]", "[-1.25, 0.75, 2.0]")],
    "pytorch-174459": [("8 of 8", "3 of 512")],
    "pytorch-180164": [("792 of 1716", "65536 of 131072")],
    "pytorch-183082": [("index 17", "index 4095"), ("got 10", "got 63")],
    "pytorch-183602": [("sum to 20.0", "sum to 4096.0")],
    "pytorch-183769": [("[3, 8]", "[128, 64]")],
    "pytorch-187018": [("224", "65504"), ("-800", "-131072")],
    "pytorch-191499": [("argmin of torch.uint8 to be 21", "amax of torch.int8 to be 127")],
    "pytorch-193183": [("10231 of 65536", "7 of 4194304"), ("in 10 of 64", "in 1 of 2048")],
    "pytorch-194501": [("-1.0", "-0.25")],
    "pytorch-197829": [("256 of 768", "4096 of 1048576")],
    "pytorch-198056": [("[100, 200, 300]", "[7, 2048]")],
    "pytorch-198068": [("[0.0, 140.0]", "[0.0, 35.0, 910.0]"), ("[140.0, 0.0]", "[35.0, 0.0, 910.0]")],
    "pytorch-198095": [("106.0", "4103.0")],
}

PATHS: Changes = [
    ("$SCRATCH/repro.py", "/srv/llm/train/model.py"),
    ("repro.WrongResult", "WrongResult"),
    ("<class 'repro.", "<class 'llm.layers."),
    ("$SCRATCH/inductor", "/scratch/torchinductor_ana"),
    ("$SCRATCH", "/scratch/torchinductor_ana"),
    ("$ENVIRONMENT", "/srv/llm/venv"),
    ("$PYTHON", "/srv/llm/venv"),
    ("$WORKER/harness.py", "/srv/llm/run.py"),
]


def as_of_another(issue: str, text: str) -> str:
    """The failure as somebody else has it: on another machine, of another program."""
    for ours, theirs in (*SUBSTITUTED[issue], *PATHS):
        text = text.replace(ours, theirs)
    return text
