"""The events and effects of a controller.

Both are values; time is passed beside them (`handle(event, now)`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..metadata import MetadataDelta, VersionedRecord
from ..primitives import Message

# -- events


class BecameLeader(NamedTuple):
    """The voter leads the quorum: all records before are committed and were handled.

    next_offset: of the first record that the controller appends, after the voter's own.
    """

    epoch: int
    next_offset: int


class Resigned(NamedTuple):
    """The voter leads no more; what is not committed may be lost. epoch: that it led."""

    epoch: int


class LogEndMoved(NamedTuple):
    """The voter has appended control records of its own: what the controller appends follows."""

    epoch: int
    next_offset: int


class Committed(NamedTuple):
    """Records of the log are committed: those of an active controller, or of another.

    Control records are not among them; `base_offset` is that of the first.
    """

    base_offset: int
    records: Sequence[Message]


class SnapshotLoaded(NamedTuple):
    """A snapshot replaces everything before. last_offset: of the last record that is in it."""

    last_offset: int
    records: Sequence[Message]


class RequestReceived(NamedTuple):
    """A request to the controller. request_id: chosen by the caller, never reused."""

    request_id: int
    body: Message
    version: int


Event = BecameLeader | Resigned | LogEndMoved | Committed | SnapshotLoaded | RequestReceived

# -- effects


class Append(NamedTuple):
    """Append records to the log at exactly this offset, all or none, if the epoch is still led."""

    epoch: int
    base_offset: int
    records: Sequence[VersionedRecord]


class Respond(NamedTuple):
    """Send a response."""

    request_id: int
    response: Message


class Published(NamedTuple):
    """Committed records changed the image: observers read what the delta names."""

    delta: MetadataDelta


class Renounce(NamedTuple):
    """Resign the leadership of an epoch: the controller cannot go on."""

    epoch: int
    reason: str


Effect = Append | Respond | Published | Renounce
