"""schemathesis asks the application everything that its document allows, and much that it does not."""

import pytest

from tests.fixtures.databases import NewStore
from tests.web.whole_api import ask_everything, served

BUDGET_S = 25


@pytest.mark.system
@pytest.mark.timeout(180)
def test_the_whole_api_is_as_documented(new_store: NewStore) -> None:
    """Every check is on. Seeded, and cut off after BUDGET_S on a slow host; `make soak` asks for twenty minutes."""
    with served(new_store()) as (address, token):
        found = ask_everything(
            address,
            token,
            "--phases=examples,coverage,fuzzing",
            "--max-examples=5",
            "--seed=1",
            f"--max-time={BUDGET_S}",
            limit_s=BUDGET_S + 120,
        )
    assert not found, found[:20_000]
