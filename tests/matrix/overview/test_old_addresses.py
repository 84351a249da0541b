"""Old addresses of the grid, which stood at `/`, lead to where it is now."""

import pytest
from fastapi.testclient import TestClient

from knowngood.web.urls import MATRIX

OLD = [
    "q=status%3Aaffected+%22bmm+stride%22",
    "hardware=cuda-sm_90&fold=Dynamo&fold=Inductor+C%2B%2B",
    "builds=torch-2.7.1%2Bcu126,2.8.0",
    "issues=fla-160&lang=zh",
    "columns=all&unheard=of",
    "q=",
]


@pytest.mark.parametrize("asked", OLD)
def test_an_old_address_leads_for_good_to_the_same_part_of_the_grid(client: TestClient, asked: str) -> None:
    response = client.get(f"/?{asked}", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (308, f"{MATRIX}?{asked}")


def test_the_api_stays_where_it_is(client: TestClient) -> None:
    assert client.get("/api/v1/matrix?q=bmm", follow_redirects=False).status_code == 200
