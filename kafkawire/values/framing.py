"""Reads and writes what serialisers put in front of a value, or in a header: the schema's id.

    00 | id, 4 bytes                      | Protobuf: message indexes | value     (magic byte 0)
    00 | id, 8 bytes, the first four 0    | Protobuf: message name    | value     (Apicurio)
    header __value_schema_id: 01 | GUID, 16 bytes | Protobuf: message indexes      (magic byte 1)
    header apicurio.value.globalId or .contentId: 8 bytes; header apicurio.protobuf.type;
        header apicurio.value.encoding: JSON or BINARY, of Avro

Serialisers of Apicurio write the name of a Protobuf message in place of its indexes: the size of a
message `Ref { string name = 1; }`, and this message.

Source: Confluent, "Formats, Serializers, and Deserializers: Wire Format"; ref.proto of Apicurio.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple
from uuid import UUID

from ..errors import InvalidRecordValue
from .schema import ApicurioId, IdKind, SchemaKey

MAGIC_ID: Final = 0
MAGIC_GUID: Final = 1
ID_END: Final = 5
LONG_ID_END: Final = 9
GUID_END: Final = 17
MAX_INDEXES: Final = 32
"""Nested messages of a message index; .proto files nest up to this deep."""
MAX_VARINT: Final = 5
FIRST_MESSAGE: Final = (0,)
NAME_HEAD: Final = 3
NAME_TAG: Final = 0x0A
MAX_NAME: Final = 0x7F
"""Of `Ref`: its size, the tag of its field and the length of this; the largest size of one byte."""

KEY_HEADER: Final = "__key_schema_id"
VALUE_HEADER: Final = "__value_schema_id"

APICURIO_PREFIX: Final = {True: "apicurio.key.", False: "apicurio.value."}
"""Of the names of headers of Apicurio's serialisers, by whether they are about the key."""
PROTOBUF_TYPE: Final = "apicurio.protobuf.type"
"""The header with the name of a Protobuf message, of the key or the value."""
ENCODING: Final = "encoding"
"""The header, after a prefix, with the encoding of an Avro value."""
JSON_ENCODING: Final = b"JSON"
"""Of a value in Avro's JSON encoding; serialisers write BINARY otherwise."""
LONG: Final = 8
MAX_FIRST: Final = 0x80
"""Ids are positive numbers of 8 bytes."""

Headers = Iterable[tuple[str, bytes | None]]


class Frame(NamedTuple):
    """The schema that a value names. head: the bytes from which message indexes are read.

    at: where what follows the id begins in `head`. in_header: whether `head` is a header, and the
    value has nothing in front. is_certain: False for an id of 8 bytes, which zeros of other data
    may be. is_json: whether an Avro value has Avro's JSON encoding.
    """

    key: SchemaKey
    head: bytes
    at: int
    in_header: bool = False
    is_certain: bool = True
    is_json: bool = False


def frame_of(data: bytes, headers: Headers = (), *, is_key: bool = False) -> Frame | None:
    """Find the schema that a value names; None if it names none.

    An id of 0 is none: registries count from 1. Apicurio's serialisers write 8 bytes of an id
    unless `apicurio.registry.as-confluent` is set; ids of 2^32 and more are not read.
    """
    name = KEY_HEADER if is_key else VALUE_HEADER
    headers = tuple(headers)
    for key, value in headers:
        if key == name and value is not None and len(value) >= GUID_END and value[0] == MAGIC_GUID:
            return Frame(UUID(bytes=value[1:GUID_END]), value, GUID_END, True)
    apicurio = _apicurio_frame(headers, APICURIO_PREFIX[is_key])
    if apicurio is not None:
        return apicurio
    if len(data) < ID_END or data[0] != MAGIC_ID:
        return None
    if any(data[1:ID_END]):
        return Frame(int.from_bytes(data[1:ID_END], "big"), data, ID_END)
    long_id = int.from_bytes(data[ID_END:LONG_ID_END], "big")
    if len(data) < LONG_ID_END or not long_id:
        return None
    return Frame(long_id, data, LONG_ID_END, is_certain=False)


def _apicurio_frame(headers: Headers, prefix: str) -> Frame | None:
    """Read the ids in headers of Apicurio's serialisers; the message of Protobuf as in a value."""
    named = {key: value for key, value in headers if value}
    message = named.get(PROTOBUF_TYPE, b"")[: MAX_NAME - 2]
    head = bytes([len(message) + 2, NAME_TAG, len(message)]) + message if message else b"\0"
    for kind in IdKind:
        number = named.get(prefix + kind, b"")
        if len(number) == LONG and any(number) and number[0] < MAX_FIRST:
            key = ApicurioId(kind, int.from_bytes(number, "big"))
            is_json = named.get(prefix + ENCODING) == JSON_ENCODING
            return Frame(key, head, 0, in_header=True, is_json=is_json)
    return None


def guid_frame(data: bytes) -> Frame | None:
    """Read a GUID in front of a value, as serialisers may write it instead of a header."""
    if len(data) < GUID_END or data[0] != MAGIC_GUID:
        return None
    return Frame(UUID(bytes=data[1:GUID_END]), data, GUID_END)


def message_indexes(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Read message indexes, zigzag varints after their count; return them and where they end.

    A count of 0 stands for the first message. Raises InvalidRecordValue.
    """
    count, at = _varint(data, at)
    if not 0 <= count <= MAX_INDEXES:
        raise InvalidRecordValue(f"{count} message indexes")
    indexes = []
    for _ in range(count):
        index, at = _varint(data, at)
        if index < 0:
            raise InvalidRecordValue(f"message index {index}")
        indexes.append(index)
    return tuple(indexes) or FIRST_MESSAGE, at


def message_name(data: bytes, at: int) -> tuple[str, int] | None:
    """Read the name of a message, as Apicurio writes it; return it and where it ends.

    None for other bytes.
    """
    head = data[at : at + NAME_HEAD]
    if len(head) < NAME_HEAD or head[1] != NAME_TAG or head[0] != head[2] + 2:
        return None
    end = at + 1 + head[0]
    name = data[at + NAME_HEAD : end]
    if head[0] > MAX_NAME or end > len(data) or not name.isascii():
        return None
    return name.decode("ascii"), end


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for n in range(MAX_VARINT):
        if at + n >= len(data):
            raise InvalidRecordValue("the value ends in its message indexes")
        byte = data[at + n]
        number |= (byte & 0x7F) << 7 * n
        if byte < 0x80:
            return number >> 1 ^ -(number & 1), at + n + 1
    raise InvalidRecordValue("a message index of more than 5 bytes")


def frame_bytes(key: int, indexes: tuple[int, ...] | None = None) -> bytes:
    """Write the id of a schema, and message indexes for Protobuf."""
    head = bytes([MAGIC_ID]) + key.to_bytes(4, "big")
    if indexes is None:
        return head
    if indexes == FIRST_MESSAGE:
        return head + b"\0"
    return head + b"".join(map(_zigzag, (len(indexes), *indexes)))


def _zigzag(number: int) -> bytes:
    number <<= 1
    pieces = []
    while number >= 0x80:
        pieces.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*pieces, number])
