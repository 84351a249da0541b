"""The environment that an issue asks for, and whether one that is there is it."""

import pytest

from knowngood.domain.issue import EnvironmentRequest


@pytest.mark.parametrize(
    ("packages", "installed", "is_met"),
    [
        ((), {}, True),
        (("torch_xla==2.9.0",), {"torch-xla": "2.9.0", "torch": "2.9.1"}, True),
        (("torch_xla==2.9.0",), {"torch_xla": "2.9.0"}, True),
        (("torch_xla==2.9.0",), {"torch-xla": "2.8.0"}, False),
        (("torch_xla==2.9.0",), {"torch": "2.9.1"}, False),
        (("torch_xla==2.9.0", "einops==0.8.1"), {"torch-xla": "2.9.0"}, False),
        (("einops>=0.8",), {"einops": "0.8.1"}, False),
    ],
)
def test_an_environment_will_do_that_holds_every_package_in_exactly_its_version(
    packages: tuple[str, ...], installed: dict[str, str], *, is_met: bool
) -> None:
    request = EnvironmentRequest("torch-2.9.1+cu128", packages, (), mutates=False)
    assert request.is_met_by(installed) is is_met
