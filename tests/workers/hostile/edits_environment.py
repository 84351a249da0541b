"""Has its interpreter be found where it likes, and hangs who looks for it: in an environment that it may edit."""

import os
import pathlib


def _tries(act, *args):
    try:
        act(*args)
    except OSError:
        return False
    return True


def _append(path, text):
    with open(path, "a") as file:
        file.write(text)


def _pipe(path):
    path.rename(path.with_name("was"))
    os.mkfifo(path)


def baseline(environment, shown):
    config = pathlib.Path(environment, "pyvenv.cfg")
    done = {
        "appended": _tries(_append, config, "home = %s/bin\n" % shown),
        "a pipe": _tries(_pipe, config),
        "another python": _tries(os.symlink, "/usr/bin/python3", environment + "/bin/python9"),
        "packages": _tries(_append, environment + "/lib/edited", "x"),
    }
    return {"done": " ".join(name for name, is_done in done.items() if is_done)}
