"""The page of upstream mismatches, and its JSON."""

import re

from starlette.testclient import TestClient

from knowngood.domain.message import english
from knowngood.health.coverage import Hygiene
from knowngood.health.rules import MismatchKind
from tests.web.asking import shown


def test_remarks_are_listed_by_kind_with_links_to_their_issues(client: TestClient) -> None:
    remarks = shown(client, "/hygiene", Hygiene).remarks
    text = client.get("/hygiene").text
    assert re.findall('<h2 id="([^"]*)">', text) == [
        kind for kind in MismatchKind if kind in {one.trouble for one in remarks}
    ]
    assert remarks
    for remark in remarks:
        assert f'href="{remark.url}"' in text
        assert client.get(remark.url).status_code == 200


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    assert client.get("/api/v1/hygiene").json()["remarks"] == [
        {**vars(remark), "sentence": english(remark.sentence)} for remark in shown(client, "/hygiene", Hygiene).remarks
    ]


def test_with_nothing_measured_there_is_nothing_to_look_at(own: TestClient) -> None:
    assert "Nothing to look at." in own.get("/hygiene").text
    assert own.get("/api/v1/hygiene").json() == {"remarks": []}
