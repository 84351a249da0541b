"""Sandbox policy: which parts of this host an arm sees, and which level of isolation works here, tried for real.

Here: what is shown and hidden, and which level is reached. Not here: how it is done (sandbox), what a level is (the
domain).

The root is read-only and made of system folders; everything else (home folders, /var, /run, /mnt, /srv, the data folder
with its database and other runs) is not there, except what an interpreter or a compiler needs. A list of what is
sensitive would be shorter and wrong on the first host that keeps its secrets elsewhere.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from knowngood.domain.measuring.isolation import NAMESPACES, NO_NETWORK, Isolation, isolation_of
from knowngood_workers.common.files import read_regular
from knowngood_workers.common.programs import ask_program
from knowngood_workers.host.machine_info import find_compiler
from knowngood_workers.standalone import cgroup, sandbox

PROCESS = "process"

_TRY_S = 60
_ROOM_BYTES = 1 << 30  # of /tmp, which only programs use that do not ask for TMPDIR; of /dev/shm half of the memory
_TASKS = 16384  # threads and processes of one arm; torch starts one of each for every core

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "sys", "nix", "gnu")
_ALSO = ("/run/opengl-driver", "/run/current-system")  # where NixOS keeps the driver and everybody's programs
_NEVER = (
    "/etc/pip.conf",
    "/etc/uv",
    "/sys/firmware",
    "/sys/kernel/debug",
    "/sys/kernel/tracing",
    "/sys/kernel/security",
)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_GPU_DEVICES = ("nvidia*", "dri", "dxg", "nvhost*", "nvmap")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - not made by us
_OF_ENVIRONMENT = ("pylock.toml", "pins.txt", "ready.json")  # they name hosts

_WHERE_PACKAGES_ARE = """
import importlib.util, json, os, sys
specs = [importlib.util.find_spec(name) for name in ("torch", "triton", "numpy")]
origins = [os.path.dirname(os.path.dirname(spec.origin)) for spec in specs if spec and spec.origin]
print(json.dumps([path for path in (*sys.path, *origins) if os.path.isdir(path)]))
"""

# What the inside must be like, looked at from the inside with the interpreter that the arms will have.
_LOOK_AROUND = """
import json, os, subprocess, sys
told = json.loads(sys.argv[1])
wrong = [] if os.getpid() < 10 or not told["alone"] else ["other processes are seen"]
for path in told["hidden"]:
    if os.path.isdir(path) and set(os.listdir(path)) - set(told["kept"].get(path, ())):
        wrong.append(path + " is seen")
try:
    open(os.path.join(told["scratch"], "written"), "w").close()
except OSError as failure:
    wrong.append("its scratch folder cannot be written: %s" % failure)
def fails_to_write(folder):
    path = os.path.join(folder, "knowngood-wrote-here")
    try:
        open(path, "x").close()
        os.unlink(path)
    except OSError as failure:
        return str(failure)
if not fails_to_write(told["environment"]) or not (told["mutable"] or fails_to_write(told["packages"])):
    wrong.append("its environment can be written")
if told["mutable"] and fails_to_write(told["packages"]):
    wrong.append("its packages cannot be written: " + fails_to_write(told["packages"]))
if told["compiler"] and subprocess.call([*told["compiler"], "--version"], stdout=2):
    wrong.append("its compiler does not run")
if told["gpu"]:
    import ctypes
    count = ctypes.c_int()
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
            wrong.append("CUDA finds no GPU")
    except OSError as failure:
        wrong.append("CUDA cannot be loaded: %s" % failure)
print(json.dumps(wrong))
"""

_SEEN_INSIDE = ("starting", "looking around")

_GROUP_BYTES = 8 << 20
_TAKE = (
    "import os, sys; os.write(os.open(sys.argv[1] + '/cgroup.procs', os.O_WRONLY), b'0')\n"
    "taken = b'x' * int(sys.argv[2]); print(len(taken), flush=True); sys.stdin.read()"
)

_Op = tuple[Any, ...]


@dataclass(frozen=True)
class SandboxSpec:
    """The means that shut arms off, and what they then see: `ops` as sandbox reads them, in order, without what is the
    attempt's own. `why_not` says in words why they are no more (empty: there are none, or it was capped).
    """

    steps: tuple[str, ...] = (PROCESS, NO_NETWORK)
    ops: tuple[_Op, ...] = ()
    tasks: int = _TASKS
    why_not: str = ""

    @property
    def level(self) -> Isolation:
        return isolation_of(self.steps)

    def around(self, scratch: Path, also: Sequence[Path] = ()) -> dict[str, Any]:
        """The specification of one attempt's sandbox, for sandbox: `scratch` is writable, `also` is shown."""
        return {
            "steps": list(self.steps),
            "ops": [*self.ops, ("open", str(scratch)), *(("show", str(path)) for path in also)],
            "mount": str(scratch / MOUNT),
            "cwd": str(scratch),
            "tasks": self.tasks,
        }


MOUNT = "root"
"""The empty folder of a scratch folder on which the new root is built."""

OPEN = SandboxSpec(steps=(PROCESS,))
"""Limits alone: the network and the host's files stay where they are."""


@dataclass(frozen=True)
class SandboxInputs:
    """Inputs of a sandbox's mount operations. `root` is the data folder; `extra` what else this environment needs to
    be shown.

    `interpreter` is the Python that an environment of ours was made of: an arm may have edited what would tell. Where
    it is None the environment is not ours, and arms only ever see it. `cache` is uv's, whose files it links.
    """

    python: Path
    root: Path
    memory_bytes: int
    interpreter: Path | None = None
    cache: Path | None = None
    sees_gpu: bool = False
    is_mutable: bool = False
    extra: tuple[Path, ...] = ()
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def environment(self) -> Path:
        return self.python.parents[1]

    @property
    def packages(self) -> Path:
        """All that an arm may edit of its environment: not what says which interpreter it is run by."""
        return self.environment / "lib"


def probe_sandbox(sandbox_inputs: SandboxInputs, scratch: Path, at_most: Isolation = Isolation.FILTERED) -> SandboxSpec:
    """The most that works here: tried from `at_most` downwards with everything that the arms will have. `scratch` is an
    empty folder of its own.
    """
    why: list[str] = []
    if at_most.rank >= Isolation.NAMESPACES.rank:
        ops = tuple(_in_order(list(_ops(sandbox_inputs))))
        steps = _steps(at_most)
        while True:
            sandbox_spec = SandboxSpec((PROCESS, NO_NETWORK, NAMESPACES, *steps), ops)
            problem = _try(sandbox_spec, sandbox_inputs, scratch)
            if problem is None:
                return replace(sandbox_spec, why_not="; ".join(why))
            why.append(_explain_refusal(*problem))
            fewer = _fewer_filters(steps, problem[0])
            if fewer == steps:
                break
            steps = fewer
    if at_most.rank >= Isolation.NETWORK.rank:
        if _can_leave_network(scratch):
            return _with_landlock(SandboxSpec(why_not="; ".join(why)), sandbox_inputs, scratch)
        why = why or [_explain_refusal("user namespace", 1)]
    return _with_landlock(replace(OPEN, why_not="; ".join(why)), sandbox_inputs, scratch)


def _with_landlock(sandbox_spec: SandboxSpec, sandbox_inputs: SandboxInputs, scratch: Path) -> SandboxSpec:
    """Add Landlock, where all works with it: without namespaces it keeps an arm away from the processes of others."""
    if sandbox.landlock_version() <= 1:
        return sandbox_spec
    tighter = replace(sandbox_spec, steps=(*sandbox_spec.steps, sandbox.LANDLOCK), ops=tuple(_writable(sandbox_inputs)))
    return sandbox_spec if _try(tighter, sandbox_inputs, scratch) else tighter


def _fewer_filters(steps: tuple[str, ...], failed: str) -> tuple[str, ...]:
    """The filters to go on with: less the one that was refused, or none where something does not work among them."""
    named = {"Landlock": sandbox.LANDLOCK, "seccomp": sandbox.SECCOMP}.get(failed)
    if named is not None:
        return tuple(step for step in steps if step != named)
    return () if failed in _SEEN_INSIDE else steps


def probe_host_sandbox(root: Path, at_most: Isolation = Isolation.FILTERED) -> SandboxSpec:
    """The same for this host as it is, before there is an environment: with the worker's own interpreter."""
    with tempfile.TemporaryDirectory(prefix="kg-") as folder:
        sandbox_inputs = SandboxInputs(Path(sys.executable), root, memory_bytes=1 << 30)
        return probe_sandbox(sandbox_inputs, Path(folder), at_most)


def probe_cgroups() -> tuple[str, str]:
    """The control group below which arms get theirs, where the kernel limits and ends what is in one; empty where not,
    and in words why. No limit is overrun to see it: the kernel's log would tell of a lack of memory each time.
    """
    home, why_not = cgroup.find_home(cgroup.own_group())
    if not home:
        return "", why_not
    with cgroup.group_for_arm(home, 4 * _GROUP_BYTES, tasks=64) as group:
        if not group:
            return "", "the kernel refuses to make or limit a control group"
        command = [sys.executable, "-I", "-S", "-c", _TAKE, group, str(_GROUP_BYTES)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            is_in = bool(process.stdout and process.stdout.readline())
            is_counted = cgroup.held_bytes(group) > _GROUP_BYTES // 2
            is_ended = cgroup.remove(group)
            process.kill()
    is_sound = is_in and is_counted and is_ended
    return (home, "") if is_sound else ("", "a process in a control group is not counted or not ended there")


def _steps(at_most: Isolation) -> tuple[str, ...]:
    if at_most is not Isolation.FILTERED:
        return ()
    landlock = (sandbox.LANDLOCK,) if sandbox.landlock_version() > 1 else ()
    return (*landlock, *((sandbox.SECCOMP,) if sandbox.is_filter_known() else ()))


def sandbox_command(sandbox_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """The prefix that runs a command inside a sandbox; empty where the specification lets it run as
    it is.
    """
    if set(sandbox_spec["steps"]) == {PROCESS}:
        return ()
    return (sys.executable, "-I", "-S", sandbox.__file__, json.dumps(sandbox_spec))


def _try(sandbox_spec: SandboxSpec, sandbox_inputs: SandboxInputs, scratch: Path) -> tuple[str, int, str] | None:
    """Try it. None where the inside is as it should be; else the failed step, the kernel's number and what differs."""
    (scratch / MOUNT).mkdir(exist_ok=True)
    compiler = find_compiler(sandbox_inputs.environ)
    is_alone = NAMESPACES in sandbox_spec.steps
    expected = {
        "alone": is_alone,
        "hidden": [str(sandbox_inputs.root), *map(str, _homes(sandbox_inputs.environ))] if is_alone else [],
        "kept": _names_on_the_way([op[1] for op in sandbox_spec.around(scratch)["ops"]]),
        "scratch": str(scratch),
        "environment": str(sandbox_inputs.environment),
        "packages": str(sandbox_inputs.packages),
        "mutable": sandbox_inputs.is_mutable,
        "gpu": sandbox_inputs.sees_gpu,
        "compiler": compiler if _runs(compiler, tuple(_plain(sandbox_inputs.environ).items())) else (),
    }
    command = [
        *sandbox_command(sandbox_spec.around(scratch)),
        str(sandbox_inputs.python),
        "-I",
        "-S",
        "-c",
        _LOOK_AROUND,
        json.dumps(expected),
    ]
    try:
        ran = subprocess.run(
            command, env=_plain(sandbox_inputs.environ), capture_output=True, text=True, timeout=_TRY_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        return "starting", 0, str(failure)
    last = (ran.stderr.strip().splitlines() or [""])[-1]
    if ran.returncode == sandbox.REFUSED and last.startswith("{"):
        refused = json.loads(last)
        return refused["step"], refused["errno"], ""
    try:
        wrong = json.loads(ran.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return "looking around", 0, last or f"status {ran.returncode}"
    return ("looking around", 0, "; ".join(wrong)) if wrong else None


def _plain(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in environ}


@cache  # asked for the host and for each environment
def _runs(compiler: tuple[str, ...], variables: tuple[tuple[str, str], ...]) -> bool:
    return ask_program([*compiler, "--version"], dict(variables), timeout_s=_TRY_S) is not None


def _names_on_the_way(paths: Sequence[str]) -> dict[str, list[str]]:
    """For every folder on the way to what is shown, the names in it that lead there."""
    by_parent: dict[str, set[str]] = {}
    for path in map(Path, paths):
        for child, parent in zip((path, *path.parents), path.parents, strict=False):
            by_parent.setdefault(str(parent), set()).add(child.name)
    return {parent: sorted(names) for parent, names in by_parent.items()}


def _can_leave_network(scratch: Path) -> bool:
    command = [sys.executable, "-I", "-S", sandbox.__file__]
    order = json.dumps({"steps": [NO_NETWORK], "cwd": str(scratch), "ops": []})
    look = "import socket, sys; sys.exit([name for _, name in socket.if_nameindex()] != ['lo'])"
    return ask_program([*command, order, sys.executable, "-I", "-S", "-c", look], timeout_s=_TRY_S) is not None


def _explain_refusal(step: str, number: int, differences: str = "") -> str:
    if step in _SEEN_INSIDE:
        return f"inside namespaces of its own an arm would not be as it should: {differences}"
    if step == "a /proc of its own":
        return "this container covers parts of its /proc; run it with --security-opt systempaths=unconfined"
    if step in ("user namespace", "ids in a user namespace"):
        return _why_no_user_namespace()
    return f"the kernel refuses {step} ({os.strerror(number)})"


def _why_no_user_namespace() -> str:
    for path, off, advice in (
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile that allows it",
        ),
    ):
        if cgroup.read(path).strip() == off:
            return f"user namespaces are off on this host: {advice}"
    return (
        "user namespaces are refused here, as containers do: run it with --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined"
    )


def _ops(sandbox_inputs: SandboxInputs) -> Iterator[_Op]:
    """Everything that does not depend on the attempt, in no order yet."""
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            yield "link", str(path), str(path.readlink())
        elif path.is_dir():
            yield "show", str(path)
    yield from (
        ("hide", path) for path in (str(sandbox_inputs.root), *_NEVER, *map(str, _homes(sandbox_inputs.environ)))
    )
    yield from (("hide", path) for path in _unreadable())
    yield from (("show", path) for path in _ALSO)
    yield "show", str(sandbox_inputs.environment)
    if sandbox_inputs.is_mutable:
        yield "open", str(sandbox_inputs.packages)
    yield from (("hide", str(sandbox_inputs.environment / name)) for name in _OF_ENVIRONMENT)
    yield "show", str(Path(sandbox.__file__).with_name("harness.py"))
    interpreter = sandbox_inputs.interpreter or sandbox_inputs.python
    for path in (*interpreter_places(interpreter), *_tools(sandbox_inputs.environ), *sandbox_inputs.extra):
        if not _is_too_wide(path, sandbox_inputs):
            yield "show", str(path)
    yield "room", "/tmp", _ROOM_BYTES  # noqa: S108 - the place inside
    yield "room", "/var/tmp", _ROOM_BYTES  # noqa: S108
    yield from _device_ops(sandbox_inputs)


def _writable(sandbox_inputs: SandboxInputs) -> Iterator[_Op]:
    """Without namespaces: the host's own places, but never one that holds the data folder or the environment."""
    if sandbox_inputs.is_mutable:
        yield "open", str(sandbox_inputs.packages)
    own = [path for path in (sandbox_inputs.root, sandbox_inputs.environment, sandbox_inputs.cache) if path is not None]
    for place in map(Path, _SHARED):
        if place.exists() and not any(place == path or place in path.parents for path in own):
            yield "open", str(place)
    yield from (("use", str(path)) for path in (*_devices(sandbox_inputs), Path("/dev/pts"), Path("/dev/ptmx")))


def _device_ops(sandbox_inputs: SandboxInputs) -> Iterator[_Op]:
    yield from (("show", str(path)) for path in _devices(sandbox_inputs))
    for name, text in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        yield "link", f"/dev/{name}", f"/proc/self/fd{text}"
    yield "room", "/dev/shm", sandbox_inputs.memory_bytes // 2  # noqa: S108
    yield "terminals", "/dev/pts"
    yield "link", "/dev/ptmx", "pts/ptmx"


def _homes(environ: Mapping[str, str]) -> list[Path]:
    homes = {
        Path("/root"),
        Path("/home"),
        Path.home(),
        *(Path(environ[name]) for name in ("HOME",) if environ.get(name)),
    }
    return sorted(path for path in homes if path.is_absolute() and path != Path("/"))


def _devices(sandbox_inputs: SandboxInputs) -> Iterator[Path]:
    for pattern in (*_DEVICES, *(_GPU_DEVICES if sandbox_inputs.sees_gpu else ())):
        yield from sorted(Path("/dev").glob(pattern))


@cache
def _unreadable() -> tuple[str, ...]:
    """Files of /etc that are not for everybody: a worker that runs as root would hand them to its arms."""
    unreadable = []
    for folder, folders, files in os.walk("/etc"):
        for name in (*folders, *files):
            path = os.path.join(folder, name)  # noqa: PTH118 - thousands of them
            mode = os.lstat(path).st_mode if os.path.lexists(path) else 0o444
            if not mode & 0o004:
                unreadable.append(path)
        folders[:] = [name for name in folders if os.path.join(folder, name) not in unreadable]  # noqa: PTH118
    return tuple(unreadable)


def interpreter_places(python: Path) -> list[Path]:
    """Folders that the interpreter behind a virtual environment needs: its prefix under each name it goes by.

    A venv's `python` is a link, often through further links (uv, pyenv, /etc/alternatives), and pyvenv.cfg names the
    folder from which the standard library is found.
    """
    places: list[Path] = []
    step = python
    for _ in range(40):  # as many links as the kernel follows
        places += _prefix(step) if step != python else []
        if not step.is_symlink():
            break
        step = step.parent / step.readlink()
    real = python.resolve()
    programs = programs_behind(python)
    places += _prefix(programs / real.name) if programs is not None else []
    return list(dict.fromkeys([*places, *_prefix(real)]))


def programs_behind(python: Path) -> Path | None:
    """The folder of the interpreter that a virtual environment's `python` was made of; None where nothing says so."""
    parts = (line.partition("=") for line in read_regular(python.parents[1] / "pyvenv.cfg").splitlines())
    return next((Path(value.strip()) for key, _, value in parts if key.strip() == "home"), None)


def _prefix(program: Path) -> list[Path]:
    """The installation that holds a program, or only its parts where the same folder holds other things too."""
    prefix = Path(os.path.normpath(program.parent.parent))
    version = program.resolve().name
    if (prefix / "lib" / version).is_dir() and _is_common(prefix):
        parts = [prefix / "lib" / version, prefix / "include" / version, *(prefix / "lib").glob("libpython*")]
        return [program, *(part for part in parts if part.exists())]
    return [program] if _is_common(prefix) else [prefix]


def _is_common(prefix: Path) -> bool:
    """Such as / and ~/.local, which programs share with everything else somebody has."""
    home = Path.home()
    return (
        prefix == Path("/") or prefix in (home, home / ".local", Path("/var"), Path("/run")) or prefix in home.parents
    )


def _tools(environ: Mapping[str, str]) -> Iterator[Path]:
    """Compilers and libraries that the worker's own variables and the loader's settings point to."""
    for command in (environ.get("CC", "").split(), environ.get("CXX", "").split(), find_compiler(environ)):
        program = shutil.which(command[0], path=environ.get("PATH")) if command else None
        if program:
            yield from (Path(program), *_prefix(Path(program).resolve()))
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH"):
        yield from (Path(part) for part in environ.get(name, "").split(os.pathsep) if part.startswith("/"))
    for path in (Path("/etc/ld.so.conf"), *sorted(Path("/etc/ld.so.conf.d").glob("*.conf"))):
        yield from (Path(line.strip()) for line in cgroup.read(path).splitlines() if line.startswith("/"))


def _is_too_wide(path: Path, sandbox_inputs: SandboxInputs) -> bool:
    """Whether showing a path would show the data folder or a whole home with it."""
    return not path.exists() or any(
        path == hidden or path in hidden.parents for hidden in (sandbox_inputs.root, *_homes(sandbox_inputs.environ))
    )


def packages_of(python: Path) -> tuple[Path, ...]:
    """Where an interpreter that we did not set up finds its packages: editable installations lie anywhere."""
    command = [str(python), "-B", "-c", _WHERE_PACKAGES_ARE]
    printed = ask_program(command, _plain(os.environ), timeout_s=_TRY_S, cwd="/") or "[]"
    return tuple(Path(path) for path in json.loads(printed.splitlines()[-1]))


def _in_order(ops: Sequence[_Op]) -> list[_Op]:
    """Parents before what lies in them, and nothing twice: what is shown is not shown again inside, and only what is
    shown needs hiding.
    """
    ordered: list[_Op] = []
    kinds: dict[Path, str] = {}
    rank = {"hide": 0, "show": 1, "open": 2}
    for kind, path, *rest in sorted(ops, key=lambda op: (len(Path(op[1]).parts), rank.get(op[0], 1))):
        around = _innermost_kind(Path(path), kinds)
        place = Path(path)
        if around in _SEEN and kind in rank:  # a link on the way is seen inside as well, and leads to the same place
            place = place.resolve()
            around = _innermost_kind(place, kinds)
        is_needed = {"show": around not in _SEEN, "hide": around in _SEEN}.get(kind, kinds.get(place) != kind)
        if is_needed and (kind not in rank or place.exists()):
            ordered.append((kind, str(place), *rest))
            kinds[place] = kind
    return ordered


_SEEN = ("show", "open", "link")


def _innermost_kind(path: Path, kinds: Mapping[Path, str]) -> str:
    return next((kinds[place] for place in (path, *path.parents) if place in kinds), "")
