"""A dispatcher's side of a fleet as a process of its own that can be killed: `toy_leader HEAD_ADDRESS OWN_IP RELEASE`.

It joins the fleet of that head, starts one job that hangs, and says so by a line on standard output.
"""

import sys

from knowngood.app.domain.measuring.job import ArmStarted
from knowngood.workers.ray.transport import Fleet, RayCarrier
from tests.workers.test_carriers import spec


def main() -> None:
    address, ip, release = sys.argv[1:]
    with RayCarrier(Fleet(address, release, ip=ip)) as carrier:
        for event in carrier.start(spec("hang")).events():
            if isinstance(event, ArmStarted):
                sys.stdout.write("started\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
