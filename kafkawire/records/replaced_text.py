"""Text of records that is not UTF-8.

Not compiled: native classes cannot inherit from `str`.
"""

from __future__ import annotations

from typing import Any, final


@final
class ReplacedText(str):
    """Text with U+FFFD in place of bytes that are not UTF-8, as Java decodes it.

    raw: the bytes, which are written when the text is encoded.
    """

    __slots__ = ("raw",)
    raw: bytes

    def __new__(cls, raw: bytes) -> ReplacedText:
        text = super().__new__(cls, raw, "utf-8", "replace")
        text.raw = raw
        return text

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ReplacedText):
            return self.raw == other.raw
        return str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__

    def __repr__(self) -> str:
        return f"ReplacedText({self.raw!r})"

    def __reduce__(self) -> tuple[type[ReplacedText], tuple[bytes]]:
        return ReplacedText, (self.raw,)


def text_bytes(text: str) -> bytes:
    """Encode text; what was replaced in it becomes its bytes again."""
    return text.raw if isinstance(text, ReplacedText) else text.encode("utf-8")


def replaced_bytes(text: str) -> bytes | None:
    """Return the bytes of text that is not UTF-8; None for other text."""
    return text.raw if isinstance(text, ReplacedText) else None


def header_row(key: str, value: bytes | None) -> dict[str, Any]:
    """Return a header as a value of Arrow's `headers` columns."""
    return {"key": str(key), "value": value, "key_bytes": replaced_bytes(key)}
