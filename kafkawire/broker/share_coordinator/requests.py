"""The five requests for the state of share partitions, which have the same form.

request    group id │ topics: topic id │ partitions: partition │ ...
response   results: topic id │ partitions: partition │ error code │ error message │ ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from ...messages import delete_share_group_state_request as delete_request
from ...messages import delete_share_group_state_response as delete_response
from ...messages import initialize_share_group_state_request as initialize_request
from ...messages import initialize_share_group_state_response as initialize_response
from ...messages import read_share_group_state_request as read_request
from ...messages import read_share_group_state_response as read_response
from ...messages import read_share_group_state_summary_request as summary_request
from ...messages import read_share_group_state_summary_response as summary_response
from ...messages import write_share_group_state_request as write_request
from ...messages import write_share_group_state_response as write_response
from ...primitives import Message, Structure
from ...protocol import ErrorCode
from .state import ShareKey


class Form(NamedTuple):
    """The classes of an API. version: its newest one, which brokers send each other."""

    request: Callable[..., Message]
    topic: Callable[..., Structure]
    response: Callable[..., Message]
    topic_result: Callable[..., Structure]
    result: Callable[..., Structure]
    version: int


FORMS: Final[Mapping[type[Message], Form]] = {
    initialize_request.InitializeShareGroupStateRequest: Form(
        initialize_request.InitializeShareGroupStateRequest,
        initialize_request.InitializeStateData,
        initialize_response.InitializeShareGroupStateResponse,
        initialize_response.InitializeStateResult,
        initialize_response.PartitionResult,
        initialize_request.LAST,
    ),
    read_request.ReadShareGroupStateRequest: Form(
        read_request.ReadShareGroupStateRequest,
        read_request.ReadStateData,
        read_response.ReadShareGroupStateResponse,
        read_response.ReadStateResult,
        read_response.PartitionResult,
        read_request.LAST,
    ),
    write_request.WriteShareGroupStateRequest: Form(
        write_request.WriteShareGroupStateRequest,
        write_request.WriteStateData,
        write_response.WriteShareGroupStateResponse,
        write_response.WriteStateResult,
        write_response.PartitionResult,
        write_request.LAST,
    ),
    delete_request.DeleteShareGroupStateRequest: Form(
        delete_request.DeleteShareGroupStateRequest,
        delete_request.DeleteStateData,
        delete_response.DeleteShareGroupStateResponse,
        delete_response.DeleteStateResult,
        delete_response.PartitionResult,
        delete_request.LAST,
    ),
    summary_request.ReadShareGroupStateSummaryRequest: Form(
        summary_request.ReadShareGroupStateSummaryRequest,
        summary_request.ReadStateSummaryData,
        summary_response.ReadShareGroupStateSummaryResponse,
        summary_response.ReadStateSummaryResult,
        summary_response.PartitionResult,
        summary_request.LAST,
    ),
}
"""Request -> its classes."""
BY_PARTITION: Final[Mapping[type[Structure], Form]] = {
    initialize_request.PartitionData: FORMS[initialize_request.InitializeShareGroupStateRequest],
    read_request.PartitionData: FORMS[read_request.ReadShareGroupStateRequest],
    write_request.PartitionData: FORMS[write_request.WriteShareGroupStateRequest],
    delete_request.PartitionData: FORMS[delete_request.DeleteShareGroupStateRequest],
    summary_request.PartitionData: FORMS[summary_request.ReadShareGroupStateSummaryRequest],
}
"""The partition in a request -> the classes of its API."""


def request_of(key: ShareKey, data: Structure) -> tuple[Message, int]:
    """Return a request for one share partition, and its version."""
    form = BY_PARTITION[type(data)]
    topic = form.topic(topic_id=key.topic_id, partitions=[data])
    return form.request(group_id=key.group_id, topics=[topic]), form.version


def partitions_of(body: Any) -> Iterator[tuple[ShareKey, Any]]:
    """Iterate over the share partitions of a request, and what it has for each."""
    for topic in body.topics:
        for data in topic.partitions:
            yield ShareKey(body.group_id, topic.topic_id, data.partition), data


def response_of(body: Message, results: Mapping[ShareKey, Structure]) -> Message:
    """Return the response to a request, with the results of its share partitions."""
    form = FORMS[type(body)]
    topics: dict[bytes, list[Structure]] = {}
    for key, result in results.items():
        topics.setdefault(key.topic_id, []).append(result)
    return form.response(
        results=[
            form.topic_result(topic_id=topic_id, partitions=partitions)
            for topic_id, partitions in topics.items()
        ]
    )


def failed(key: ShareKey, data: Structure, error: ErrorCode, message: str = "") -> Structure:
    """Return the result of a share partition with an error."""
    form = BY_PARTITION[type(data)]
    return form.result(
        partition=key.partition, error_code=error, error_message=message or error.name
    )


def error_response(body: Message, error: ErrorCode) -> Message:
    """Return a response with the error for each share partition."""
    results = {key: failed(key, data, error) for key, data in partitions_of(body)}
    return response_of(body, results)
