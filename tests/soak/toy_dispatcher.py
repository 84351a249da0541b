"""A dispatcher with toy agents, as a process of its own that can be killed: `toy_dispatcher DATABASE_URL LEDGER TOKEN`.

The token stands in the command line of everything that it starts, so that survivors can be found.
"""

import sys

from knowngood.store.engine import connect
from knowngood_workers.dispatch.dispatcher import DispatchOptions, dispatch
from knowngood_workers.dispatch.local_transport import LocalTransport
from tests.make import HARDWARE


def main() -> None:
    url, ledger, token = sys.argv[1:]
    transport = LocalTransport({"ledger": ledger}, (sys.executable, "-m", "tests.workers.toy_agent", token))
    how = DispatchOptions(hardware=(HARDWARE,), jobs=2, waits=True, lease_s=4.0, poll_s=0.05)
    dispatch(connect(url), transport, how, stop=lambda: False)


if __name__ == "__main__":
    main()
