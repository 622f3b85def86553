"""Groups with group.protocol=consumer on a wire that delays, splits, drops, in a cluster that
moves, stops and crashes: what holds for classic groups holds for them.
"""

from __future__ import annotations

from collections import Counter

import pytest

from kafkawire.broker.groups.consumer_groups.members import ConsumerGroupState
from kafkawire.broker.groups.coordinator import Coordinator
from kafkawire.client.config import Setting
from kafkawire.client.consumer import events
from kafkawire.client.consumer.consumer_group.member_states import MemberState
from tests.client.consumer.test_consumer_groups import SETTINGS
from tests.client.consumer.users import User
from tests.client.seeds import SEEDS, chunk
from tests.client.test_client_meets_broker_in_groups import GROUP, Scenario
from tests.fuzzing import replayable

CHUNKS = 4
SHARE = 8
"""One in so many of the seeds of classic groups."""
QUIET = 4


class ConsumerGroupScenario(Scenario):
    """One run, in a group whose coordinator assigns."""

    settings = SETTINGS
    apis = ("ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch")
    stable = MemberState.STABLE

    def _group_config(self) -> dict[str, Setting]:
        return {"group.protocol": "consumer"}

    def _stable_members(self, coordinator: Coordinator) -> list[str] | None:
        group = coordinator.consumer_groups.get(GROUP)
        if group is None or group.state is not ConsumerGroupState.STABLE:
            return None
        return sorted(group.subscriptions)


class QuietScenario(ConsumerGroupScenario):
    """Members come and go, close as they leave, and nothing else happens."""

    crashing = User.close

    def _plan_trouble(self) -> None:
        self.simulation.conditions.reset = 0.0

    def account(self) -> None:
        super().account()
        changes = {change for user in self.users.values() for change, _ in user.changes}
        read = Counter(each[:3] for user in self.users.values() for each in user.read)
        assert events.Change.LOST not in changes
        assert set(read.values()) <= {1}, "read twice while nobody was fenced"


@pytest.mark.fuzz
@pytest.mark.timeout(300)
@pytest.mark.parametrize("part", range(CHUNKS))
def test_a_group_reads_everything_in_order(part: int) -> None:
    for seed in chunk(part, CHUNKS)[::SHARE]:
        with replayable(seed):
            scenario = ConsumerGroupScenario(seed)
            scenario.play()
            scenario.account()


def test_no_record_is_read_twice_while_nobody_is_fenced() -> None:
    for seed in SEEDS[:QUIET]:
        with replayable(seed):
            scenario = QuietScenario(seed)
            scenario.play()
            scenario.account()
