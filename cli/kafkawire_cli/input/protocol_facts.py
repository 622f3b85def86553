"""Collects what the generator does not know of a protocol: error codes and explained examples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kafkawire.reference.rendering import Row
    from kafkawire_codegen.files import Sources
    from kafkawire_codegen.model import Message
    from kafkawire_codegen.targets.supplied import ErrorCode, ExampleRow, Examples, Supplied

KAFKAS_OWN: Final = "ApiVersionsRequest.json"
"""A source with this schema describes Kafka's protocol, whose error codes we know."""


def protocol_facts(schemas: Sources) -> Supplied:
    """Return the error codes of a protocol, if it is Kafka's, and how to make its examples."""
    from kafkawire_codegen.files import as_sources, read
    from kafkawire_codegen.targets.supplied import Supplied

    files = (file.file for source in as_sources(schemas) for file in read(source).schemas)
    kafka = any(Path(file.rpartition("!")[2]).name == KAFKAS_OWN for file in files)
    return Supplied(_errors() if kafka else (), _examples(kafka))


def _errors() -> tuple[ErrorCode, ...]:
    from kafkawire.protocol.error_code import ErrorCode as Code
    from kafkawire.reference.error_meaning import MEANINGS
    from kafkawire_codegen.targets.supplied import ErrorCode

    return tuple(
        ErrorCode(int(code), code.name, code.retriable, code.invalid_metadata, MEANINGS[code])
        for code in sorted(Code)
    )


def _examples(kafka: bool) -> Examples:
    """Explain examples; numbers in fields for error codes get the names of Kafka's."""
    from kafkawire.reference.samples import example
    from kafkawire_codegen.targets.supplied import ExampleRow

    def explained(message: Message, version: int) -> Sequence[ExampleRow]:
        return [
            ExampleRow(
                row.offset, row.raw.hex(" "), row.depth, row.field, row.type, _value(row, kafka)
            )
            for row in example(message, version)
        ]

    return explained


def _value(row: Row, kafka: bool) -> str:
    """Return the value of a row, without the name of Kafka's error code if it is not Kafka's."""
    names_error = row.type == "int16" and row.field.endswith("error_code")
    return row.value.partition(" ")[0] if names_error and not kafka else row.value
