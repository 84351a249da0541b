"""When a delivery that failed is tried again."""

from datetime import timedelta

import pytest

from knowngood.app.domain.webhook import RETRY_AFTER, DeliveryResponse, next_try
from tests.make import NOON

FAILED = DeliveryResponse(500, "500 Internal Server Error", 0.1)


def test_tries_come_seldomer_and_end_within_four_days() -> None:
    at, waits = NOON, []
    for tries in range(1, 100):
        again = next_try("msg_1", tries, FAILED, at)
        if again is None:
            break
        waits.append(again - at)
        at = again
    assert len(waits) == len(RETRY_AFTER) == 9
    assert waits == sorted(waits)
    assert timedelta(seconds=5) <= waits[0] < timedelta(seconds=6)
    assert timedelta(hours=75) < at - NOON < timedelta(hours=96)


def test_deliveries_that_fail_together_are_not_tried_again_together_and_one_always_alike() -> None:
    moments = {next_try(f"msg_{n}", 3, FAILED, NOON) for n in range(50)}
    assert len(moments) > 40
    assert next_try("msg_1", 3, FAILED, NOON) == next_try("msg_1", 3, FAILED, NOON)


@pytest.mark.parametrize(
    ("answer", "seconds"),
    [
        pytest.param(DeliveryResponse(429, "", 0.1, retry_after_s=600), 600, id="asks for time"),
        pytest.param(DeliveryResponse(503, "", 0.1, retry_after_s=1), 5, id="asks for less than we wait anyway"),
        pytest.param(DeliveryResponse(503, "", 0.1, retry_after_s=10**9), 86400, id="asks for ever: a day at most"),
        pytest.param(DeliveryResponse(None, "no answer", 15.0), 5, id="no answer"),
        pytest.param(DeliveryResponse(302, "moved", 0.1), 5, id="a redirect is no success"),
    ],
)
def test_a_receiver_may_ask_for_time_within_reason(answer: DeliveryResponse, seconds: int) -> None:
    again = next_try("msg_1", 1, answer, NOON)
    assert again is not None
    assert seconds <= (again - NOON).total_seconds() <= max(seconds, 5.5)
    assert not answer.is_success


def test_whoever_is_gone_is_left_alone() -> None:
    assert next_try("msg_1", 1, DeliveryResponse(410, "Gone", 0.1), NOON) is None
