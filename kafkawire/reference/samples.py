"""Makes example messages: values of every field of a version, the same in each run.

No field of the version has its default, so that every one of them is on the wire; an array has
one element, an array of numbers two.

    example(model of FetchRequest, 12) -> a row for every byte
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafkawire_codegen import model
from kafkawire_codegen.wire_types import WireType

from ..primitives import DEFAULT_LIMITS
from ..records.builder import BatchBuilder
from ..records.message_set import MessageSetBuilder
from .codec import Parsed
from .defaults import UNKNOWN_TAGS, default_of
from .explain import message_rows
from .graph import graph
from .rendering import Row
from .tree import Sink, Source

TIME_MS: Final = 1_767_225_600_000
"""2026-01-01, in milliseconds."""
BROKERS: Final = (1, 2)

ENTITIES: Final[Mapping[str, Any]] = {
    "topicName": "orders",
    "groupId": "billing",
    "transactionalId": "payments-1",
    "producerId": 4000,
    "brokerId": 1,
}
"""Entity type -> value."""

TEXTS: Final = {
    "assignor_name": "range",
    "client_host": "/10.0.0.7",
    "client_id": "app-1",
    "error_message": "Topic not found",
    "group_instance_id": "worker-1",
    "group_state": "Stable",
    "host": "broker-1",
    "instance_id": "worker-1",
    "mechanism": "PLAIN",
    "member_id": "member-1",
    "principal": "User:alice",
    "principal_name": "alice",
    "principal_type": "User",
    "protocol_name": "range",
    "protocol_type": "consumer",
    "rack": "rack-a",
    "rack_id": "rack-a",
    "subscribed_topic_names": "orders",
    "topic": "orders",
    "topic_name": "orders",
    "topics": "orders",
    "user": "alice",
}
"""Field -> text; of another field it is the field's own name."""

NUMBERS: Final = {
    "error_code": 3,
    "generation_id": 7,
    "log_append_time_ms": TIME_MS,
    "max_bytes": 1_048_576,
    "max_wait_ms": 500,
    "min_bytes": 1,
    "partition_max_bytes": 65_536,
    "port": 9092,
    "rebalance_timeout_ms": 60_000,
    "replication_factor": 3,
    "session_timeout_ms": 45_000,
    "throttle_time_ms": 100,
}
ENDINGS: Final = (
    ("timestamp", TIME_MS),
    ("timestamp_ms", TIME_MS),
    ("error_code", 3),
    ("offset", 42),
    ("watermark", 50),
    ("epoch", 5),
    ("_ms", 30_000),
    ("bytes", 4096),
)
"""The end of a field's name -> number, the first that fits; of another field it is 1."""

OLD_RECORDS: Final[Mapping[str, tuple[int, int]]] = {
    "ProduceRequest": (2, 3),
    "FetchResponse": (2, 4),
}
"""Message -> the first versions with message sets of magic 1 and with record batches."""


def example(message: model.Message, version: int) -> tuple[Row, ...]:
    """Encode a message with values in every field, and explain its bytes."""
    construct = graph(message, version)
    sink = Sink([message.name], lenient=False, module=None)
    construct.piece.build_stream(sample(message, version), sink)
    data = sink.getvalue()
    source = Source(data, 0, lenient=False, limits=DEFAULT_LIMITS)
    root = source.begin(message.name, message.name, message.name)
    values = construct.piece.parse_stream(source)
    source.finish(root, values)
    parsed = Parsed(message.name, version, data, values, root, root.end, None, (), None)
    return tuple(message_rows(parsed))


def sample(message: model.Message, version: int) -> dict[str, Any]:
    """Make the values of a message, in the form of the reference codec."""
    return _struct(message.root, version, message)


def _struct(struct: model.Struct, version: int, message: model.Message) -> dict[str, Any]:
    values = {
        f.attribute: _value(f, version, message) if version in f.versions else default_of(f)
        for f in struct.fields
    }
    if struct.has_tags:
        values[UNKNOWN_TAGS] = None
    return values


def _value(f: model.Field, version: int, message: model.Message) -> Any:
    if f.struct is not None:
        inner = _struct(f.struct, version, message)
        return [inner] if f.is_array else inner
    assert f.wire is not None
    if f.wire.name == "records":
        first_of_1, first_of_2 = OLD_RECORDS.get(message.name, (0, 0))
        return _records((version >= first_of_1) + (version >= first_of_2))
    if not f.is_array:
        return _scalar(f, f.wire)
    if f.wire.is_integer:
        return list(BROKERS)
    return [_scalar(f, f.wire)]


def _scalar(f: model.Field, wire: WireType) -> Any:
    if wire.is_integer:
        number = _number(f, wire)
        return number + 1 if number == f.default else number
    return MAKERS[wire.name](f)


def _text(f: model.Field) -> str:
    text = ENTITIES.get(f.entity_type or "") or TEXTS.get(f.attribute.rstrip("_"))
    name = f.attribute.rstrip("_").replace("_", "-")
    sample = str(text or name)
    return f"{sample}-1" if sample == f.default else sample


def _number(f: model.Field, wire: WireType) -> int:
    assert wire.low is not None
    assert wire.high is not None
    name = f.attribute.rstrip("_")
    number = ENTITIES.get(f.entity_type or "") or NUMBERS.get(name)
    if number is None:
        number = next((n for ending, n in ENDINGS if name.endswith(ending)), 1)
    return int(number) if wire.low <= number < wire.high else 1


def _records(magic: int) -> bytes:
    """Write one record, as its key and value."""
    if magic < 2:
        messages = MessageSetBuilder(magic)
        messages.append(b"key", b"value", TIME_MS if magic else -1)
        return messages.build()
    batch = BatchBuilder()
    batch.append(b"key", b"value", TIME_MS)
    return batch.build()


MAKERS: Final[Mapping[str, Callable[[model.Field], Any]]] = {
    "bool": lambda f: f.default is not True,
    "float64": lambda f: 0.5 if f.default != 0.5 else 1.5,
    "string": _text,
    "bytes": lambda f: b"\x01\x02\x03",  # noqa: ARG005
    "uuid": lambda f: bytes(range(1, 17)),  # noqa: ARG005
}
"""Wire type, other than integers and records -> its value in a field."""
