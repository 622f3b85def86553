"""Exports everything that generated modules import."""

from .failure import decode_failure, not_in_version, null_not_allowed, unsupported
from .limits import DEFAULT_LIMITS, Limits
from .reader import Reader
from .structure import (
    EMPTY,
    ZERO_UUID,
    Deviations,
    FieldRow,
    LinkedMessage,
    Message,
    Structure,
    field_rows,
)
from .writer import Tags, Writer, add_tag

__all__ = [
    "DEFAULT_LIMITS",
    "EMPTY",
    "ZERO_UUID",
    "Deviations",
    "FieldRow",
    "Limits",
    "LinkedMessage",
    "Message",
    "Reader",
    "Structure",
    "Tags",
    "Writer",
    "add_tag",
    "decode_failure",
    "field_rows",
    "not_in_version",
    "null_not_allowed",
    "unsupported",
]
