"""Leaves what later arms would run: variables, start files, modules by names that Python imports by itself."""

import os
import pathlib
import subprocess
import sys

SHARED = ("/tmp", "/var/tmp", "/dev/shm")


def baseline(is_all=True):
    os.environ["LD_PRELOAD"] = os.environ["PYTHONSTARTUP"] = os.path.abspath("evil.so")
    home = pathlib.Path.home()
    for name in (".bashrc", ".profile", ".pydistutils.cfg", ".local/lib/python3/site-packages/usercustomize.py"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("echo left\n")
    caches = [os.environ[name] for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")]
    for folder in (*caches, *(SHARED if is_all else ())):
        pathlib.Path(folder, "knowngood-left").write_text("left")
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    return {"left": "all"}


def control(is_all=True):
    """Look for what another arm left."""
    places = [
        os.environ[name] for name in ("HOME", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR")
    ]
    found = [name for place in (*places, *(SHARED if is_all else ())) for name in os.listdir(place)]
    variables = [name for name in ("LD_PRELOAD", "PYTHONSTARTUP") if name in os.environ]
    return {
        "found": " ".join(name for name in found if "left" in name or name.startswith(".")),
        "set": " ".join(variables),
    }
