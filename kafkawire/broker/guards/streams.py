"""Checks of Streams groups: the topics of their topologies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ...messages.streams_group_heartbeat_request import StreamsGroupHeartbeatRequest
from ..security.permissions import Permission
from .access import ERRORS, Access
from .checks import Check, Verdict
from .groups import DESCRIBED, hides

P = Permission
HIDDEN: Final = "The described group uses topics that the client is not authorized to describe."


def topics_of(topology: Any) -> Iterator[str]:
    """Return the topics of a topology in a message, perhaps several times."""
    for each in () if topology is None else topology.subtopologies:
        yield from each.source_topics
        yield from each.repartition_sink_topics
        yield from (topic.name for topic in each.repartition_source_topics)
        yield from (topic.name for topic in each.state_changelog_topics)


def _topology(access: Access, body: StreamsGroupHeartbeatRequest) -> Verdict:
    """Check the topics of a topology; who may create internal ones is checked when that is done."""
    if access.split(P.DESCRIBE_TOPIC, topics_of(body.topology), lambda name: name)[1]:
        return access.refusal(body, ERRORS[P.DESCRIBE_TOPIC.resource])
    return None


TOPOLOGY: Final = Check((P.DESCRIBE_TOPIC, P.CREATE_IN_CLUSTER, P.CREATE_TOPIC), _topology)
STREAMS_DESCRIBE: Final = (*DESCRIBED, hides(lambda group: topics_of(group.topology), HIDDEN))
