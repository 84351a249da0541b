"""Where the `knowngood` command begins. `gate` is asked by CI jobs and goes its own short way; the rest is
`knowngood.app.main`, whose imports take longer than the whole of that.
"""

import sys

from knowngood.app.cli.encoding import write_what_can_be_read


def main() -> None:
    if sys.argv[1:2] == ["gate"]:
        from knowngood.app.features.gate.cli import main as gate

        write_what_can_be_read()
        raise SystemExit(gate(sys.argv[2:]))
    from knowngood.app.main import main as everything

    everything()


if __name__ == "__main__":
    main()
