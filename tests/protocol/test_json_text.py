"""JSON text written by templates against `json` over the JSON form."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest

import kafkawire
from kafkawire.capture.redaction import redacted
from kafkawire.errors import UnsupportedVersion
from kafkawire.messages import REGISTRY
from kafkawire.messages.client_quota_record import ClientQuotaRecord
from kafkawire.messages.heartbeat_request import HeartbeatRequest
from kafkawire.primitives import Message
from kafkawire.protocol.json_text import to_json_text
from kafkawire.protocol.secrets import (
    CONFIG_STRUCTS,
    METADATA_TOPICS,
    SECRET_FIELDS,
    SECRET_MESSAGES,
    is_secret_config,
    placeholder,
)
from tests import golden


def plain(message: Message, version: int, *, secrets: bool) -> str:
    made: Any = kafkawire.to_json(message, version)
    if not secrets:
        made = without_metadata(redacted(made, SECRET_FIELDS | {"unalignedRecords"}))
        if type(message).__name__ in SECRET_MESSAGES:
            without_configs(made)
    return json.dumps(made, separators=(",", ":"), allow_nan=False)


def without_metadata(made: Any) -> Any:
    """Hide the records of the metadata topic."""
    if isinstance(made, list):
        return [without_metadata(inner) for inner in made]
    if not isinstance(made, dict):
        return made
    if METADATA_TOPICS & {made.get("topic"), made.get("topicId"), made.get("name")}:
        made = redacted(made, {"records"})
    return {key: without_metadata(inner) for key, inner in made.items()}


def without_configs(made: Any) -> None:
    """Hide the values of configs, and unknown tags, in a message that may carry secrets."""
    for inner in made if isinstance(made, list) else list(made.values()):
        if isinstance(inner, dict | list):
            without_configs(inner)
    if not isinstance(made, dict):
        return
    for tag in made.get("_unknownTaggedFields", ()):
        tag["data"] = placeholder(len(tag["data"]), "character")
    name, value = made.get("name"), made.get("value")
    if isinstance(name, str) and "value" in made:
        if isinstance(value, str) and is_secret_config(name, made.get("isSensitive")):
            made["value"] = placeholder(len(value), "character")
        if not re.fullmatch(r"[\w.$-]*", name, re.ASCII):
            made["name"] = placeholder(len(name), "character")


def test_every_vector_is_written_as_json_would() -> None:
    hidden = 0
    for row in golden.rows("messages"):
        where = f"{row['message']} v{row['version']} {row['kind']} seed {row['seed']}"
        message = kafkawire.decode(row["message"], row["version"], bytes.fromhex(row["hex"]))
        texts = [
            to_json_text(message, row["version"], secrets=secrets) for secrets in (True, False)
        ]
        assert texts[0] == plain(message, row["version"], secrets=True), where
        assert texts[1] == plain(message, row["version"], secrets=False), where
        hidden += texts[0] != texts[1]
    assert hidden, "some vectors hold credentials"


def test_secrets_are_fields_structs_and_messages_there_are() -> None:
    structs = {
        name: cls
        for info in REGISTRY
        for module in [sys.modules[REGISTRY.load(info.name).__module__]]
        for name, cls in vars(module).items()
        if hasattr(cls, "__fields__")
    }
    names = {row.json_name for cls in structs.values() for row in cls.__fields__}
    assert names >= SECRET_FIELDS - {"password"}
    assert structs.keys() >= CONFIG_STRUCTS
    known = {info.name for info in REGISTRY}
    assert known >= SECRET_MESSAGES


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 0.1, -0.0, 1e300])
def test_floats(value: float) -> None:
    message = ClientQuotaRecord(key="k", value=value)
    assert to_json_text(message, 0) == plain(message, 0, secrets=True)


def test_text_that_was_no_utf8_is_escaped() -> None:
    message = HeartbeatRequest(group_id='\udcff\n"é\U0001f600', member_id="\x7f")
    text = to_json_text(message, 4)
    assert text == plain(message, 4, secrets=True)
    assert text.isascii()


def test_a_version_there_is_none_of_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="HeartbeatRequest has versions 0-4, not 5"):
        to_json_text(HeartbeatRequest(), 5)
