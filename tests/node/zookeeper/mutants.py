"""Rules taken out of the controlled shutdown with ZooKeeper, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from unittest.mock import patch

from kafkawire.broker.handlers.zookeeper.controlled_shutdown import Moved
from kafkawire.controller import partition_change
from kafkawire.controller.operations import alter_partition, broker_heartbeat
from kafkawire.messages.controlled_shutdown_response import ControlledShutdownResponse
from kafkawire.node.zookeeper.controlled_shutdown import ControlledShutdowns
from kafkawire.node.zookeeper.controller import ZooKeeperController

Patch = Any


def _everything_moves(*_: Any) -> bool:
    return True


def _active(state: Any, _partition: Any, broker_id: int) -> bool:
    return bool(state.image.is_active(broker_id))


def _nothing_remains(*_: Any) -> ControlledShutdownResponse:
    return ControlledShutdownResponse()


def _first_attempt_only() -> Patch:
    move = broker_heartbeat._move_leaders

    def once(state: Any, broker_id: int) -> None:
        if not state.image.brokers[broker_id].in_controlled_shutdown or not hasattr(state, "once"):
            state.once = True
            move(state, broker_id)

    return patch.object(broker_heartbeat, "_move_leaders", once)


def _not_repeated(self: ControlledShutdowns, node_id: int, _response: Any, _now: float) -> None:
    self._done(node_id)


MUTANTS: Final[dict[str, Callable[[], Patch]]] = {
    "leaders move to nobody": lambda: patch.object(
        broker_heartbeat, "_has_others", _everything_moves
    ),
    "no leader moves while one cannot": lambda: patch.object(
        broker_heartbeat, "_has_others", lambda *_: False
    ),
    "a stopping leader leads no more": lambda: patch.object(partition_change, "may_lead", _active),
    "a stopping leader does not expand its ISR": lambda: patch.object(
        alter_partition, "may_lead", _active
    ),
    "nothing remains": lambda: patch.object(Moved, "response", _nothing_remains),
    "only the first attempt moves leaders": _first_attempt_only,
    "there is one attempt": lambda: patch.object(ControlledShutdowns, "_responded", _not_repeated),
    "a moved leader is not written": lambda: patch.object(
        ZooKeeperController, "elected", lambda *_: None
    ),
}
"""What is wrong -> the patch."""
