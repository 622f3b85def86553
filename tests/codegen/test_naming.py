"""Names: re-cased, never improved."""

from __future__ import annotations

import pytest

from kafkawire_codegen import naming

NAMES = [
    ("MaxWaitMs", "max_wait_ms", "maxWaitMs"),
    ("isKRaftController", "is_k_raft_controller", "isKRaftController"),
    ("LastKnownElr", "last_known_elr", "lastKnownElr"),
    ("TopicId", "topic_id", "topicId"),
    ("V3AndBelowTopics", "v3_and_below_topics", "v3AndBelowTopics"),
    ("ISRVersion", "isr_version", "iSRVersion"),
    ("topic", "topic", "topic"),
]


@pytest.mark.parametrize(("kafka", "python", "json"), NAMES)
def test_names(kafka: str, python: str, json: str) -> None:
    assert naming.attribute(kafka) == python
    assert naming.json_name(kafka) == json


def test_names_that_python_or_the_class_needs_get_an_underscore() -> None:
    assert naming.attribute("class") == "class_"
    assert naming.attribute("From") == "from_"
    assert naming.attribute("Decode") == "decode_"
    assert naming.local("version") == "version_"
    assert naming.local("topics") == "topics"


def test_apis_and_constants() -> None:
    assert naming.api_name("ListOffsetsResponse") == "ListOffsets"
    assert naming.constant("ListOffsets") == "LIST_OFFSETS"
