"""The JSON form against Apache Kafka's values, and what it refuses."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

import kafkawire
from kafkawire.errors import InvalidValue, UnsupportedVersion
from kafkawire.protocol.json_form import uuid_bytes, uuid_text
from tests import golden


def test_every_vector_has_its_json_form_and_comes_back() -> None:
    seen: Counter[tuple[str, int]] = Counter()
    for row in golden.rows("messages"):
        where = f"{row['message']} v{row['version']} {row['kind']} seed {row['seed']}"
        message = kafkawire.decode(row["message"], row["version"], bytes.fromhex(row["hex"]))
        made = kafkawire.to_json(message, row["version"])
        assert made == golden.kafka_json(row["message"], row["version"], row["json"]), where
        text = json.dumps(made, allow_nan=False)
        back = kafkawire.from_json(row["message"], row["version"], json.loads(text))
        assert back.encode(row["version"]).hex() == row["hex"], where
        seen[row["message"], row["version"]] += 1
    assert len(seen) == 876, "every pair of message and version that has vectors"


REFUSED: list[tuple[str, int, Any, str]] = [
    (
        "ClientQuotaRecord",
        0,
        {"value": 10**400},
        "ClientQuotaRecord.value: int too large to convert to float",
    ),
    ("HeartbeatRequest", 4, [], "HeartbeatRequest: is an array, not an object"),
    ("HeartbeatRequest", 4, {"groupID": "g"}, "unknown field 'groupID'; did you mean 'groupId'?"),
    (
        "HeartbeatRequest",
        2,
        {"groupInstanceId": "i"},
        "unknown field 'groupInstanceId' in version 2, only in 3-4",
    ),
    (
        "HeartbeatRequest",
        4,
        {"generationId": True},
        "generationId: is true or false, not an integer",
    ),
    ("HeartbeatRequest", 4, {"generationId": "1"}, "generationId: is a string, not an integer"),
    ("FetchRequest", 4, {"topics": [{"partitions": {}}]}, "topics[0].partitions: is an object"),
    ("FetchRequest", 13, {"topics": [{"topicId": "short"}]}, "topics[0].topicId: "),
    ("SaslAuthenticateRequest", 0, {"authBytes": "?"}, "authBytes: "),
    ("HeartbeatRequest", 4, {"_unknownTaggedFields": [{"tag": 1}]}, "_unknownTaggedFields[0]"),
]


@pytest.mark.parametrize(("name", "version", "obj", "says"), REFUSED)
def test_what_cannot_be_is_refused_with_its_path(
    name: str, version: int, obj: Any, says: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        kafkawire.from_json(name, version, obj)
    assert says in str(caught.value)


def test_a_version_that_is_not_there_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="HeartbeatRequest has versions 0-4, not 5"):
        kafkawire.from_json("HeartbeatRequest", 5, {})


def test_no_unknown_tagged_fields_are_those_of_a_decoded_message() -> None:
    none: dict[str, Any] = {"_unknownTaggedFields": []}
    made = kafkawire.from_json("ApiVersionsResponse", 3, {"apiKeys": [dict(none)], **none})
    assert made == kafkawire.decode("ApiVersionsResponse", 3, made.encode(3))
    assert made.api_keys[0].unknown_tags is None  # type: ignore[attr-defined]


def test_a_field_left_out_takes_its_default() -> None:
    made = kafkawire.from_json("FetchRequest", 12, {"maxWaitMs": 5})
    assert kafkawire.to_json(made, 12)["maxBytes"] == 0x7FFFFFFF


def test_uuids_are_22_characters_of_url_safe_base64() -> None:
    raw = bytes(range(240, 256))
    assert uuid_text(raw) == "8PHy8_T19vf4-fr7_P3-_w"
    assert uuid_bytes(uuid_text(raw)) == raw
    for wrong in ("8PHy8_T19vf4-fr7_P3-_x", "x", "\u00e9", ""):
        with pytest.raises(ValueError, match="invalid uuid"):
            uuid_bytes(wrong)


def test_a_version_that_a_message_does_not_have_has_no_json() -> None:
    message = kafkawire.from_json("HeartbeatRequest", 4, {})
    for version in (-1, 5, 2**40):
        with pytest.raises(UnsupportedVersion, match="has versions 0-4"):
            kafkawire.to_json(message, version)
