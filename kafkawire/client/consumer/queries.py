"""Handles the user's queries of offsets and positions.

Each query has one result, under the key of the query. Results of other lookups go to
`positions`.
"""

from __future__ import annotations

from ...errors import LocalProtocolError
from . import events
from .components import Components, Effects
from .coordinator.commits import USER
from .offsets import committed
from .offsets import leader_requests as leaders
from .partitions import OffsetAndTimestamp


class OffsetQueries:
    """The queries of one consumer's user."""

    def __init__(self, components: Components) -> None:
        self._components = components
        self._positions: dict[object, events.GetPosition] = {}

    def get_committed(self, event: events.GetCommitted, now: float) -> Effects:
        """Fetch committed offsets."""
        if self._components.config.group_id is None:
            raise LocalProtocolError("committed offsets need a group.id")
        key, deadline = (USER, event.key), now + event.timeout_s
        return [committed.FetchCommitted(key, event.partitions, deadline)]

    def get_offsets(self, event: events.GetOffsets, now: float) -> Effects:
        """Look up offsets by timestamp."""
        key, deadline = (USER, event.key), now + event.timeout_s
        return [leaders.RequestFromLeaders(key, self._components.offsets, event.times, deadline)]

    def get_position(self, event: events.GetPosition) -> None:
        """Wait for the position of a partition."""
        self._positions[event.key] = event

    def cancel(self, event: events.CancelGetPosition) -> None:
        """Cancel a query of a position."""
        self._positions.pop(event.key, None)

    def completed(self) -> list[events.PositionFound]:
        """Return the results of position queries that are known now, or never will be."""
        effects: list[events.PositionFound] = []
        for key, request in list(self._positions.items()):
            position = self._components.positions.position(request.partition)
            if position is not None or request.partition not in self._components.positions:
                del self._positions[key]
                effects.append(
                    events.PositionFound(key, None if position is None else position.offset)
                )
        return effects

    def committed_fetched(self, event: committed.CommittedFetched) -> Effects:
        """Hand committed offsets to the user or to `positions`."""
        assert isinstance(event.key, tuple)
        if event.key[0] == USER:
            return [events.CommittedFound(event.key[1], event.offsets, event.error)]
        return self._components.positions.handle(event)

    def leaders_responded(self, event: leaders.LeadersResponded) -> Effects:
        """Hand the results of lookups to the user or to `positions`."""
        assert isinstance(event.key, tuple)
        if event.key[0] == USER:
            offsets = {each: _offset(result) for each, result in event.results.items()}
            return [events.OffsetsFound(event.key[1], offsets, event.failed)]
        return self._components.positions.handle(event)


def _offset(result: leaders.LookupResult) -> OffsetAndTimestamp | None:
    assert result is None or isinstance(result, OffsetAndTimestamp)
    return result
