"""From packets to Kafka messages: captures, TCP reassembly, conversations.

Law: a capture never makes it fail, nothing is invented, nothing disappears.

    decode_capture(path)  -> located rows: one a message, one a run of bytes that is none
    decode_frames(data)   -> rows of size-delimited frames without packets around them
    read_capture(path)    -> packet blocks, for whoever wants packets only
"""

from .engine import Engine, Located, decode_capture
from .files.source import read_capture
from .frames.bare import decode_body, decode_frames
from .rows import Row, Status

__all__ = [
    "Engine",
    "Located",
    "Row",
    "Status",
    "decode_body",
    "decode_capture",
    "decode_frames",
    "read_capture",
]
