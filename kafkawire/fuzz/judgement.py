"""Judges what a broker did with a request.

Closing the connection is right for what cannot be decoded, or is not offered: Kafka does so. A
request that can be decoded gets a response, whatever its fields say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ..broker.effects import error_codes
from ..errors import WireError
from ..messages import REGISTRY
from ..primitives import Message
from ..protocol.error_code import ErrorCode
from ..protocol.frame import SIZE, Frame, decode_frame
from .cases import FOLLOW_UP, Case, Expected
from .faults import Kind

CORRELATION: Final = slice(SIZE, SIZE + 4)


class Ending(Enum):
    """How reading from a connection ended."""

    FRAMES = "as many responses as there can be"
    CLOSED = "connection closed"
    SILENCE = "no response in time"
    MALFORMED = "size of a response that cannot be"


@dataclass(frozen=True, slots=True)
class Observation:
    """What a broker did with a case.

    frames: the responses on the connection, sizes included. ending: why no more were read.
    followed: whether a request that can be decoded followed on the connection. alive: whether the
    broker responds to another client afterwards.
    """

    frames: tuple[bytes, ...]
    ending: Ending
    followed: bool
    alive: bool


class Problem(Enum):
    """What a broker must not do."""

    UNREACHABLE = "does not respond to other clients afterwards"
    NO_RESPONSE = "no response in time"
    CLOSED = "closes the connection although the request can be decoded"
    UNDECODABLE = "a response that cannot be decoded"
    CORRELATION_ID = "a response with another correlation id"
    UNEXPECTED = "a response more than there can be"
    SERVER_ERROR = "UNKNOWN_SERVER_ERROR, the error of unexpected exceptions"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a broker did.

    problem: None if all is well. detail: of the problem. errors: the error codes of the response.
    closed: whether the broker closed the connection. version: of the response's body.
    """

    problem: Problem | None
    detail: str = ""
    errors: tuple[int, ...] = ()
    response: Message | None = None
    closed: bool = False
    version: int | None = None


def judge(case: Case, observed: Observation) -> Verdict:
    """Judge what a broker did with a case."""
    if not observed.alive:
        return Verdict(Problem.UNREACHABLE)
    if observed.ending is Ending.MALFORMED:
        return Verdict(Problem.UNDECODABLE, "the size of the response is out of range")
    frames = list(observed.frames)
    if observed.followed and frames and _correlation_id(frames[-1]) == FOLLOW_UP:
        frames.pop()
    closed = observed.ending is Ending.CLOSED
    if observed.followed and len(frames) == len(observed.frames) and not closed:
        return Verdict(Problem.NO_RESPONSE, "to the next request on the connection")
    if frames:
        return _responded(case, frames, closed)
    problem, detail = WITHOUT_RESPONSE.get((case.expected, observed.ending), (None, ""))
    return Verdict(problem, detail, closed=closed)


WITHOUT_RESPONSE: Final[Mapping[tuple[Expected, Ending], tuple[Problem, str]]] = {
    (Expected.RESPONSE, Ending.SILENCE): (Problem.NO_RESPONSE, ""),
    (Expected.RESPONSE, Ending.CLOSED): (Problem.CLOSED, ""),
    (Expected.RESPONSE, Ending.FRAMES): (Problem.NO_RESPONSE, "only to the next request"),
    (Expected.RESPONSE_OR_CLOSE, Ending.SILENCE): (Problem.NO_RESPONSE, ""),
}
"""What a broker may do and what it did, without a response -> the problem; none otherwise."""


def _responded(case: Case, frames: list[bytes], closed: bool) -> Verdict:
    if case.expected is Expected.NO_RESPONSE:
        return Verdict(Problem.UNEXPECTED, "to a Produce request with acks=0", closed=closed)
    if len(frames) > 1 and case.expected is not Expected.ANYTHING:
        return Verdict(Problem.UNEXPECTED, f"{len(frames)} responses to one request", closed=closed)
    number = _correlation_id(frames[0])
    if number != case.correlation_id:
        if case.expected is Expected.ANYTHING:
            return Verdict(None, closed=closed)  # of bytes that the broker took for another header
        detail = f"{number}, expected {case.correlation_id}"
        return Verdict(Problem.CORRELATION_ID, detail, closed=closed)
    try:
        frame = _decoded(case, frames[0])
    except WireError as error:
        return Verdict(Problem.UNDECODABLE, str(error), closed=closed)
    if frame is None:
        return Verdict(None, closed=closed)
    errors = tuple(sorted(set(error_codes(frame.body, frame.body_version))))
    problem = Problem.SERVER_ERROR if ErrorCode.UNKNOWN_SERVER_ERROR in errors else None
    return Verdict(problem, "", errors, frame.body, closed, frame.body_version)


def _correlation_id(frame: bytes) -> int:
    return int.from_bytes(frame[CORRELATION], "big", signed=True)


def _decoded(case: Case, frame: bytes) -> Frame | None:
    """Decode a response; None if nobody knows its version. Raises WireError."""
    kind = None if case.fault is None else case.fault.kind
    version = case.version
    if kind is Kind.API_KEY:
        return None
    if kind is Kind.VERSION:
        assert case.fault is not None
        version = case.fault.number
        info = REGISTRY.response(case.api)
        if info is None or not info.first <= version <= info.last:
            return None
    return decode_frame(frame, response_to=(case.api, version))
