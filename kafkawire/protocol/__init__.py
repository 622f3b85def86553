"""Frames, headers, error codes, the JSON form and embedded payloads of messages."""

from ..messages.api_key import ApiKey
from .codec import decode
from .embedded import add_payloads, embedded_payloads, walk_payloads
from .error_code import ErrorCode
from .frame import Frame, decode_frame, decode_request_body, decode_response_body, encode_frame
from .header import (
    decode_request_header,
    decode_response_header,
    request_header_version,
    response_header_version,
)
from .json_form import from_json, to_json
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
    "encode_versioned",
    "from_json",
    "request_header_version",
    "response_header_version",
    "to_json",
    "walk_payloads",
]
