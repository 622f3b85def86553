"""Decodes captures: from packets through TCP reassembly and conversations to Kafka messages.

No capture makes it fail, nothing is invented, nothing is lost.

    decode_capture(path)  -> located rows: one per message, one per run of other bytes
    decode_frames(data)   -> rows of bare, size-delimited frames
    read_capture(path)    -> packet blocks
"""

from .engine import Engine
from .files.source import read_capture
from .frames.bare import decode_body, decode_frames
from .rows import Located, Row, Status
from .selection.reading import decode_capture

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
