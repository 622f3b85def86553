"""What was recorded of a real Kafka is what it offers."""

from __future__ import annotations

import pytest

from .api_versions import BROKER, CONTROLLER, offered_on, recorded
from .broker import Broker
from .java import RELEASE

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("kafka")]


def test_listeners_offer_what_was_recorded(kafka: Broker) -> None:
    offered = {BROKER: offered_on(kafka.port), CONTROLLER: offered_on(kafka.controller_port)}
    assert recorded(RELEASE) == offered
