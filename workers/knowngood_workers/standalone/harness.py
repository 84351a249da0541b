# ruff: noqa: ANN401, PTH100, PTH115, PTH120, PTH123, PTH208
# What passes through here is torch's and of any type, and it is imported before everything else: as little as possible.
"""Run one arm inside the build under test and tell what happened, as it happens, over an inherited pipe.

Standard library only, Python 3.9 and newer, torch 2.1 and newer. Two ways in, one way through (`run_arm`):

    harness.py --arm FD NONCE_FD ARM      a fresh interpreter is the arm
    harness.py --fork-server FD SUPERVISOR ROOT    imports torch and Inductor once, then forks an arm for every order

Each observation is one line of JSON with `saw`, the monotonic time `at` and the attempt's `nonce`, which stands neither
in the arm's variables nor in its arguments: the agent refuses lines without it. Lines written before a process dies
remain: `imported`, `started`, `probe` (first time), `probes` (final counts, and the `paths` that were gone), `used`
(the vector ISAs, where one is asked for), then
`returned`, `raised` or `left` (SystemExit).
Not here: limits and clean-up (supervisor), and what any of it means (the domain).
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import gc
import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import itertools
import json
import os
import platform
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NoReturn

_TEXT_CHARS = 64 * 1024
_MESSAGE_CHARS = 8 * 1024
_VALUE_CHARS = 4 * 1024
_VALUES = 256

OPERATOR = "operator:"

_PR_SET_DUMPABLE = 4

# Read at import by every Inductor since 2.1; without them the fork server would start a pool of compile processes.
_NO_POOL = {"TORCH_TNT_IN_USE": "1", "TORCH_WARM_POOL": "0"}

# What a first compilation imports, where that release has it. Nothing here may start a thread or touch a GPU
# (torch.utils.cpp_extension asks for the driver while it is imported: left out).
_PRELOAD = (
    "torch",
    "torch._dynamo",
    "torch._dynamo.repro.after_dynamo",
    "torch._inductor.compile_fx",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.cpp",
    "torch._inductor.codegen.cpp_wrapper_cpu",
    "torch._inductor.codegen.triton",
    "torch._inductor.codegen.wrapper",
    "torch._inductor.fx_passes.joint_graph",
    "torch._inductor.fx_passes.post_grad",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.serialized_patterns",
    "torch._inductor.fx_passes.serialized_patterns.addmm_pattern",
    "torch._inductor.fx_passes.serialized_patterns.bmm_pattern",
    "torch._inductor.fx_passes.serialized_patterns.mm_pattern",
    *(f"torch._inductor.fx_passes.serialized_patterns._sfdp_pattern_{number}" for number in range(1, 31)),
    "torch.fx.experimental.validator",
    "sympy.combinatorics",
    "sympy.tensor.tensor",
)


_Tell = Callable[..., None]


def observations_to(fd: int, nonce: str) -> _Tell:
    """A function that writes observations into their pipe. Children of the arm inherit it and are not heard."""
    os.set_inheritable(fd, False)  # noqa: FBT003
    pid = os.getpid()
    lock = threading.Lock()

    def tell(saw: str, **what: Any) -> None:
        if os.getpid() != pid:
            return
        line = json.dumps({"saw": saw, "at": time.monotonic(), "nonce": nonce, **what}).encode() + b"\n"
        with lock:
            while line:
                line = line[os.write(fd, line) :]

    return tell


def run_arm(arm: Mapping[str, Any], tell: _Tell) -> int:
    """Import torch, load the script, call the arm's function; tell each. The process's exit status comes back.

    The default device is set for this thread of this process: not for threads and processes that the arm starts.
    """
    _prepare_process(arm)
    try:
        torch = importlib.import_module("torch")
        tell("imported", versions=_versions(torch, arm["packages"]), threads=_threads(torch))
        if arm["device"]:
            torch.set_default_device(arm["device"])
        function = getattr(_load("repro", arm["script"], is_importable=True), arm["function"])
        with _probes(arm["exercises"], tell, _cuda_watch(torch, arm["device"])):
            tell("started")
            try:
                observed = function(**arm["params"])
            finally:
                _tell_vector_isas(torch, tell)
    except SystemExit as left:
        tell("left", code=str(left.code))
        raise
    except BaseException as failure:
        text = _traceback(failure)
        tell("raised", **_describe(failure, text))
        print(text, end="", file=sys.stderr)
        return 1
    tell("returned", observed=_as_text(observed))
    return 0


def _tell_vector_isas(torch: ModuleType, tell: _Tell) -> None:
    """Which ISAs were used, where the worker asked for one: by torch's own kernels, and by Inductor if it had to choose
    (asking it first would compile something).
    """
    if "ATEN_CPU_CAPABILITY" not in os.environ:
        return
    with contextlib.suppress(Exception):
        used = {"vector_isa": str(torch.backends.cpu.get_cpu_capability()).lower()}
        inductor = sys.modules.get("torch._inductor.cpu_vec_isa")
        if inductor is not None and inductor.valid_vec_isa_list.cache_info().currsize:
            used["vector_isa_inductor"] = str(inductor.pick_vec_isa())
        tell("used", versions=used)


def _prepare_process(arm: Mapping[str, Any]) -> None:
    """Set up as by `python -u -X faulthandler repro.py`, and with an answer to the supervisor's signal for
    stacks.
    """
    sys.argv = [arm["script"]]
    sys.path.insert(0, os.path.dirname(arm["script"]))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, write_through=True)  # type: ignore[union-attr]
    faulthandler.enable(file=2)
    faulthandler.register(arm["dump_signal"], file=os.dup(2), all_threads=True, chain=False)


def _load(name: str, path: str, *, is_importable: bool) -> ModuleType:
    """The module in this file. The script is importable as `repro`, with its source to be found by torch.compile."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python script")
    module = importlib.util.module_from_spec(spec)
    if is_importable:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _versions(torch: ModuleType, packages: Sequence[str]) -> dict[str, str]:
    version = getattr(torch, "version", None)
    return {
        "torch": str(torch.__version__),
        "cuda": str(getattr(version, "cuda", None) or ""),
        "git": str(getattr(version, "git_version", None) or ""),
        "triton": _installed("triton") if importlib.util.find_spec("triton") else "",
        "python": platform.python_version(),
        **{name: _installed(name) for name in packages},
    }


def _installed(package: str) -> str:
    """By its metadata: importing it only to ask would change what the arm measures."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _threads(torch: ModuleType) -> int:
    ask = getattr(torch, "get_num_threads", None)
    return int(ask()) if ask else len(os.sched_getaffinity(0))


def _traceback(failure: BaseException) -> str:
    """As Python prints it, without the frames of this file at its start: those are not the script's."""
    frame = failure.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(failure), failure, frame))


def _describe(failure: BaseException, text: str) -> dict[str, str]:
    kind = type(failure)
    prefix = "" if kind.__module__ in ("builtins", "repro") else f"{kind.__module__}."
    return {
        "kind": prefix + kind.__qualname__,
        "message": _shorten(_message(failure), _MESSAGE_CHARS),
        "text": _shorten(text, _TEXT_CHARS),
        "marked": _mark(kind),
    }


def _message(failure: BaseException) -> str:
    try:
        return str(failure)
    except Exception as second:
        return f"({type(failure).__name__} whose text cannot be had: {type(second).__name__})"


def _mark(kind: type[BaseException]) -> str:
    """The script's own classes of these names mark what they say; the same names elsewhere mark nothing."""
    names = {parent.__name__ for parent in kind.__mro__ if parent.__module__ == "repro"}
    if "WrongResult" in names:
        return "wrong_result"
    return "not_applicable" if "NotApplicable" in names else ""


def _shorten(text: str, most: int) -> str:
    """The first and the last half: a traceback names its cause at either end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half} characters cut ...]\n{text[-half:]}"


def _as_text(observed: object) -> dict[str, str]:
    """The arm's own observations, as text; anything but a mapping says nothing."""
    if not isinstance(observed, Mapping):
        return {}
    first = list(observed.items())[:_VALUES]
    return {_shorten(str(name), _VALUE_CHARS): _shorten(str(value), _VALUE_CHARS) for name, value in first}


_After = Callable[[Any, Sequence[Any], Mapping[str, Any]], None]

# Probes: what shows that an arm went the way it is meant to go. They count in closures, out of reach of whoever does
# not look for them. What watches by standing in the way a little is only installed where the arm exercises it.

_PATHS = 256
_TALLIES = ("compiled", "ran", "raised", "gave_up", "refused", "objects", "kernels", "on_cuda")
_NAME_CHARS = 200
_LOOKED_AT = 1000  # values of one call, with those in containers
_PARTS = ((list, list.__iter__), (tuple, tuple.__iter__), (dict, dict.values))  # whatever a subclass makes of them
_WATCHED_CALLS = 2  # of one compiled function: what it loads, it loads when it is compiled or first called

_Path = Callable[..., dict[str, int]]
_AnyFunction = Callable[..., Any]
_ReadFiles = Callable[[], set[str]]
_Look = Callable[[Iterable[Any]], bool]


def _cuda_watch(torch: ModuleType, device: str) -> _Look:
    """A function that tells whether a CUDA tensor is among the values that a call is given, or in containers of them.
    Where no device was set nobody looks.

    Looking must not be seen: neither modes nor subclasses of tensors hear of it. What stands for a tensor while a graph
    is traced is none.
    """

    def holds(values: Iterable[Any]) -> bool:
        pending = list(values)
        with torch._C.DisableTorchFunction():  # noqa: SLF001
            for value in itertools.islice(pending, _LOOKED_AT):
                if issubclass(type(value), torch.Tensor) and value.is_cuda and not _is_pretended(value):
                    return True
                for base, parts in _PARTS:
                    if issubclass(type(value), base):
                        pending.extend(itertools.islice(parts(value), _LOOKED_AT))
        return False

    return lambda values: bool(device and _safely(lambda: holds(values), nothing=False))


@contextlib.contextmanager
def _probes(wanted: Sequence[str], tell: _Tell, look: _Look) -> Iterator[None]:
    """Count what the arm exercises, from the call of its function to its end, however that comes."""
    counts = dict.fromkeys(wanted, 0)

    def seen(probe: str) -> None:
        counts[probe] += 1
        if counts[probe] == 1:
            tell("probe", name=probe)

    path, paths = _path_book()
    eager_calls, eager_on_cuda = itertools.count(), itertools.count()
    with contextlib.ExitStack() as stack:
        if "eager" in wanted:
            stack.enter_context(_eager_mode(eager_calls.__next__, eager_on_cuda.__next__, look))
        if "triton_launch" in wanted:
            _watch_triton_launches(seen, path)
        if any(probe.startswith(OPERATOR) for probe in wanted):
            _watch_operators(frozenset(wanted), seen, path, look)
        _watch_exports(path, look)
        _watch_dynamo(path, {name: read for probe, (name, read) in _MADE.items() if probe in wanted}, look)
        try:
            yield
        finally:
            graphs = sum(entry["compiled"] for entry in paths() if entry["kind"] == "frame")
            counts.update({probe: len(_safely(read, set())) for probe, (_, read) in _MADE.items() if probe in wanted})
            if "xla_compile" in wanted:
                counts["xla_compile"] = _safely(_xla_compilations, 0)
            summed = {
                "dynamo_graph": graphs,
                "export": sum(entry["ran"] for entry in paths() if entry["kind"] == "export"),
            }
            counts.update({probe: count for probe, count in summed.items() if probe in wanted})
            if "eager" in wanted and not graphs:
                counts["eager"] = next(eager_calls)
            if on_cuda := next(eager_on_cuda):
                path("eager", "eager")["on_cuda"] = on_cuda
            tell("probes", counts=counts, paths=paths())


def _path_book() -> tuple[_Path, Callable[[], list[dict[str, Any]]]]:
    """Two functions: the tally of a path, by its kind (`frame`, `kernel`, `export`; `eager` and `operator` where a CUDA
    tensor entered), name and backend; and all tallies.
    """
    tallies: dict[tuple[str, str, str], dict[str, int]] = {}

    def path(kind: str, name: str, backend: str = "") -> dict[str, int]:
        key = (kind, name[:_NAME_CHARS], backend[:_NAME_CHARS])
        if key not in tallies and len(tallies) >= _PATHS:
            key = (kind, "...", "")
        return tallies.setdefault(key, dict.fromkeys(_TALLIES, 0))

    def paths() -> list[dict[str, Any]]:
        return [{"kind": key[0], "name": key[1], "backend": key[2], **tally} for key, tally in list(tallies.items())]

    return path, paths


def _safely(read: Callable[[], Any], nothing: Any) -> Any:
    """A probe that cannot be read has shown nothing; the arm's own end is what counts."""
    try:
        return read()
    except Exception:
        traceback.print_exc()
        return nothing


def _inductor_objects() -> set[str]:
    """Shared objects of this attempt's own Inductor cache that are loaded here.

    Inductor's test for vector instructions is such an object too, but it is loaded by another process.
    """
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR", "")
    prefix = os.path.realpath(cache) + os.sep
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        mapped = {f"/{line.rstrip()}" for line in (line.partition("/")[2] for line in maps)}
    return {path for path in mapped if cache and path.endswith(".so") and path.startswith(prefix)}


def _inductor_triton_kernels() -> set[str]:
    """Kernels in this attempt's own Triton cache that bear Inductor's names; a group file beside each is no kernel."""
    kernels = set()
    for folder, _, files in os.walk(os.environ.get("TRITON_CACHE_DIR", "")):
        kernels |= {folder + name for name in files if name.startswith("triton_") and name.endswith(".json")}
    return kernels


_MADE: dict[str, tuple[str, _ReadFiles]] = {
    "inductor_cpp": ("objects", _inductor_objects),
    "inductor_triton": ("kernels", _inductor_triton_kernels),
}


def _xla_compilations() -> int:
    if "torch_xla" not in sys.modules:
        return 0
    metrics = importlib.import_module("torch_xla.debug.metrics")
    return int(metrics.counter_value("UncachedCompile") or 0)


def _watch_dynamo(path: _Path, made: Mapping[str, _ReadFiles], look: _Look) -> None:
    """Count, for each frame that Dynamo has compiled, the calls of its compiled code that came back.

    The function that a backend gives back is called by the bytecode that Dynamo writes, with tracing off, and is never
    traced itself: a plain function around it is seen by nobody. `made` reads what there is of Inductor's; what is new
    after a frame was compiled or called is its own. What is captured for an export is no code that runs.
    """

    def around_backend(compile_graph: _AnyFunction) -> _AnyFunction:
        @functools.wraps(compile_graph)
        def compile_watched(self: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(self, "export", False):
                return compile_graph(self, *args, **kwargs)
            options = getattr(self, "code_options", {})
            name = options.get("co_qualname") or options.get("co_name") or "?"
            tally = path("frame", _frame_name(name), _backend_name(getattr(self, "compiler_fn", None)))
            with _making(tally, made):
                function = compile_graph(self, *args, **kwargs)
            tally["compiled"] += 1
            return _count_calls(function, tally, made, look)

        return compile_watched

    def watch_graphs(module: ModuleType) -> None:
        _replace(getattr(module, "OutputGraph", None), "call_user_compiler", around_backend)

    _once_imported("torch._dynamo.output_graph", watch_graphs)
    _once_imported("torch._dynamo.convert_frame", lambda module: _watch_conversions(module, path, look))


@contextlib.contextmanager
def _making(tally: dict[str, int], made: Mapping[str, _ReadFiles]) -> Iterator[None]:
    before = {name: _safely(read, set()) for name, read in made.items()}
    try:
        yield
    finally:
        for name, read in made.items():
            tally[name] += len(_safely(read, set()) - before[name])


def _count_calls(function: Any, tally: dict[str, int], made: Mapping[str, _ReadFiles], look: _Look) -> Any:
    """A stand-in that counts the calls of a compiled function and is to Dynamo what that was: a module stays a
    module, and one that writes its code when first called writes it now, as Dynamo has it do. Else hooks on all
    modules would be called otherwise than unwatched (measured on 2.13.0: pytorch-149502).
    """
    owner = getattr(function, "__self__", function)
    lazy: Any = getattr(sys.modules.get("torch.fx._lazy_graph_module"), "_LazyGraphModule", ())
    if isinstance(owner, lazy):
        lazy.force_recompile(owner)
        if getattr(function, "__name__", "") == "_lazy_forward":
            function = owner.forward
    module_kind = getattr(sys.modules.get("torch.nn"), "Module", ())
    if not isinstance(function, module_kind):
        return _counted(function, tally, made, look)
    function.forward = _counted(function.forward, tally, made, look)
    return function


def _counted(
    function: _AnyFunction, tally: dict[str, int], made: Mapping[str, _ReadFiles], look: _Look
) -> _AnyFunction:
    first_calls = iter(range(_WATCHED_CALLS if made else 0))

    def call(*args: Any, **kwargs: Any) -> Any:
        tally["on_cuda"] += look((*args, *kwargs.values()))
        try:
            if next(first_calls, None) is None:
                result = function(*args, **kwargs)
            else:
                with _making(tally, made):
                    result = function(*args, **kwargs)
        except BaseException:
            tally["raised"] += 1
            raise
        tally["ran"] += 1
        return result

    return call


def _watch_conversions(module: ModuleType, path: _Path, look: _Look) -> None:
    """Count frames that were given up because of an error, or refused for what Dynamo does not know, whoever swallowed
    it. A frame that is left to eager mode, or begun anew, is neither. One that is never compiled has its arguments
    looked at here: globals and locals are the first things that it comes with.
    """

    def around(convert: _AnyFunction) -> _AnyFunction:
        @functools.wraps(convert)
        def convert_watched(code: Any, *args: Any, **kwargs: Any) -> Any:
            if look(args[1:2]):
                path("frame", _frame_name(getattr(code, "co_qualname", code.co_name)))["on_cuda"] += 1
            try:
                return convert(code, *args, **kwargs)
            except Exception as failure:
                kinds = {parent.__name__ for parent in type(failure).__mro__}
                if not kinds & _NO_FAILURES:
                    tally = path("frame", _frame_name(getattr(code, "co_qualname", code.co_name)))
                    tally["refused" if kinds & _REFUSALS else "gave_up"] += 1
                raise

        return convert_watched

    _replace(module, "_compile", around)


_NO_FAILURES = frozenset({"RestartAnalysis", "SkipFrame"})
_REFUSALS = frozenset({"Unsupported", "UserError"})
_RESUMED = "torch_dynamo_resume_in_"
_RESUMED_UP_TO_2_2 = "resume_in_"


def _frame_name(qualified: str) -> str:
    """The function that a frame is of: what Dynamo makes of the rest after a graph break bears a name of its own."""
    above, dot, name = qualified.removeprefix(_RESUMED_UP_TO_2_2).rpartition(".")
    while name.startswith(_RESUMED):
        name = name[len(_RESUMED) :].rpartition("_at_")[0]
    return above + dot + name


def _backend_name(backend: Any) -> str:
    while hasattr(backend, "_torchdynamo_orig_backend"):
        backend = backend._torchdynamo_orig_backend  # noqa: SLF001
    name = getattr(backend, "compiler_name", None) or getattr(backend, "__name__", None) or type(backend).__name__
    return str(name)


def _replace(holder: Any, name: str, around: Callable[[_AnyFunction], _AnyFunction]) -> None:
    """Put something around a function, where this release has it."""
    original = getattr(holder, name, None)
    if original is not None:
        setattr(holder, name, around(original))


def _watch_exports(path: _Path, look: _Look) -> None:
    """Count programs that torch.export gave back, below its public functions: a script may have imported these."""

    def around(export: _AnyFunction) -> _AnyFunction:
        @functools.wraps(export)
        def export_watched(exported: Any, *args: Any, **kwargs: Any) -> Any:
            program = export(exported, *args, **kwargs)
            name = getattr(exported, "__qualname__", None) or type(exported).__qualname__
            tally = path("export", name)
            tally["ran"] += 1
            tally["on_cuda"] += look((*args, *kwargs.values()))
            return program

        return export_watched

    def watch(module: ModuleType) -> None:
        for name in ("_export", "_export_for_training"):
            _replace(module, name, around)

    _once_imported("torch.export._trace", watch)


def _eager_mode(
    tick: Callable[[], int], tick_on_cuda: Callable[[], int], look: _Look
) -> contextlib.AbstractContextManager[object]:
    """A mode that sees calls of torch's own functions and counts them by `tick`, and those with a CUDA tensor by
    `tick_on_cuda`; both are made in C.

    Dynamo guards on all that it can read of an active mode: a counter of Python's would change under its guards and
    fail the arm (measured on 2.7.1). A function that compiles parts of itself, as flex_attention does in eager mode,
    has the mode traced, and Dynamo knows no function made in C (measured on 2.11.0): then nothing is counted.
    """
    compiler = getattr(importlib.import_module("torch"), "compiler", None)
    is_traced = getattr(compiler, "is_compiling", bool)  # came with torch 2.3; modes are traced since later ones

    class Eager(importlib.import_module("torch.overrides").TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not is_traced():
                tick()
                if look((*args, *(kwargs or {}).values())):
                    tick_on_cuda()
            return func(*args, **(kwargs or {}))

    mode: contextlib.AbstractContextManager[object] = Eager()
    return mode


def _watch_operators(wanted: frozenset[str], seen: Callable[[str], None], path: _Path, look: _Look) -> None:
    """Count calls from Python and from compiled graphs, by class: a call finds `__call__` on the type alone.

    Propagating shapes while a graph is traced is no run of the operator, so calls with fake tensors do not count.
    """
    ops = importlib.import_module("torch._ops")

    def called(op: Any, values: Sequence[Any], _: Mapping[str, Any]) -> None:
        schema = getattr(op, "_schema", None)
        probe = OPERATOR + str(schema.name if schema is not None else getattr(op, "_qualified_op_name", ""))
        if probe in wanted and not any(_is_pretended(value) for value in values):
            seen(probe)
            if look(values):
                path("operator", probe.removeprefix(OPERATOR))["on_cuda"] += 1

    for kind in (ops.OpOverload, ops.OpOverloadPacket):
        _wrap(kind, "__call__", called)


def _is_pretended(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_is_pretended(part) for part in value)
    return type(value).__name__ in ("FakeTensor", "FunctionalTensor", "Proxy") or bool(getattr(value, "is_meta", False))


def _watch_triton_launches(seen: Callable[[str], None], path: _Path) -> None:
    """Count launches where Python makes them: Triton's own entry, and Inductor's (either module, by release).

    Triton's launch hooks would be the documented way, but a hook that is set makes Inductor (2.8 and newer) give up its
    static launcher: the arm would go another way because it is watched. Triton's dry runs (`warmup`) are no launches.
    """

    def launched(kernel: Any, _: Sequence[Any], options: Mapping[str, Any]) -> None:
        if not options.get("warmup"):
            path("kernel", _kernel_name(kernel))["ran"] += 1
            seen("triton_launch")

    _once_imported("triton.runtime.jit", lambda module: _wrap(module.JITFunction, "run", launched))
    for name in ("torch._inductor.runtime.triton_heuristics", "torch._inductor.triton_heuristics"):
        _once_imported(name, lambda module: _wrap_if_there(module, "CachingAutotuner", launched))


def _kernel_name(kernel: Any) -> str:
    """As its function is called, whatever is around it."""
    while getattr(kernel, "fn", None) is not None:
        kernel = kernel.fn
    return str(getattr(kernel, "__name__", "?"))


def _wrap_if_there(module: ModuleType, kind: str, after: _After) -> None:
    if hasattr(module, kind):
        _wrap(getattr(module, kind), "run", after)


def _wrap(kind: type, method: str, after: _After) -> None:
    """Have `after` told the object, all values and the named ones, each time the method came back without raising."""
    original = getattr(kind, method)

    @functools.wraps(original)
    def wrapped(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        after(self, (*args, *kwargs.values()), kwargs)
        return result

    setattr(kind, method, wrapped)


def _once_imported(name: str, act: Callable[[ModuleType], None]) -> None:
    """Act on a module now, or as soon as it is imported: importing it for our own sake would change the arm."""
    if name in sys.modules:
        act(sys.modules[name])
    else:
        sys.meta_path.insert(0, _ImportHook(name, act))


class _ImportHook(importlib.abc.MetaPathFinder):
    """Finds one module the ordinary way, and has its loader call back when the module is there."""

    def __init__(self, name: str, act: Callable[[ModuleType], None]) -> None:
        self._name = name
        self._act = act

    def find_spec(self, fullname: str, *_: Any) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            self._act(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


# The fork server: a process that has imported torch and Inductor and does nothing but fork. An arm that is forked from
# it differs from a fresh one in this: the hash seed is the same for all arms of a fork server; Inductor's modules are
# there before the arm asks for them (not where a GPU is in view), and are never collected; no pool of Triton compile
# processes was started (one starts when first needed). A repro for which that matters gives its arms a variable in ENV:
# those always start fresh.


class _BecomeArm(BaseException):
    """Raised in a forked arm to unwind to the outermost frame, so that it ends as an interpreter ends."""

    def __init__(self, order: dict[str, Any], observations: int) -> None:
        super().__init__()
        self.order = order
        self.observations = observations


def serve_forks(channel: socket.socket, supervisor_path: str, root: str) -> NoReturn:
    """Preload, tell on `channel` whether this process is fit to be forked, then fork a supervisor for every order.

    An order is one byte with the socket of its arm attached; end of file ends the fork server. `root` holds its own
    home, caches and temporary files: paths that modules built from them are moved into each arm's own folder.
    """
    supervisor = _load("knowngood_supervisor", supervisor_path, is_importable=False)
    os.environ.update(_NO_POOL)
    for name in _preloaded(sees_gpu=bool(os.environ.get("CUDA_VISIBLE_DEVICES"))):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _keep_folders(root)
    built = list(_paths_built(root))
    gc.collect()
    gc.freeze()  # else every arm would copy all these objects' pages, to collect them as it ends (1 s of 1.1 s)
    fitness = _fitness()
    supervisor.sandbox.be_private()
    channel.sendall(json.dumps(fitness).encode() + b"\n")
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        order_byte, sockets, _, _ = socket.recv_fds(channel, 1, 1)
        if not order_byte:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            supervisor.supervise(
                socket.socket(fileno=sockets[0]), lambda order, fd: _become_arm(order, fd, root, built)
            )
            os._exit(0)
        os.close(sockets[0])


def _preloaded(*, sees_gpu: bool) -> Iterator[str]:
    """Modules that the fork server imports. Where a GPU is in view Inductor is left to the arms: from torch 2.7 on
    importing it asks CUDA what is there, and torch then refuses CUDA to every fork. That costs an arm 1 s; torch and
    Dynamo, 4 s, are still saved (measured 2026-11).
    """
    return (name for name in _PRELOAD if not (sees_gpu and name.startswith("torch._inductor")))


def _reap(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _fitness() -> dict[str, int]:
    """Counts of everything that makes forking unsafe, taken after one fork: OpenBLAS ends its threads before the first
    one.

    A CUDA context cannot be forked; a process that has begun one holds devices of the driver open. Nor can CUDA be used
    in a fork once it was asked what is there (`asked_cuda`).
    """
    pid = os.fork()
    if pid == 0:
        os._exit(_is_cuda_refused())
    _, status = os.waitpid(pid, 0)
    children = 0
    threads = os.listdir("/proc/self/task")
    for thread in threads:
        with open(f"/proc/self/task/{thread}/children", encoding="ascii") as file:
            children += len(file.read().split())
    opened = [_link(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd")]
    devices = sum(path.startswith("/dev/nvidia") for path in opened)
    asked_cuda = os.WEXITSTATUS(status)
    return {"threads": len(threads), "children": children, "gpu_devices": devices, "asked_cuda": asked_cuda}


def _is_cuda_refused() -> bool:
    """In a forked process: whether torch would refuse to use CUDA here."""
    native = getattr(sys.modules.get("torch"), "_C", None)
    ask = getattr(native, "_cuda_isInBadFork", None)
    return bool(ask and ask())


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""  # the descriptor that the folder itself was listed by


def _paths_built(root: str) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Every text below `root` that a module of torch or Triton holds: (where, name, path below root).

    Measured 2026-11: torch 2.15 builds three such paths while it is imported, 2.3 to 2.7 none.
    """
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] not in ("torch", "triton") or not isinstance(module, ModuleType):
            continue
        for holder in (vars(module), *_attributes_of_values(module)):
            for key, value in list(holder.items()):
                if isinstance(value, str) and value.startswith(root + os.sep):
                    yield holder, key, value[len(root) :]


def _attributes_of_values(module: ModuleType) -> Iterator[dict[str, Any]]:
    kinds = (module.__name__, "tempfile")
    for value in list(vars(module).values()):
        if type(value).__module__ in kinds and isinstance(getattr(value, "__dict__", None), dict):
            yield value.__dict__


def _keep_folders(root: str) -> None:
    """A temporary folder that a module made for itself is removed by the first process that ends: an arm."""
    for finalizer in list(weakref.finalize._registry):  # type: ignore[attr-defined] # noqa: SLF001
        held = finalizer.peek()
        if held and any(isinstance(value, str) and value.startswith(root) for value in held[2]):
            finalizer.detach()


def _become_arm(
    order: dict[str, Any], observations: int, root: str, built: Sequence[tuple[dict[str, Any], str, str]]
) -> NoReturn:
    """In the arm's process: take its environment and places, draw chance anew, and leave the fork server's frames."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["env"])
    time.tzset()
    tempfile.tempdir = None
    here = order["cwd"]
    shutil.copytree(root, here, dirs_exist_ok=True)
    for holder, key, below in built:
        holder[key] = here + below
    sys.path[:] = [here + path[len(root) :] if path.startswith(root) else path for path in sys.path]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    raise _BecomeArm(order, observations)


def _set_teardown_aside(folder: str) -> None:
    """Let threads and exit handlers come to their end, then send what is still written to `teardown.txt`.

    What was frozen is never collected, and libraries report that as leaks of the arm (nanobind, torch 2.15). The file
    is evidence only where the process does not survive its own end.
    """
    threading._shutdown()  # type: ignore[attr-defined] # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    aside = os.open(f"{folder}/teardown.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream, fd in ((sys.stdout, 1), (sys.stderr, 2)):
        stream.flush()
        os.dup2(aside, fd)


def _be_private() -> None:
    """Where nothing keeps other arms from writing through our descriptors. It does not outlast becoming a program."""
    ctypes = importlib.import_module("ctypes")
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def main(how: str, fd: int, *rest: str) -> int:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != here]
    if how == "--arm":
        with open(int(rest[0]), encoding="ascii") as held:
            nonce = held.read()
        arm = json.loads(rest[1])
        if arm["is_private"]:
            _be_private()
        return run_arm(arm, observations_to(fd, nonce))
    try:
        serve_forks(socket.socket(fileno=fd), rest[0], rest[1])
    except _BecomeArm as become:
        arm, tell = become.order["arm"], observations_to(become.observations, become.order.pop("nonce"))
    status = run_arm(arm, tell)
    _set_teardown_aside(os.path.dirname(arm["script"]))
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:]))
