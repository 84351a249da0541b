"""The page of upstream mismatches, and its JSON."""

from starlette.testclient import TestClient

from knowngood.health.coverage.hygiene import MismatchKind
from knowngood.health.coverage.hygiene_page import HygienePage
from knowngood.web.urls import issue_address
from tests.web.asking import shown


def test_remarks_are_listed_by_kind_with_links_to_their_issues(client: TestClient) -> None:
    page = shown(client, "/hygiene", HygienePage)
    kinds = [kind.trouble for kind in page.kinds]
    assert kinds
    assert kinds == [trouble for trouble in MismatchKind if trouble in kinds]
    for kind in page.kinds:
        for issue, remark in kind.lines:
            assert client.get(issue_address(issue.id, hardware=remark.hardware)).status_code == 200


def test_the_page_and_its_twin_say_the_same(client: TestClient) -> None:
    page = shown(client, "/hygiene", HygienePage)
    told = client.get("/api/v1/hygiene").json()["remarks"]
    assert {(one["trouble"], one["issue"], one["sentence"]) for one in told} == {
        (kind.trouble, issue.id, remark.sentence) for kind in page.kinds for issue, remark in kind.lines
    }


def test_with_nothing_measured_there_is_nothing_to_look_at(own: TestClient) -> None:
    assert "Nothing to look at." in own.get("/hygiene").text
    assert own.get("/api/v1/hygiene").json() == {"remarks": []}
