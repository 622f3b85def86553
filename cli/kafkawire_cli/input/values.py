"""Options of verbs that decode keys and values of records: formats, and where schemas are.

Credentials of a registry are never arguments, and never appear in a message:

    KAFKAWIRE_REGISTRY_URL    as --registry-url
    KAFKAWIRE_REGISTRY_USER   USER:PASSWORD, for HTTP basic authentication
    KAFKAWIRE_REGISTRY_TOKEN  for bearer authentication
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

import typer

from kafkawire.display import did_you_mean, printable

from ..notes import print_note
from .inputs import MissingOption
from .profiles import variable

if TYPE_CHECKING:
    from kafkawire.values import SchemaSource, Subject, ValueDecoder, ValueFormat
    from kafkawire.values.record_values import CountedValues, RecordValues

VALUES: Final = "--values"
KEYS: Final = "--keys"
SCHEMAS: Final = "--value-schemas"
URL: Final = "--registry-url"
TOPIC: Final = "--topic"
FORMATS: Final = "auto|avro|protobuf|json|json-schema|msgpack|string|int64|..."
"""As help shows them; `kafkawire.values.ValueFormat` has all."""

ValuesOption = Annotated[
    str | None,
    typer.Option(VALUES, metavar=FORMATS, help="Decode values of records; auto: by what each is."),
]
KeysOption = Annotated[
    str | None, typer.Option(KEYS, metavar="FORMAT", help="Decode keys of records.")
]
SchemasOption = Annotated[
    Path | None,
    typer.Option(
        SCHEMAS,
        metavar="DIR",
        help="Directory of schemas: .avsc, .proto and .json files named by subject, topic or id.",
    ),
]
UrlOption = Annotated[
    str | None,
    typer.Option(
        URL,
        metavar="URL",
        help="Schema registry, http://HOST:PORT [default: KAFKAWIRE_REGISTRY_URL].",
        show_default=False,
    ),
]


class ValueOptions(NamedTuple):
    """How values and keys are decoded."""

    values: ValuesOption = None
    keys: KeysOption = None
    schemas: SchemasOption = None
    url: UrlOption = None

    @property
    def first(self) -> str | None:
        """The first of these options that is set, for messages."""
        options = (VALUES, KEYS, SCHEMAS, URL)
        return next((name for name, value in zip(options, self, strict=True) if value), None)


NO_VALUES: Final = ValueOptions()

EncodeValuesOption = Annotated[
    str | None,
    typer.Option(
        VALUES,
        metavar="avro|protobuf|json|json-schema|msgpack|string|int64|...",
        help="Encode values, which are JSON; by the newest schema of the topic.",
    ),
]
EncodeKeysOption = Annotated[
    str | None, typer.Option(KEYS, metavar="FORMAT", help="Encode keys, which are JSON.")
]


class EncodingOptions(NamedTuple):
    """How values and keys are encoded."""

    values: EncodeValuesOption = None
    keys: EncodeKeysOption = None
    schemas: SchemasOption = None
    url: UrlOption = None


NO_ENCODING: Final = EncodingOptions()


TopicOption = Annotated[
    list[str] | None,
    typer.Option(TOPIC, metavar="NAME", help="With --values: a table of this topic; repeatable."),
]


class TopicOptions(NamedTuple):
    """Topics whose values are decoded into tables."""

    topics: TopicOption = None
    values: ValuesOption = None
    schemas: SchemasOption = None
    url: UrlOption = None


NO_TOPICS: Final = TopicOptions()


def topic_decoder(options: TopicOptions) -> ValueDecoder | None:
    """Make the decoder that options describe; None without any. Usage errors."""
    decoders = record_values(ValueOptions(options.values, None, options.schemas, options.url))
    if decoders is None:
        if options.topics:
            raise MissingOption(f"required by {TOPIC}", param_hint=VALUES)
        return None
    if not options.topics:
        raise MissingOption(f"required by {VALUES}", param_hint=TOPIC)
    return decoders.values


class RecordEncoders(NamedTuple):
    """Encode the keys and values of a topic's records; None leaves them as they are."""

    topic: str
    values: ValueDecoder | None
    keys: ValueDecoder | None

    def record(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Encode a key and a value; InvalidRecordValue and UnusableSchema say which."""
        from kafkawire.values import Subject

        return (
            _encoded(self.keys, Subject(self.topic, True), key),
            _encoded(self.values, Subject(self.topic), value),
        )


def _encoded(encoder: ValueDecoder | None, subject: Subject, text: bytes | None) -> bytes | None:
    return text if encoder is None or text is None else encoder.encode_text(text, subject)


def record_encoders(options: EncodingOptions, topic: str) -> RecordEncoders | None:
    """Make the encoders that options describe; None without any. Usage errors."""
    encoders = record_values(ValueOptions(*options))
    if encoders is None:
        return None
    for option, encoder in ((VALUES, encoders.values), (KEYS, encoders.keys)):
        if encoder is not None and not encoder.can_encode:
            reason = f"records are not encoded as {encoder.format}"
            raise typer.BadParameter(reason, param_hint=option)
    return RecordEncoders(topic, encoders.values, encoders.keys)


def record_values(options: ValueOptions) -> RecordValues | None:
    """Make the decoders that options describe; None without any. Usage errors."""
    if options.values is None and options.keys is None:
        if options.first is not None:
            raise MissingOption(f"required by {options.first}", param_hint=f"{VALUES}, {KEYS}")
        return None
    from kafkawire.values import ValueDecoder
    from kafkawire.values.record_values import RecordValues

    schema_sources = sources(options)
    decoders = [
        None if text is None else ValueDecoder(format_of(text, option), schema_sources)
        for text, option in ((options.values, VALUES), (options.keys, KEYS))
    ]
    return RecordValues(*decoders)


def counted_values(options: ValueOptions) -> CountedValues | None:
    """Make decoders that count what they do not decode, for `check_decoded`."""
    values = record_values(options)
    if values is None:
        return None
    from kafkawire.values.record_values import CountedValues

    return CountedValues(*values)


def check_decoded(values: CountedValues | None) -> None:
    """Say how many keys and values were not decoded, and exit with 1, if there are any."""
    if not all_decoded(values):
        raise typer.Exit(1)


def all_decoded(values: CountedValues | None) -> bool:
    """Say how many keys and values were not decoded; return whether all were."""
    notes = [] if values is None else values.notes
    for note in notes:
        print_note(note)
    return not notes


def shown_values(
    options: ValueOptions, records: bool, redact: bool, *, in_table: bool
) -> CountedValues | None:
    """Return what decodes keys and values beside records; usage errors.

    records: whether records are shown. redact: whether their keys and values are hidden. in_table:
    whether a table of messages is required, which shows no records.
    """
    if options.first is not None and in_table:
        reason = "not allowed with --format table, which shows no records"
        raise typer.BadParameter(reason, param_hint=options.first)
    if options.first is not None and redact:
        raise typer.BadParameter("not allowed with --redact", param_hint=options.first)
    if options.first is not None and not records:
        raise MissingOption(f"required by {options.first}", param_hint="--records")
    return counted_values(options)


def format_of(text: str, option: str) -> ValueFormat:
    """Parse a format; a usage error for an unknown one."""
    from kafkawire.values import ValueFormat

    try:
        return ValueFormat(text)
    except ValueError:
        names = [each.value for each in ValueFormat]
        hint = did_you_mean(text, names) or f"; expected one of {', '.join(names)}"
        raise typer.BadParameter(f"unknown format {text!r}{hint}", param_hint=option) from None


def sources(options: ValueOptions) -> list[SchemaSource]:
    """Open the directory and the registry that options name; usage errors."""
    schema_sources: list[SchemaSource] = []
    if options.schemas is not None:
        schema_sources.append(_directory(options.schemas))
    url, user, token = (os.environ.get(variable(f"registry.{n}")) for n in ("url", "user", "token"))
    if options.url or url:
        schema_sources.append(_registry(options.url or url or "", user, token))
    return schema_sources


def _directory(path: Path) -> SchemaSource:
    from kafkawire.errors import UnusableSchema
    from kafkawire.values import DirectorySchemas

    try:
        return DirectorySchemas(path)
    except UnusableSchema as error:
        raise typer.BadParameter(printable(str(error)), param_hint=SCHEMAS) from None
    except OSError as error:
        reason = f"{path}: {error.strerror}"
        raise typer.BadParameter(printable(reason), param_hint=SCHEMAS) from None


def _registry(url: str, user: str | None, token: str | None) -> SchemaSource:
    from kafkawire.net.schema_registry import RegistryAddress, RegistryHttp
    from kafkawire.values import registry_schemas

    try:
        address = RegistryAddress(url, user, token)
    except ValueError:  # whose text may have the password
        reason = "invalid URL: expected http://HOST:PORT or https://HOST:PORT"
        raise typer.BadParameter(reason, param_hint=URL) from None
    return registry_schemas(address.path, RegistryHttp(address), time.monotonic)
