"""A machine's launch settings and offers in a fleet, before Ray runs; with Ray: test_transport.py."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from knowngood.domain.errors import FleetUnusable
from knowngood.domain.measuring.machine import Gpu, Machine
from knowngood.installation import how_to_install
from knowngood_workers.ray.node import AgentLaunchSpec, offer_machine, ray_environment, require_ray
from knowngood_workers.ray.task import transport_for


def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knowngood_workers.ray.node.find_spec", lambda _: None)
    with pytest.raises(FleetUnusable, match=re.escape(how_to_install("ray"))):
        require_ray()


def test_without_a_token_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(FleetUnusable, match="ray get-auth-token --generate"):
        require_ray({"HOME": str(tmp_path)})
    (tmp_path / "token").write_text("secret")
    require_ray({"HOME": "/nowhere", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")})


def test_an_agent_sees_all_gpus_of_its_machine_and_uses_the_jobs_own() -> None:
    launch_spec = AgentLaunchSpec({"slots": 2}, gpus=(2, 3), visible="2,3")
    transport = transport_for(launch_spec, [1], {"CUDA_VISIBLE_DEVICES": "1", "PATH": "/bin"})
    assert transport.worker_config == {"slots": 2, "gpus": [3]}
    assert transport.environment["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert "gpus" not in transport_for(launch_spec, [], {}).worker_config
    assert "CUDA_VISIBLE_DEVICES" not in transport_for(replace(launch_spec, visible=None), [1], {}).environment


def test_a_machine_with_gpus_of_two_classes_says_what_to_do() -> None:
    gpus = (Gpu(3, "H100", (9, 0), 80 << 30), Gpu(4, "A100", (8, 0), 80 << 30))
    mixed = Machine(
        "Toy", "none", 2, 8 << 30, "none", "none", "none", "", driver="580.65", driver_cuda="13.0", gpus=gpus
    )
    with pytest.raises(FleetUnusable, match="CUDA_VISIBLE_DEVICES"):
        offer_machine(mixed, {}, address="h:1", release="1.0")


def test_rays_processes_are_given_its_token_and_no_other_secret() -> None:
    told = ray_environment({"PATH": "/bin", "RAY_AUTH_TOKEN": "t", "KNOWNGOOD_TOKEN": "kg", "PGPASSWORD": "p"})
    assert (told["RAY_AUTH_TOKEN"], told["RAY_AUTH_MODE"], told["RAY_USAGE_STATS_ENABLED"]) == ("t", "token", "0")
    assert told["RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL"] == "minor"
    assert not {"KNOWNGOOD_TOKEN", "PGPASSWORD"} & set(told)
    assert ray_environment({"RAY_AUTH_MODE": "disabled"})["RAY_AUTH_MODE"] == "token"
