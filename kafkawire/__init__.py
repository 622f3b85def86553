"""The Kafka wire protocol: every message, every version, from schemas.

Importing this package is cheap; a name's module is imported when the name is first used.

    kafkawire.decode("FetchRequest", 12, body)      -> a message object
    message.encode(12)                              -> bytes
    kafkawire.decode_frame(data)                    -> size, header and body of a request
    kafkawire.to_json(message, 12)                  -> Kafka's own JSON form
    kafkawire.verify("FetchRequest", 12, body)      -> whether the bytes are canonical; if not, why
    kafkawire.open_capture("trace*.pcap")           -> tables, SQL, messages of captures
    kafkawire.open_topic("orders", bootstrap=...)   -> records of a topic as tables, SQL
    kafkawire.Registry("mine.messages")             -> the same for a generated package
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .errors import (
    DecodeError,
    EncodeError,
    KafkaWireError,
    UnknownApiKey,
    UnsupportedVersion,
    WireError,
)
from .primitives import failure as _failure
from .primitives.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from .messages import REGISTRY
    from .messages.api_key import ApiKey
    from .net.topic import open_topic
    from .notebook import open_capture
    from .primitives.structure import Deviations, Message, Structure
    from .protocol.embedded import embedded_payloads
    from .protocol.error_code import ErrorCode
    from .protocol.frame import Frame, decode_frame, encode_frame, encode_frame_buffers
    from .protocol.json_form import from_json, to_json
    from .protocol.packages import decode
    from .protocol.payload import Payload
    from .protocol.payload_fields import Embedded
    from .reference import Verdict, explain, verify
    from .registry import Registry

__version__: Final = "0.1.0"

__all__ = [
    "DEFAULT_LIMITS",
    "ApiKey",
    "Deviations",
    "DecodeError",
    "Embedded",
    "EncodeError",
    "ErrorCode",
    "Frame",
    "KafkaWireError",
    "Limits",
    "Message",
    "Payload",
    "REGISTRY",
    "Registry",
    "Structure",
    "UnknownApiKey",
    "UnsupportedVersion",
    "Verdict",
    "WireError",
    "decode",
    "decode_frame",
    "embedded_payloads",
    "encode_frame",
    "encode_frame_buffers",
    "explain",
    "from_json",
    "open_capture",
    "open_topic",
    "to_json",
    "verify",
]

_HOME: Final = {
    "ApiKey": "messages.api_key",
    "Deviations": "primitives.structure",
    "Embedded": "protocol.payload_fields",
    "ErrorCode": "protocol.error_code",
    "Frame": "protocol.frame",
    "Message": "primitives.structure",
    "Payload": "protocol.payload",
    "REGISTRY": "messages",
    "Registry": "registry",
    "Structure": "primitives.structure",
    "Verdict": "reference",
    "decode": "protocol.packages",
    "decode_frame": "protocol.frame",
    "embedded_payloads": "protocol.embedded",
    "encode_frame": "protocol.frame",
    "encode_frame_buffers": "protocol.frame",
    "explain": "reference",
    "from_json": "protocol.json_form",
    "open_capture": "notebook",
    "open_topic": "net.topic",
    "to_json": "protocol.json_form",
    "verify": "reference",
}


def _locate_decode(
    package: str, name: str, data: bytes, version: int, lenient: bool, limits: Limits
) -> DecodeError | None:
    from .protocol.locate import locate_decode

    return locate_decode(package, name, data, version, lenient, limits)


def _locate_encode(
    failure: Exception, package: str, message: Any, version: int, lenient: bool
) -> EncodeError | None:
    from .protocol.locate.locators import locate_encode

    return locate_encode(failure, package, message, version, lenient)


# what finds where a message fails is imported at the first failure
_failure.install(_failure.Locators(_locate_decode, _locate_encode))


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
