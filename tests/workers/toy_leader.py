"""A dispatcher's side of a fleet as a process of its own that can be killed: `toy_leader HEAD_ADDRESS OWN_IP RELEASE`.

It joins the fleet of that head, starts one job that hangs, and says so by a line on standard output.
"""

import sys

from knowngood.domain.measuring.job import ArmStarted
from knowngood_workers.ray.transport import Fleet, RayTransport
from tests.workers.dispatch.test_local_transport import spec


def main() -> None:
    address, ip, release = sys.argv[1:]
    with RayTransport(Fleet(address, release, ip=ip)) as transport:
        for event in transport.start(spec("hang")).events():
            if isinstance(event, ArmStarted):
                sys.stdout.write("started\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
