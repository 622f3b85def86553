"""Messages that cannot be encoded are repaired, and nothing else in them changes."""

from __future__ import annotations

import copy

from kafkawire.broker.forwarding.repairs import drop_unknown_tags, shorten_error_messages
from kafkawire.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kafkawire.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse


def test_error_messages_are_cut_between_characters() -> None:
    long = CreatableTopicResult(name="a", error_code=3, error_message="é" * 20_000)
    short = CreatableTopicResult(name="b", error_message="short")
    response = CreateTopicsResponse(topics=[long, short])
    assert shorten_error_messages(response, 7)
    assert long.error_message == "é" * (0x7FFF // 2)
    assert (short.error_message, long.error_code) == ("short", 3)
    assert CreateTopicsResponse.decode(response.encode(7), 7) == response
    assert not shorten_error_messages(response, 7)


def test_unknown_tags_of_all_structs_are_dropped() -> None:
    tags = [(1, b"a"), (1, b"b")]
    topic = CreatableTopic(name="t", unknown_tags=tags)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=7, unknown_tags=tags)
    plain = copy.deepcopy(request)
    drop_unknown_tags(request, 7)
    plain.unknown_tags = plain.topics[0].unknown_tags = None
    assert request == plain
    assert CreateTopicsRequest.decode(request.encode(7), 7) == request
