"""How long a broker that is to stop waits for controllers."""

from __future__ import annotations

import pytest

from kafkawire.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from kafkawire.messages.broker_registration_response import BrokerRegistrationResponse
from kafkawire.node import BrokerState, NodeConfig
from kafkawire.node.lifecycle import BrokerLifecycleManager

SESSION, SHUTDOWN = 9.0, 30.0


@pytest.fixture
def broker() -> BrokerLifecycleManager:
    """A broker that runs; the response to its last heartbeat was at 1.0."""
    config = NodeConfig(
        1, "c", session_timeout=SESSION, controlled_shutdown_timeout=SHUTDOWN, retry_backoff=0.1
    )
    made = BrokerLifecycleManager(config, bytes(16), [], -1, 0.0)
    assert made.request(0, 0.0) is not None
    made.handle(BrokerRegistrationResponse(broker_epoch=5), 0.0)
    made.published(0.0)
    assert made.request(0, 0.0) is not None
    made.handle(BrokerHeartbeatResponse(is_fenced=False), 1.0)
    assert made.state is BrokerState.RUNNING
    return made


def test_without_controllers_it_waits_until_its_session_ends(
    broker: BrokerLifecycleManager,
) -> None:
    broker.begin_shutdown(2.0)
    assert broker.request(0, 2.0) is not None  # the heartbeat that is not answered
    assert broker.next_deadline() == 1.0 + SESSION
    assert broker.request(0, 1.0 + SESSION) is None
    assert broker.state is BrokerState.SHUTTING_DOWN


def test_a_session_that_has_ended_before_is_not_waited_for(broker: BrokerLifecycleManager) -> None:
    broker.begin_shutdown(100.0)
    assert broker.request(0, 100.0) is None
    assert broker.state is BrokerState.SHUTTING_DOWN


def test_with_controllers_that_move_its_leaders_it_waits_for_longer(
    broker: BrokerLifecycleManager,
) -> None:
    broker.begin_shutdown(2.0)
    for second in range(2, 32):
        assert broker.request(0, float(second)) is not None
        broker.handle(BrokerHeartbeatResponse(is_fenced=False), float(second))
    assert broker.request(0, 2.0 + SHUTDOWN) is None
    assert broker.state is BrokerState.SHUTTING_DOWN
