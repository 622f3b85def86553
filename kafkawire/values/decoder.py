"""Decodes the keys and values of records: by their format, or by what they say of themselves.

Whatever the bytes are, the result is a value or the reason why there is none; a schema is
compiled once, and the number of those kept is bounded.

    auto: header with a GUID, magic byte and id -> the schema's type; an id of 8 bytes, if it exists
          a schema of the topic in a directory  -> its type
          otherwise                             -> json, string, msgpack or bytes
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence

from ..errors import InvalidRecordValue, UnusableSchema
from .avro import AvroCodec
from .bounds import DEFAULT_BOUNDS, Bounds, json_depth
from .formats import FORMATS, TEXTS, TYPES, DecodedValue, ValueFormat
from .framing import (
    FIRST_MESSAGE,
    Frame,
    Headers,
    frame_bytes,
    frame_of,
    guid_frame,
)
from .json_schema import JsonSchemaCodec
from .looked_up import NamedSchema, look_up
from .plain import DECODERS, ENCODERS, decode_json, decode_string, detected
from .protobuf.codec import ProtobufCodec
from .schema import ApicurioId, Schema, SchemaSource, SchemaType, Subject

Codec = AvroCodec | JsonSchemaCodec | ProtobufCodec
"""Of a schema."""


class ValueDecoder:
    """Decodes and encodes keys and values of records.

    format: of all of them. sources: of schemas, the first that has one counts.
    """

    def __init__(
        self,
        format: ValueFormat = ValueFormat.AUTO,
        sources: Sequence[SchemaSource] = (),
        bounds: Bounds = DEFAULT_BOUNDS,
    ) -> None:
        self.format = format
        self._sources = sources
        self._bounds = bounds
        self._compiled: OrderedDict[Hashable, tuple[Schema, Codec] | UnusableSchema | None]
        self._compiled = OrderedDict()

    def decode(
        self, data: bytes | None, subject: Subject | None, headers: Headers = ()
    ) -> DecodedValue | None:
        """Decode a key or value; None for null. subject: None if the topic is unknown."""
        if data is None:
            return None
        if self.format is ValueFormat.AUTO:
            return self._auto(data, subject, headers)
        kind = TYPES.get(self.format)
        if kind is None:
            return _plain(self.format.value, data)
        frame = self._frame(data, subject, headers)
        raw = None
        if frame is None or not self._names_schema(frame, subject):
            raw = self._raw(data, subject, kind)
        if raw is None and frame is not None:
            return self._framed(frame, data, subject, kind)
        return self._without_schema(data, subject, kind) if raw is None else raw

    def _without_schema(
        self, data: bytes, subject: Subject | None, kind: SchemaType
    ) -> DecodedValue:
        """Decode a value that names no schema, of a topic without one."""
        if kind is SchemaType.JSON:
            return _plain("json", data)._replace(format=self.format.value)
        of = "this topic" if subject is None else subject.name
        reason = f"names no schema, and there is none for {of}"
        return DecodedValue(self.format.value, None, reason)

    def _auto(self, data: bytes, subject: Subject | None, headers: Headers) -> DecodedValue:
        frame = self._frame(data, subject, headers)
        if frame is not None and self._names_schema(frame, subject):
            if self._sources or frame.in_header:
                return self._framed(frame, data, subject, None)
            reason = "no schemas to decode it with"
            return DecodedValue("schema", None, reason, frame.key)
        raw = self._raw(data, subject, None, local=True)
        return _plain(detected(data), data) if raw is None else raw

    # -- by schema

    def named_schema(
        self, data: bytes, subject: Subject | None, headers: Headers = ()
    ) -> NamedSchema | None:
        """Return what decides about the schema of a key or value; None in formats without one."""
        if self.format is not ValueFormat.AUTO and self.format not in TYPES:
            return None
        frame = self._frame(data, subject, headers)
        return NamedSchema(None if frame is None else frame.key, subject)

    def looked_up(self, named: Iterable[NamedSchema]) -> ValueDecoder:
        """Return a decoder that has looked up the schemas of values, and can be pickled.

        Only so many schemas are looked up as the limits allow to keep: the first ones.
        """
        local = self.format is ValueFormat.AUTO
        schema = look_up(named, self._sources, self._bounds.schemas, local=local)
        return ValueDecoder(self.format, [schema] if self._sources else [], self._bounds)

    def _frame(self, data: bytes, subject: Subject | None, headers: Headers) -> Frame | None:
        """Find the schema that a key or value names."""
        is_key = subject is not None and subject.is_key
        frame = frame_of(data, headers, is_key=is_key)
        return guid_frame(data) if frame is None and self.format in TYPES else frame

    def _names_schema(self, frame: Frame, subject: Subject | None) -> bool:
        """Whether a frame is one: if that is not certain, whether there is such a schema."""
        try:
            return frame.is_certain or self._of_key(frame, subject) is not None
        except UnusableSchema:
            return True

    def _of_key(self, frame: Frame, subject: Subject | None) -> tuple[Schema, Codec] | None:
        """Find the schema that a frame names."""
        return self._schema((frame.key, subject), lambda one: one.by_key(frame.key, subject))

    def _framed(
        self, frame: Frame, data: bytes, subject: Subject | None, kind: SchemaType | None
    ) -> DecodedValue:
        """Decode a value that names its schema. kind: None for any."""
        name = f"schema {frame.key}"
        form = FORMATS[kind] if kind else "schema"
        try:
            looked_up = self._of_key(frame, subject)
            if looked_up is None:
                raise UnusableSchema("not found" if self._sources else "no schemas", name)
        except UnusableSchema as error:
            return DecodedValue(form, None, str(error), frame.key)
        schema, codec = looked_up
        if kind is not None and schema.type is not kind:
            reason = f"{name} is not {form} but {FORMATS[schema.type]}"
            return DecodedValue(form, None, reason, frame.key)
        start = 0 if frame.in_header else frame.at
        decoded = self._with(codec, frame, data, start, schema)
        is_schema_of_topic = schema.key is None and not frame.in_header
        if is_schema_of_topic and not (decoded.error is None and frame.is_certain):
            bare = self._with(codec, None, data, 0, schema)  # Avro may begin as a frame does
            return decoded if bare.error else bare
        return decoded

    def _with(
        self, codec: Codec, frame: Frame | None, data: bytes, start: int, schema: Schema
    ) -> DecodedValue:
        """Decode the value that begins at a byte."""
        form = FORMATS[schema.type]
        key = None if frame is None else frame.key
        name = None
        try:
            if isinstance(codec, ProtobufCodec):
                indexes: tuple[int, ...] = FIRST_MESSAGE
                if frame is not None:
                    indexes, end = codec.message_of(frame.head, frame.at)
                    start = start if frame.in_header else end
                name = codec.message(indexes).full_name
                value = codec.decode(data, start, indexes)
            elif isinstance(codec, JsonSchemaCodec):
                value = self._json(data[start:])
            else:
                name = codec.name
                is_json = frame is not None and frame.is_json
                value = codec.decode_json(data) if is_json else codec.decode(data, start)
        except InvalidRecordValue as error:
            return DecodedValue(form, None, str(error), key, name)
        return DecodedValue(form, value, None, key, name)

    def _json(self, data: bytes) -> object:
        value = decode_json(data)
        if json_depth(value) > self._bounds.depth:
            raise InvalidRecordValue("nested too deeply")
        return value

    def _raw(
        self, data: bytes, subject: Subject | None, kind: SchemaType | None, *, local: bool = False
    ) -> DecodedValue | None:
        """Decode a value without a frame by the schema of its topic; None if there is none.

        kind: None for any. local: only look where that costs nothing.
        """
        form = FORMATS[kind] if kind else "schema"
        try:
            usable = None if subject is None else self._of_subject(subject, local=local)
        except UnusableSchema as error:
            return DecodedValue(form, None, str(error))
        if usable is None:
            return None
        schema, codec = usable
        if kind is not None and schema.type is not kind:
            return DecodedValue(form, None, f"{schema.name} is {FORMATS[schema.type]}")
        return self._with(codec, None, data, 0, schema)

    def _of_subject(self, subject: Subject, *, local: bool = False) -> tuple[Schema, Codec] | None:
        def find(source: SchemaSource) -> Schema | None:
            return source.by_subject(subject) if source.is_local or not local else None

        return self._schema((subject, local), find)

    def _schema(
        self, cache_key: Hashable, find: Callable[[SchemaSource], Schema | None]
    ) -> tuple[Schema, Codec] | None:
        """Find and compile a schema, once; failures that may pass are not kept."""
        if cache_key in self._compiled:
            cached = self._compiled[cache_key]
            self._compiled.move_to_end(cache_key)
            if isinstance(cached, UnusableSchema):
                raise cached
            return cached
        compiled: tuple[Schema, Codec] | UnusableSchema | None
        try:
            schema = next(filter(None, map(find, self._sources)), None)
            compiled = None if schema is None else (schema, _codec(schema, self._bounds))
        except UnusableSchema as error:
            if error.transient:
                raise
            compiled = error
        self._compiled[cache_key] = compiled
        if len(self._compiled) > self._bounds.schemas:
            self._compiled.popitem(last=False)
        if isinstance(compiled, UnusableSchema):
            raise compiled
        return compiled

    # -- encoding

    @property
    def can_encode(self) -> bool:
        """Whether values can be encoded in this format."""
        return self.format in TYPES or self.format.value in ENCODERS

    def encode_text(self, text: bytes, subject: Subject) -> bytes:
        """Encode JSON; in formats of text, the text itself.

        Raises InvalidRecordValue and UnusableSchema.
        """
        value = decode_string(text) if self.format in TEXTS else decode_json(text)
        return self.encode(value, subject)

    def encode(self, value: object, subject: Subject) -> bytes:
        """Encode a value in its JSON form, framed if its schema has an id.

        Raises InvalidRecordValue and UnusableSchema.
        """
        kind = TYPES.get(self.format)
        if kind is None:
            encode = ENCODERS.get(self.format.value)
            if encode is None:
                raise InvalidRecordValue(f"values are not encoded as {self.format.value}")
            return encode(value)
        usable = self._of_subject(subject)
        if usable is None:
            raise UnusableSchema("no schema", subject.name)
        schema, codec = usable
        if schema.type is not kind:
            raise UnusableSchema(f"is {FORMATS[schema.type]}", schema.name)
        body = codec.encode(value)
        if isinstance(schema.key, ApicurioId):
            raise UnusableSchema("its id is not one that Confluent's framing has", schema.name)
        if not isinstance(schema.key, int):
            return body
        indexes = FIRST_MESSAGE if isinstance(codec, ProtobufCodec) else None
        return frame_bytes(schema.key, indexes) + body


def _plain(form: str, data: bytes) -> DecodedValue:
    try:
        value = DECODERS[form](data)
        if json_depth(value) > DEFAULT_BOUNDS.depth:
            raise InvalidRecordValue("nested too deeply")
    except InvalidRecordValue as error:
        return DecodedValue(form, None, str(error))
    return DecodedValue(form, value)


def _codec(schema: Schema, bounds: Bounds) -> Codec:
    if len(schema.text) > bounds.schema_bytes:
        raise UnusableSchema(f"more than {bounds.schema_bytes} characters", schema.name)
    if schema.type is SchemaType.AVRO:
        return AvroCodec(schema, bounds)
    if schema.type is SchemaType.PROTOBUF:
        return ProtobufCodec(schema, bounds)
    return JsonSchemaCodec(schema)
