"""The way from the brokers of a cluster in memory to its controller: a call.

Law: the controller decides at once, in the time slices of the request.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from ...messages.api_key import ApiKey
from ..request import HandlerResult, Request
from .controller import Controller
from .operations.alter_configs import alter_configs
from .operations.controlled_shutdown import controlled_shutdown
from .operations.create_partitions import create_partitions
from .operations.create_topics import create_topics
from .operations.delete_topics import delete_topics
from .operations.incremental_alter_configs import incremental_alter_configs

Operation = Callable[[Controller, Request, Any, float], HandlerResult]


class LocalForwarding:
    """`ForwardingManager` of a cluster in memory."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller

    def forward(self, request: Request, now: float) -> HandlerResult:
        """Let the controller decide on a request."""
        return OPERATIONS[request.api_key](self._controller, request, request.body, now)


OPERATIONS: Final[Mapping[ApiKey, Operation]] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.CONTROLLED_SHUTDOWN: controlled_shutdown,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: incremental_alter_configs,
}
"""What the controller decides on."""
