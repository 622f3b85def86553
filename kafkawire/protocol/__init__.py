"""Frames, headers, error codes, the JSON form and embedded payloads of messages.

Importing this package is cheap; a name's module is imported when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..messages.api_key import ApiKey
    from .embedded import add_payloads, embedded_payloads, walk_payloads
    from .error_code import ErrorCode
    from .frame import (
        Frame,
        decode_frame,
        decode_request_body,
        decode_response_body,
        encode_frame,
        encode_frame_buffers,
    )
    from .header import (
        decode_request_header,
        decode_response_header,
        request_header_version,
        response_header_version,
    )
    from .json_form import from_json, to_json
    from .packages import decode
    from .payload import Payload
    from .versioned import decode_versioned, encode_versioned

__all__ = [
    "ApiKey",
    "ErrorCode",
    "Frame",
    "Payload",
    "add_payloads",
    "decode",
    "decode_frame",
    "decode_request_body",
    "decode_request_header",
    "decode_response_body",
    "decode_response_header",
    "decode_versioned",
    "embedded_payloads",
    "encode_frame",
    "encode_frame_buffers",
    "encode_versioned",
    "from_json",
    "request_header_version",
    "response_header_version",
    "to_json",
    "walk_payloads",
]

_HOME: Final = {
    "ApiKey": "..messages.api_key",
    "ErrorCode": ".error_code",
    "Frame": ".frame",
    "Payload": ".payload",
    "add_payloads": ".embedded",
    "decode": ".packages",
    "decode_frame": ".frame",
    "decode_request_body": ".frame",
    "decode_request_header": ".header",
    "decode_response_body": ".frame",
    "decode_response_header": ".header",
    "decode_versioned": ".versioned",
    "embedded_payloads": ".embedded",
    "encode_frame": ".frame",
    "encode_frame_buffers": ".frame",
    "encode_versioned": ".versioned",
    "from_json": ".json_form",
    "request_header_version": ".header",
    "response_header_version": ".header",
    "to_json": ".json_form",
    "walk_payloads": ".embedded",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
