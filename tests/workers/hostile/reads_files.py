"""Walks what it is told of and all of the root but the system's own folders, for files that hold a word."""

import os


def _holds(path, word):
    try:
        if os.path.isfile(path) and os.path.getsize(path) < 1 << 16:
            with open(path, "rb") as file:
                return word in file.read()
    except OSError:
        pass
    return False


def baseline(places, home, word):
    known = [os.path.join(home, ".ssh", "id_ed25519"), *places.split(":")]
    system = {"/usr", "/sys", "/proc", "/opt", "/lib", "/lib64", "/bin", "/sbin", "/nix", "/dev", "/work"}
    looked, found = 0, []
    for top in [home, *known, "/root", "/home", "/"]:
        files = [top]
        for folder, folders, names in os.walk(top):
            folders[:] = [name for name in folders if os.path.join(folder, name) not in system]
            files += [os.path.join(folder, name) for name in names]
            if len(files) > 20000:
                break
        looked += len(files)
        found += [path for path in files if _holds(path, word.encode())]
    return {"looked": looked, "found": " ".join(sorted(set(found)))}
