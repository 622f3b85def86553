"""A witness of both ways of every connection, at the broker's end.

Law: every request of a connection is answered once, in order; or it is parked, and then it is the
first of those that are owed an answer; or its connection is closed, with a reason that a client
cannot be blamed for. A Produce with acks=0 is owed nothing. What a group is told of its committed
offsets never goes backwards.

    request frames ─▶ owed: correlation ids ─▶ response frames
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kafkawire.broker import Action, Close, Cluster, Fault, Reply, Report
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.offset_fetch_response import OffsetFetchResponse
from kafkawire.messages.produce_request import ProduceRequest
from kafkawire.protocol.frame import decode_frame

BLAMELESS = ("a fault: ", "the broker stopped", "the broker is down", "Produce with acks=0 failed")
REFUSED = ": authentication failed"
SIZE = 4


@dataclass
class Talk:
    """A connection. cut: a fault took a part of an answer, so it must end."""

    up: bytearray = field(default_factory=bytearray)
    owed: deque[int] = field(default_factory=deque)
    cut: bool = False


class Witness:
    """Sees what reaches the brokers and what leaves them.

    faults: those there are. mended: those there were, since what was struck may be answered later.
    answered: how many requests were; spoilt: answers that a fault changed.
    """

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = faults
        self.mended: list[Fault] = []
        self._talks: dict[int, Talk] = {}
        self._committed: dict[tuple[str, str, int], int] = {}
        self.answered = 0
        self.spoilt = 0

    def received(self, number: int, data: bytes) -> None:
        """Bytes reach a broker."""
        talk = self._talks.setdefault(number, Talk())
        talk.up += data
        while len(talk.up) >= SIZE:
            end = SIZE + int.from_bytes(talk.up[:SIZE], "big")
            if len(talk.up) < end:
                return
            frame = bytes(talk.up[:end])
            del talk.up[:end]
            if not _unanswerable(frame):
                talk.owed.append(int.from_bytes(frame[8:12], "big", signed=True))

    def told(self, effect: object) -> None:
        """A broker wants something done."""
        match effect:
            case Reply(connection=number, data=data):
                self._replied(self._talks[number], data)
            case Close(connection=number, reason=reason):
                assert reason.startswith(BLAMELESS) or reason.endswith(REFUSED), reason
                self._talks.pop(number, None)
            case Report(request=request, response=OffsetFetchResponse() as response):
                self._fetched(request.body, response)

    def gone(self, number: int) -> None:
        """A connection is no more."""
        self._talks.pop(number, None)

    def nothing_is_lost(self, cluster: Cluster, number: int) -> None:
        """Whether what a connection is owed is in work, or cannot be any more."""
        talk = self._talks.get(number)
        connection = cluster.connections.get(number)
        if talk is None or not talk.owed or connection is None:
            return
        assert not talk.cut, "an answer was cut off, and the connection is open"
        if connection.silent or connection.closing or connection.draining or connection.queued:
            return  # `silent`: a fault dropped the answer; nothing behind it comes either
        assert connection.busy is not None, f"nobody works on {talk.owed[0]}"
        parked = cluster.serving.pending[connection.busy]
        assert parked.correlation_id == talk.owed[0], (parked, talk.owed)

    def _replied(self, talk: Talk, data: bytes) -> None:
        assert not talk.cut, "an answer behind one that was cut off"
        assert talk.owed, "an answer to nothing"
        expected = talk.owed.popleft()
        self.answered += 1
        if len(data) < 8 or len(data) != SIZE + int.from_bytes(data[:SIZE], "big"):
            talk.cut = True
            assert self._hits(Action.TRUNCATE), "an answer that is not whole"
            return
        found = int.from_bytes(data[4:8], "big", signed=True)
        if found != expected:
            self.spoilt += 1
            told = f"the answer to {expected} says {found}"
            assert self.spoilt <= self._hits(Action.CORRUPT), told

    def _hits(self, action: Action) -> int:
        return sum(fault.hit for fault in (*self.faults, *self.mended) if fault.action is action)

    def _fetched(self, asked: object, response: OffsetFetchResponse) -> None:
        group_id = getattr(asked, "group_id", "")
        told = [(group_id, response.topics)] + [(g.group_id, g.topics) for g in response.groups]
        for group, topics in told:
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
