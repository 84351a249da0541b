"""The facts of wheels as one document: the same over HTTP and in a site, and described."""

import re
from pathlib import Path

from fastapi.testclient import TestClient

from knowngood.commands.site.command import write_site
from knowngood.store.engine import Engine, reading
from knowngood.store.knowledge.loader import load_known
from knowngood.store.knowledge.model import Recorded
from tests.web.given import NOW

DOCUMENT = Path(__file__).parents[3] / "docs" / "facts.md"


def test_the_api_and_a_site_have_one_document(client: TestClient, notebook: Engine, tmp_path: Path) -> None:
    answer = client.get("/api/v1/facts")
    with reading(notebook) as s:
        write_site(load_known(s, NOW), Recorded(), tmp_path, lambda _: None)
    assert (tmp_path / "data/facts.json").read_bytes() == answer.content
    assert client.get("/api/v1/facts", headers={"If-None-Match": answer.headers["ETag"]}).status_code == 304


def test_it_holds_what_answers_rest_on(client: TestClient) -> None:
    facts = client.get("/api/v1/facts").json()
    torch = next(each for each in facts["packages"]["torch"] if each["version"] == "2.8.0")
    assert (torch["cuda"], torch["released"], torch["yanked"]) == ("12.8", "2025-08-06", "")
    assert "cp313-cp313-win_amd64" in torch["tags"]
    assert any(each.startswith("nvidia-cudnn-cu12==") for each in torch["requires_dist"])
    assert (facts["gpus"]["RTX 5090"], facts["gpus"]["MI300X"], "Xeon" in facts["gpus"]) == ("12.0", "gfx942", False)
    assert facts["oldest_drivers"]["13"] == 580
    assert all(claim["sources"] for claim in facts["claims"])


def test_every_property_is_described(client: TestClient) -> None:
    schemas = client.get("/openapi.json").json()["components"]["schemas"]
    described = set(re.findall(r"^\| `(\w+)`", DOCUMENT.read_text(), re.MULTILINE))
    kinds = ("Facts", "ReleaseFacts", "WheelCode", "WheelClaim")
    assert {name for kind in kinds for name in schemas[kind]["properties"]} - described == set()
