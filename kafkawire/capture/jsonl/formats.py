"""What rows have in common: by message class, by API and version.

message class, version ----------> Form: how decoded bodies are written
API, version, direction ---------> Head: the text before the ids, and the program of bodies
"""

from __future__ import annotations

from json.encoder import encode_basestring_ascii
from typing import Any, TypeAlias, final

from ...primitives.structure import Message, Structure
from ...protocol.fields import Field, Step, steps_to
from ...protocol.json_text import Template, template
from ...protocol.packages import package_of
from ...protocol.payload_fields import payload_fields_of
from ...protocol.secrets import may_hold_secret, placeholder
from ..frames.apis import KAFKA_APIS, Apis
from ..rows import Row
from .records_fields import plan
from .wire_layouts import is_error_code, program_of
from .writer import Program

ErrorSteps: TypeAlias = tuple[Step[bool], ...]
"""The way to the error codes in a message; () if it has none."""


def _error_code(_: type[Structure], field: Field) -> bool | None:
    return True if is_error_code(field) else None


@final
class Form:
    """How a message class is written at a version, and what it may contain."""

    def __init__(self, message: Message, version: int, secrets: bool, doubtful: bool) -> None:
        cls: Any = type(message)  # mypy does not see that it is hashable
        self.template: Template = template(cls, version, secrets, doubtful)
        self.carries: bool = len(plan(cls, version)) > 0
        self.embeds: bool = bool(payload_fields_of(cls))
        self.errors: ErrorSteps = ()
        package = package_of(cls)
        if package is not None and package.is_kafka:
            self.errors = steps_to(cls, version, _error_code)


@final
class Head:
    """What the rows of an API's requests or responses at a version have in common.

    program: of their bodies; None if bodies have to be decoded. tagged: whether the header ends in
    tagged fields; plain_if_zero: an ApiVersions response with an error may be of another version.
    """

    def __init__(self, key: int, version: int, is_request: bool, apis: Apis, secrets: bool) -> None:
        api = apis.api(key)
        side = api.request if is_request else api.response
        direction = "request" if is_request else "response"
        name = "null" if api.name is None else encode_basestring_ascii(api.name)
        self.program: Program | None = None
        self.tagged: bool = False
        self.plain_if_zero: bool = not is_request and key == apis.api_versions
        self.text: str = (
            f',"direction":"{direction}","api_key":{key},"api_name":{name},'
            f'"api_version":{version},"correlation_id":'
        )
        if side is None or not side.first <= version <= side.last:
            return
        cls = side.load()
        flexible = side.info.flexible is not None and version >= side.info.flexible
        # the program names Kafka's error codes, and knows Kafka's headers
        if apis.is_kafka:
            self.program = program_of(cls, version, flexible, secrets)
            self.tagged = not is_request and version >= api.tagged_response


def raw_text(row: Row, secrets: bool, redact: bool) -> str:
    """Write an undecoded body in hex; redacted if it may hold secrets."""
    raw = row.raw
    if raw and (redact or (not secrets and raw_is_secret(row))):
        return placeholder(len(raw), "byte")
    return raw.hex()


def raw_is_secret(row: Row) -> bool:
    """Whether the undecoded bytes of a row may hold a secret; of other packages', any may."""
    key, version = row.api_key, row.api_version
    if key is None or version is None:
        return True
    api = KAFKA_APIS.api(key)
    if api.name != row.api_name:
        return True
    side = api.request if row.direction == "request" else api.response
    is_known = side is not None and side.first <= version <= side.last
    return may_hold_secret(api.name, is_known, row.raw)
