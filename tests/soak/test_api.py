"""schemathesis over the whole API for as long as KNOWNGOOD_SOAK_API_S says (20 minutes), all checks and phases on."""

import os

import pytest

from tests.fixtures.databases import NewStore
from tests.soak.seed import SEED
from tests.web.whole_api import ask_everything, served

SOAK_S = int(os.environ.get("KNOWNGOOD_SOAK_API_S", "1200"))


@pytest.mark.soak
@pytest.mark.timeout(SOAK_S + 600)
def test_the_whole_api_stays_as_documented(new_store: NewStore) -> None:
    """No 5xx, no undocumented status, no answer of another shape. The seed is printed with every failure."""
    with served(new_store()) as (address, token):
        found = ask_everything(
            address,
            token,
            "--phases=examples,coverage,fuzzing,stateful",
            f"--seed={SEED}",
            f"--max-time={SOAK_S}",
            "--continue-on-failure",
            limit_s=SOAK_S + 500,
        )
    assert not found, f"seed {SEED}\n{found[:50_000]}"
