"""A generated package with all of the API: that of others as Kafka's own.

Each method does what the function of the same name in `kafkawire` does for Kafka's messages.

    registry = Registry("chat.messages")
    registry.decode("SendRequest", 1, body)         -> a message object
    registry.decode_frame(data)                     -> size, header and body, by the package's rules
    registry.explain("SendRequest", 1, body)        -> a row for every byte
    decode_capture("trace.pcap", registry=registry) -> the messages of a capture
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from .errors import UnknownApiKey
from .primitives import DEFAULT_LIMITS, Limits, Message, MessageInfo, Tags
from .protocol.embedded import add_payloads, embedded_payloads
from .protocol.frame import Frame, decode_frame, encode_frame, encode_frame_buffers
from .protocol.json_form import Json, from_json, to_json
from .protocol.packages import Package, decode, package_named
from .protocol.payload import Payload
from .protocol.payload_fields import (
    Embedded,
    PayloadFields,
    declared_payload_fields,
    payload_fields_in,
)

if TYPE_CHECKING:
    from .reference import Explanation, Verdict

__all__ = ["Registry"]


class Registry:
    """The messages of a generated package, and what can be done with them.

    package: the package, or its import name. payloads: the bytes fields that hold messages, as
    `{"PutRequest.entries.value": Embedded("Document")}`, in addition to those that the package
    itself declares in its module `payloads`.

    Raises ModuleNotFoundError, and ValueError for a package that kafkawire did not generate, or
    whose headers or payloads cannot be used.
    """

    def __init__(
        self, package: str | ModuleType, *, payloads: Mapping[str, Embedded] | None = None
    ) -> None:
        name = package if isinstance(package, str) else package.__name__
        self.package = _imported(name)
        self._payloads = dict(payloads or {})
        self._payload_fields: PayloadFields = {
            **payload_fields_in(self.package),
            **declared_payload_fields(self.package, self._payloads),
        }

    @property
    def name(self) -> str:
        """The import name of the package."""
        return self.package.name

    # -- the messages

    def __iter__(self) -> Iterator[MessageInfo]:
        return iter(self.package.index)

    def __len__(self) -> int:
        return len(self.package.index)

    def __contains__(self, name: object) -> bool:
        return name in self.package.index

    def get(self, name: str) -> MessageInfo:
        """Find a message by its exact name; UnknownApiKey if there is none."""
        return self.package.index.get(name)

    def load(self, name: str) -> Any:
        """Import the class of a message; UnknownApiKey if there is none."""
        return self.package.index.load(name)

    # -- messages

    def decode(
        self,
        name: str,
        version: int,
        data: bytes,
        *,
        lenient: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Message:
        """Decode a message body; see `kafkawire.decode`."""
        return decode(name, version, data, lenient=lenient, limits=limits, package=self.package)

    def encode(self, message: Message, version: int, *, lenient: bool = False) -> bytes:
        """Encode a message; the same as its method `encode`, for messages of this package alone."""
        return self._own(message).encode(version, lenient=lenient)

    def to_json(self, message: Message, version: int, *, embedded: bool = False) -> dict[str, Json]:
        """Make the JSON object of a message; see `kafkawire.to_json`.

        embedded: whether to add what bytes fields hold, decoded, as `<field>Decoded`.
        """
        obj = to_json(self._own(message), version)
        if embedded:
            add_payloads(obj, message, version, payload_fields=self._payload_fields)
        return obj

    def from_json(self, name: str, version: int, obj: Json) -> Message:
        """Build a message from its JSON object; see `kafkawire.from_json`."""
        return from_json(name, version, obj, package=self.package)

    def embedded_payloads(
        self, message: Message, version: int, *, limits: Limits = DEFAULT_LIMITS
    ) -> list[Payload]:
        """Decode the payloads in the bytes fields of a message; see `kafkawire`'s."""
        own = self._own(message)
        return embedded_payloads(own, version, limits=limits, payload_fields=self._payload_fields)

    # -- frames

    def decode_frame(
        self,
        data: bytes,
        *,
        response_to: tuple[int, int] | None = None,
        lenient: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Frame:
        """Decode one frame, size included; see `kafkawire.decode_frame`."""
        return decode_frame(
            data, response_to=response_to, lenient=lenient, limits=limits, package=self.package
        )

    def encode_frame(
        self,
        message: Message,
        version: int,
        correlation_id: int,
        *,
        client_id: str | None = None,
        header_tags: Tags = None,
        lenient: bool = False,
        header: Mapping[str, object] | None = None,
    ) -> bytes:
        """Encode a request or response with its size and header; see `kafkawire.encode_frame`.

        header: fields that a header of the package's own has beside Kafka's.
        """
        return encode_frame(
            self._own(message),
            version,
            correlation_id,
            client_id=client_id,
            header_tags=header_tags,
            lenient=lenient,
            package=self.package,
            header=header,
        )

    def encode_frame_buffers(
        self,
        message: Message,
        version: int,
        correlation_id: int,
        *,
        client_id: str | None = None,
        header_tags: Tags = None,
        lenient: bool = False,
        header: Mapping[str, object] | None = None,
    ) -> list[bytes]:
        """Encode a frame in pieces; arguments as `encode_frame`."""
        return encode_frame_buffers(
            self._own(message),
            version,
            correlation_id,
            client_id=client_id,
            header_tags=header_tags,
            lenient=lenient,
            package=self.package,
            header=header,
        )

    # -- what the bytes mean

    def explain(self, name: str, version: int, data: bytes, *, secrets: bool = True) -> Explanation:
        """Explain a message body; see `kafkawire.explain`."""
        from .reference import explain

        return explain(name, version, data, secrets=secrets, package=self.package)

    def explain_frame(
        self,
        data: bytes,
        response_to: tuple[int, int] | None = None,
        *,
        secrets: bool = True,
    ) -> Explanation:
        """Explain a frame; response_to: for a response, the API key and version of its request."""
        from .reference import explain_frame

        return explain_frame(data, response_to, secrets=secrets, package=self.package)

    def verify(self, name: str, version: int, data: bytes) -> Verdict:
        """Return whether a message body is canonical; see `kafkawire.verify`."""
        from .reference import verify

        return verify(name, version, data, package=self.package)

    def _own(self, message: Message) -> Message:
        """Check that a message is of the package."""
        cls = type(message)
        name = cls.__name__
        if name not in self or self.load(name) is not cls:
            raise UnknownApiKey(f"{name} of {cls.__module__} is not a message of {self.name}")
        return message

    def __repr__(self) -> str:
        return f"Registry({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _registry, (self.name, self._payloads)


def _imported(name: str) -> Package:
    """Import a generated package. ModuleNotFoundError says where it was looked for."""
    try:
        return package_named(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not f"{name}.".startswith(f"{missing}."):  # of what it imports
            raise
        reason = f"no module named {missing!r} in the directories of sys.path (PYTHONPATH)"
        raise ModuleNotFoundError(f"package {name!r}: {reason}", name=missing) from None


def _registry(name: str, payloads: Mapping[str, Embedded]) -> Registry:
    return Registry(name, payloads=payloads)
