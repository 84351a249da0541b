# What runs a shipped row by itself, for these too. It is executed in the script, which has imported os.
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "repros", "standalone.py")) as _shared:
    exec(compile(_shared.read(), _shared.name, "exec"))
