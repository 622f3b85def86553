"""Wire types <-> values, and the ground every generated message stands on; knows no message.

Reader, Writer      a cursor over one body, a growing body
Structure, Message  what generated classes inherit: comparison, repr, copies, pickles
Limits              how much a decoder may be made to allocate
Registry            names and API keys -> classes, imported when first asked for
"""

from .limits import DEFAULT_LIMITS, Limits
from .reader import Reader
from .registry import MessageInfo, Registry
from .structure import ZERO_UUID, Bent, FieldRow, Message, Structure, Tags
from .writer import Writer

__all__ = [
    "DEFAULT_LIMITS",
    "ZERO_UUID",
    "Bent",
    "FieldRow",
    "Limits",
    "Message",
    "MessageInfo",
    "Reader",
    "Registry",
    "Structure",
    "Tags",
    "Writer",
]
