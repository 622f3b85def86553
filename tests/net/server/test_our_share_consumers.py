"""Our share consumers at our broker: the scenarios that they play at a real Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Final

import pytest

from kafkawire.net.server import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.client.real import conftest
from tests.client.real import test_share_consumer as real

SETTINGS: Final = {
    "auto.create.topics.enable": "false",
    "group.share.assignment.interval.ms": "0",
    "group.share.heartbeat.interval.ms": "100",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.min.record.lock.duration.ms": "1000",
}
topic = conftest.topic
test_released_and_rejected = real.test_what_is_not_accepted_is_delivered_again_or_rejected
test_expired_locks = real.test_a_lock_that_expires_gives_the_record_to_another
test_renewed_locks = real.test_a_renewed_record_is_returned_again
test_aborted = real.test_aborted_and_control_records_are_acknowledged_and_not_delivered
test_closing = real.test_closing_releases_what_was_returned_and_not_committed
test_other_groups = real.test_a_group_of_another_type_is_an_error
test_the_command_line = real.test_the_command_line_accepts_what_it_has_written


@pytest.fixture
def kafka() -> Iterator[SimpleNamespace]:
    """Our broker in place of Kafka: its port and its bootstrap servers."""
    with ServerThread(ServerConfig(settings=SETTINGS)) as server:
        port = server.server.endpoints[0].port
        yield SimpleNamespace(port=port, bootstrap=f"127.0.0.1:{port}")
