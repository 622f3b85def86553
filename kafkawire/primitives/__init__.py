"""Reads and writes wire types; the base of every generated message. Knows no message.

Reader, Writer      a cursor over one body, a growing body
Structure, Message  base classes of generated code: comparison, repr, copies, pickles
Limits              limits on a decoder's memory
MessageIndex        names and API keys -> classes, imported on demand
"""

from .index import MessageIndex, MessageInfo
from .limits import DEFAULT_LIMITS, Limits
from .reader import Reader
from .structure import ZERO_UUID, Deviations, FieldRow, Message, Structure
from .writer import Tags, Writer

__all__ = [
    "DEFAULT_LIMITS",
    "ZERO_UUID",
    "Deviations",
    "FieldRow",
    "Limits",
    "Message",
    "MessageIndex",
    "MessageInfo",
    "Reader",
    "Structure",
    "Tags",
    "Writer",
]
