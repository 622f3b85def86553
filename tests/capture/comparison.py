"""What we find in a capture against what others saw in it: how many messages are missing, invented,
or in the wrong place.

Truth comes from outside; a message counts as found where direction, correlation id, length,
API and version are its own.

    truth rows --.
    our rows ----+--> pairs --> Verdict: messages found beyond missing invented packet ...
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from kafkawire.capture.multifile import Traffic
from kafkawire.capture.rows import Located
from tests.recordings import own, recording, third_party, variants

from . import truth
from .recordings import completing

Place = tuple[int, int]
"""A file of a set, from 0, and a packet's number in it."""


class Case(NamedTuple):
    """A capture, or a set of rotated ones, and its truth."""

    name: str
    files: tuple[Path, ...]
    truth: Path


class Seen(NamedTuple):
    """A message. where: its connection, by number; by the client's port where truth numbers those
    of a whole recording. request: the packet that completes the request of a response.
    """

    where: int
    direction: str
    api_key: int | None
    api_version: int | None
    correlation_id: int | None
    length: int
    place: Place | None
    request: Place | None


class ExpectedMessage(NamedTuple):
    """A message as truth has it. lost_request: its request is not in the capture at all; beyond:
    nor enough of it to know what this answers, so that nothing tells it from other bytes.
    """

    seen: Seen
    lost_request: bool
    beyond: bool


class Verdict(NamedTuple):
    """What a comparison found. messages: those wholly in the capture. beyond: those not found that
    nothing tells from other bytes. packet, connection, pairing, order: found in the wrong place.
    """

    name: str
    messages: int
    found: int
    beyond: int
    missing: int
    invented: int
    packet: int
    connection: int
    pairing: int
    order: int

    @property
    def faults(self) -> int:
        """How much is wrong."""
        return self.missing + self.invented + sum(self[6:])


# -- the captures there are


def cases() -> list[Case]:
    """List every capture with truth: recordings of our own, their variants, public ones."""
    found = [Case(_name(path), (truth.capture_of(path),), path) for path in truth.captures()]
    for path in variants("*.truth.jsonl.gz"):
        name = _name(path)
        ending = "[0-9].pcap" if name.endswith("--rot") else ".pcap*"
        found.append(Case(name, tuple(own(name + ending)), path))
    for path in third_party("public", "*.truth.jsonl"):
        name = _name(path)
        found.append(Case(name, tuple(third_party("public", f"{name}.pcap*")), path))
    return found


def _name(path: Path) -> str:
    return path.name.split(".truth")[0]


# -- what truth says


def expected_messages(case: Case) -> list[ExpectedMessage]:
    """Read the messages that are wholly in a capture."""
    rows = truth.lines(case.truth)
    places = _places(case, rows)
    requests: dict[object, deque[tuple[str, Place | None]]] = defaultdict(deque)
    made: list[ExpectedMessage] = []
    for row, place in zip(rows, places, strict=True):
        captured, key = row.get("captured", "full"), (row["stream"], row["correlation_id"])
        request: tuple[str, Place | None] = ("none", None)
        if row["dir"] == "req":
            requests[key].append((captured, place))
        elif requests[key]:
            request = requests[key].popleft()
        if captured == "full":
            made.append(_expected(row, place, *request))
    return made


def _expected(
    row: dict[str, Any], place: Place | None, request_part: str, request: Place | None
) -> ExpectedMessage:
    """request_part: how much of the request is captured."""
    seen = Seen(
        row.get("client_port", row["stream"]),
        row["dir"],
        row["api_key"],
        row["api_version"],
        row["correlation_id"],
        row["len"],
        place,
        request if request_part == "full" else None,
    )
    lost = row["dir"] == "resp" and request_part == "none"
    return ExpectedMessage(seen, lost, row.get("request_captured") is False)


def _places(case: Case, rows: list[dict[str, Any]]) -> list[Place | None]:
    if "captured" not in rows[0]:
        return [(row.get("file", 0), row["frame"]) for row in rows]
    parent = recording(f"{case.name.split('--')[0]}.pcap")
    numbers = completing(parent, case.files[0], rows)
    return [None if number is None else (0, number) for number in numbers]


# -- what we say


def ours(case: Case, *, by_port: bool) -> Iterator[Seen]:
    """Read a capture."""
    traffic = Traffic(case.files)
    files = [str(file) for file in case.files]

    def place(packet: int) -> Place:
        file, number = traffic.place(packet)
        return files.index(file), number

    for found in traffic:
        if isinstance(found, Located) and found.row.is_message:
            row, port = found.row, int((found.client or "").rpartition(":")[2])
            yield Seen(
                port if by_port or found.connection is None else found.connection,
                truth.SIDES[row.direction],
                row.api_key,
                row.api_version,
                row.correlation_id,
                row.length,
                place(row.packet),
                None if row.request_packet is None else place(row.request_packet),
            )


# -- the comparison


def compare(case: Case) -> Verdict:
    """Hold what we find in a capture against its truth."""
    wanted = expected_messages(case)
    by_port = "captured" in truth.lines(case.truth)[0]
    mine = list(ours(case, by_port=by_port))
    pairs = _pair(mine, wanted)
    left = set(range(len(wanted))) - {at for at in pairs if at is not None}
    beyond = sum(wanted[at].beyond for at in left)
    matched = [(seen, at) for seen, at in zip(mine, pairs, strict=True) if at is not None]
    return Verdict(
        case.name,
        len(wanted),
        len(matched),
        beyond,
        len(left) - beyond,
        len(mine) - len(matched),
        sum(seen.place != wanted[at].seen.place for seen, at in matched),
        sum(seen.where != wanted[at].seen.where for seen, at in matched),
        sum(not _paired(seen, wanted[at]) for seen, at in matched),
        _out_of_order(matched, by_connection=by_port),
    )


def _pair(mine: list[Seen], wanted: list[ExpectedMessage]) -> list[int | None]:
    """Find the message of truth that each of ours is: on its own connection, else on any."""
    pairs: list[int | None] = [None] * len(mine)
    for anywhere in (False, True):
        taken = {at for at in pairs if at is not None}
        free: dict[object, list[int]] = defaultdict(list)
        for at, one in enumerate(wanted):
            if at not in taken:
                free[_key(one.seen, anywhere)].append(at)
        for i, seen in enumerate(mine):
            if pairs[i] is None:
                those = free[_key(seen, anywhere)]
                at_ = next((at for at in those if _is(seen, wanted[at].seen)), None)
                if at_ is not None:
                    those.remove(at_)
                    pairs[i] = at_
    return pairs


def _key(seen: Seen, anywhere: bool) -> object:
    return (None if anywhere else seen.where, seen.direction, seen.correlation_id, seen.length)


def _is(seen: Seen, wanted: Seen) -> bool:
    """Whether what is known of a message fits: a response alone may not say what it is."""
    known = (seen.api_key in (None, wanted.api_key), seen.api_version in (None, wanted.api_version))
    return all(known)


def _paired(seen: Seen, wanted: ExpectedMessage) -> bool:
    """Whether a response has its own request; one that is cut may pair or not."""
    if wanted.seen.request is not None or wanted.lost_request:
        return seen.request == wanted.seen.request
    return seen.direction == "resp" or seen.request is None


def _out_of_order(matched: list[tuple[Seen, int]], *, by_connection: bool) -> int:
    """Count messages that come after one that truth has later; where bytes are missing a row may
    have to wait, so there a connection's side is looked at alone.
    """
    last: dict[object, int] = {}
    count = 0
    for seen, at in matched:
        scope = (seen.where, seen.direction) if by_connection else None
        count += at < last.get(scope, -1)
        last[scope] = max(at, last.get(scope, -1))
    return count
