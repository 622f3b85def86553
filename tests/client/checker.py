"""Witnesses both directions of every connection, at the broker's end.

Every request of a connection gets one response, in order; or it is parked, and then it is the
oldest in flight; or its connection is closed, for a reason that is not the client's fault. A
Produce with acks=0 gets no response. Committed offsets that a group reads never decrease.

    request frames ─▶ in flight: correlation ids ─▶ response frames
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kafkawire.broker import Action, Close, Fault, Reply, Report
from kafkawire.broker.network.socket_server import SocketServer
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.protocol.frame import decode_frame

BLAMELESS = ("a fault: ", "the node was killed", "Produce with acks=0 failed")
REFUSED = ": authentication failed"
SIZE = 4


@dataclass
class CheckedConnection:
    """A connection. cut: a fault truncated a response, so it must be closed."""

    up: bytearray = field(default_factory=bytearray)
    in_flight: deque[int] = field(default_factory=deque)
    cut: bool = False


class TrafficChecker:
    """Sees what reaches the brokers and what leaves them.

    faults: the current ones. past_faults: the removed ones, whose responses may still come.
    responses: how many were seen; corrupted: how many of them a fault changed.
    """

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.past_faults: list[Fault] = []
        self._connections: dict[int, CheckedConnection] = {}
        self._closed: set[int] = set()
        self._committed: dict[tuple[str, str, int], int] = {}
        self.responses = 0
        self.corrupted = 0

    def received(self, number: int, data: bytes) -> None:
        """A broker receives bytes; those behind its own close go unread."""
        if number in self._closed:
            return
        witnessed = self._connections.setdefault(number, CheckedConnection())
        witnessed.up += data
        while len(witnessed.up) >= SIZE:
            end = SIZE + int.from_bytes(witnessed.up[:SIZE], "big")
            if len(witnessed.up) < end:
                return
            frame = bytes(witnessed.up[:end])
            del witnessed.up[:end]
            if not _unanswerable(frame):
                witnessed.in_flight.append(int.from_bytes(frame[8:12], "big", signed=True))

    def on_effect(self, effect: object) -> None:
        """Handle an effect of the brokers."""
        match effect:
            case Reply(connection=number, data=data):
                self._on_reply(self._connections[number], data)
            case Close(connection=number, reason=reason):
                assert reason.startswith(BLAMELESS) or reason.endswith(REFUSED), reason
                self._connections.pop(number, None)
                self._closed.add(number)
            case Report(request=request, response=OffsetFetchResponse() as response):
                self._fetched(request.body, response)

    def on_closed(self, number: int) -> None:
        """A connection was closed."""
        self._connections.pop(number, None)

    def on_power_lost(self, number: int) -> None:
        """A broker ended: what is still on its way, perhaps half a request, goes unread."""
        self.on_closed(number)
        self._closed.add(number)

    def check_in_flight(self, server: SocketServer, number: int) -> None:
        """Check that the oldest request in flight is in progress, or its connection closing."""
        witnessed = self._connections.get(number)
        connection = server.connections.find(number)
        if witnessed is None or not witnessed.in_flight or connection is None:
            return
        assert not witnessed.cut, "a response was truncated, and the connection is open"
        if connection.silent or connection.closing or connection.draining or connection.queued:
            return  # `silent`: a fault dropped the response; no later one comes
        assert connection.busy is not None, f"not in progress: {witnessed.in_flight[0]}"
        parked = server.channel.pending[connection.busy]
        assert parked.correlation_id == witnessed.in_flight[0], (parked, witnessed.in_flight)

    def _on_reply(self, witnessed: CheckedConnection, data: bytes) -> None:
        assert not witnessed.cut, "a response after a truncated one"
        assert witnessed.in_flight, "a response without a request"
        expected = witnessed.in_flight.popleft()
        self.responses += 1
        if len(data) < 8 or len(data) != SIZE + int.from_bytes(data[:SIZE], "big"):
            witnessed.cut = True
            assert self._hits(Action.TRUNCATE), "an incomplete response"
            return
        found = int.from_bytes(data[4:8], "big", signed=True)
        if found != expected:
            self.corrupted += 1
            detail = f"correlation id {found}, expected {expected}"
            assert self.corrupted <= self._hits(Action.CORRUPT), detail

    def _hits(self, action: Action) -> int:
        return sum(
            fault.hit for fault in (*self.faults, *self.past_faults) if fault.action is action
        )

    def _fetched(self, requested: object, response: OffsetFetchResponse) -> None:
        group_id = getattr(requested, "group_id", "")
        groups = [(group_id, response.topics)] + [(g.group_id, g.topics) for g in response.groups]
        for group, topics in groups:
            for topic in topics or ():
                for each in topic.partitions:
                    key = group, topic.name, each.partition_index
                    if each.error_code or each.committed_offset < 0:
                        assert each.error_code or key not in self._committed, f"{key} forgotten"
                        continue
                    assert each.committed_offset >= self._committed.get(key, 0), key
                    self._committed[key] = each.committed_offset


def _unanswerable(frame: bytes) -> bool:
    """Whether it is a Produce with acks=0."""
    if int.from_bytes(frame[4:6], "big") != ApiKey.PRODUCE:
        return False
    body = decode_frame(frame).body
    return isinstance(body, ProduceRequest) and body.acks == 0
