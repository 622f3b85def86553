"""What a broker did is judged by what Kafka does: closing is right only for what is broken."""

from __future__ import annotations

from typing import Final

import pytest

from kafkawire import ErrorCode, Message, encode_frame
from kafkawire.fuzz.cases import FOLLOW_UP, Case, Form
from kafkawire.fuzz.faults import Fault, Kind
from kafkawire.fuzz.judgement import Ending, Observation, Problem, judge
from kafkawire.messages.api_key import ApiKey
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.list_groups_request import ListGroupsRequest
from kafkawire.messages.list_groups_response import ListGroupsResponse
from kafkawire.messages.produce_request import ProduceRequest

WHOLE: Final = Case(0, Form.VALID, ApiKey.LIST_GROUPS, 4, ListGroupsRequest(), None, 7)
CUT: Final = WHOLE._replace(fault=Fault(Kind.CUT, number=12))
HALF: Final = WHOLE._replace(fault=Fault(Kind.INCOMPLETE, number=12))
SILENT: Final = Case(0, Form.VALID, ApiKey.PRODUCE, 9, ProduceRequest(acks=0), None, 7)
NEXT: Final = encode_frame(ApiVersionsResponse(), 0, FOLLOW_UP)


def response(error: int = 0, correlation_id: int = 7, version: int = 4) -> bytes:
    message: Message = ListGroupsResponse(error_code=error)
    return encode_frame(message, version, correlation_id)


def seen(
    *frames: bytes, ending: Ending = Ending.FRAMES, followed: bool = False, alive: bool = True
) -> Observation:
    return Observation(frames, ending, followed, alive)


CLOSED, SILENCE = Ending.CLOSED, Ending.SILENCE
JUDGEMENTS: Final = {
    "responds": (WHOLE, seen(response(), NEXT, followed=True), None),
    "responds with an error": (WHOLE, seen(response(42), NEXT, followed=True), None),
    "responds and closes": (WHOLE, seen(response(42), ending=CLOSED, followed=True), None),
    "closes": (WHOLE, seen(ending=CLOSED), Problem.CLOSED),
    "closes after what is broken": (CUT, seen(ending=CLOSED), None),
    "responds to what is broken": (CUT, seen(response(42)), None),
    "hangs": (WHOLE, seen(ending=SILENCE), Problem.NO_RESPONSE),
    "hangs after what is broken": (CUT, seen(ending=SILENCE), Problem.NO_RESPONSE),
    "waits for the rest": (HALF, seen(), None),
    "hangs at the next request": (
        WHOLE,
        seen(response(), ending=SILENCE, followed=True),
        Problem.NO_RESPONSE,
    ),
    "skips a request": (WHOLE, seen(NEXT, followed=True), Problem.NO_RESPONSE),
    "responds twice": (WHOLE, seen(response(), response(), followed=True), Problem.NO_RESPONSE),
    "another correlation id": (
        WHOLE,
        seen(response(correlation_id=8), NEXT, followed=True),
        Problem.CORRELATION_ID,
    ),
    "another version": (
        WHOLE,
        seen(response(version=0), NEXT, followed=True),
        Problem.UNDECODABLE,
    ),
    "cut off": (WHOLE, seen(response()[:-1], NEXT, followed=True), Problem.UNDECODABLE),
    "size out of range": (WHOLE, seen(ending=Ending.MALFORMED), Problem.UNDECODABLE),
    "an exception": (
        WHOLE,
        seen(response(-1), NEXT, followed=True),
        Problem.SERVER_ERROR,
    ),
    "dies": (WHOLE, seen(response(), alive=False), Problem.UNREACHABLE),
    "dies after what is broken": (CUT, seen(ending=CLOSED, alive=False), Problem.UNREACHABLE),
    "acks=0": (SILENT, seen(NEXT, followed=True), None),
    "acks=0, and closes": (SILENT, seen(ending=CLOSED, followed=True), None),
    "acks=0, and responds": (
        SILENT,
        seen(encode_frame(ListGroupsResponse(), 4, 7), followed=True),
        Problem.NO_RESPONSE,
    ),
}


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_judgement(name: str) -> None:
    case, observation, problem = JUDGEMENTS[name]
    assert judge(case, observation).problem is problem


def test_error_codes_are_listed() -> None:
    verdict = judge(WHOLE, seen(response(ErrorCode.COORDINATOR_NOT_AVAILABLE)))
    assert verdict.errors == (ErrorCode.COORDINATOR_NOT_AVAILABLE,)


def test_a_version_that_is_not_offered_may_have_the_response_of_version_0() -> None:
    """As ApiVersions has (KIP-511)."""
    fault = Fault(Kind.VERSION, number=99)
    case = Case(0, Form.BROKEN, ApiKey.API_VERSIONS, 3, ApiVersionsRequest(), fault, 7)
    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert judge(case, seen(encode_frame(refused, 0, 7))).problem is None
