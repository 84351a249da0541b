"""Where the `knowngood` command begins. `gate` is asked by CI jobs and goes its own short way; the rest is
`app.__main__`, whose imports take longer than the whole of that.
"""

import sys

from app.encoding import write_what_can_be_read


def main() -> None:
    if sys.argv[1:2] == ["gate"]:
        from app.commands.gate import main as gate

        write_what_can_be_read()
        raise SystemExit(gate(sys.argv[2:]))
    from app.__main__ import main as everything

    everything()


if __name__ == "__main__":
    main()
