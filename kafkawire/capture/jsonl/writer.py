"""Pure Python fallback of `writer.c`, which writes JSON lines directly from frames.

`writer.c` writes a row, or the records of a batch, exactly as `rows` and `records` write the
decoded ones, or declines. This module declines everything, so C is only an optimisation.
"""

from __future__ import annotations

from collections.abc import Callable


class Program:
    """The fields of a struct at a version, in wire order.

    steps: for each field the text before its value, its attribute, its kind, whether it is an
    array, whether it may be null, its role for records or payloads (see `wire_layouts`; -1 for
    none), and the program of a struct.
    """

    def __init__(
        self,
        is_flexible: bool,
        steps: tuple[tuple[bytes, bytes, int, bool, bool, int, Program | None], ...],
    ) -> None:
        self.is_flexible = is_flexible
        self.steps = steps


class Text:
    """A buffer of ASCII text for rows and records.

    value_text, field_text: write keys and values, and `records` fields, that C declines.
    batch_body: returns the records of a batch (see `records`). has_content: whether records are
    written, not only counted. payload_text: writes the payload of a field, if its kind is known:
    its number (see `payload_texts`), the protocol's type and name, the bytes.
    """

    def __init__(
        self,
        value_text: Callable[[bytes], str],
        field_text: Callable[[str, str | None, int | None, bytes], str],
        batch_body: Callable[[bytes, int, int, int, int], tuple[bytes, int, int] | None],  # noqa: ARG002
        has_content: bool,  # noqa: ARG002
        payload_text: Callable[[int, str | None, str | None, bytes], str | None] | None = None,  # noqa: ARG002
    ) -> None:
        self._value_text = value_text
        self._field_text = field_text
        self._parts: list[str] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def row(  # noqa: PLR0913 - as `writer.c` takes them
        self,
        lead: str,  # noqa: ARG002
        packet: int,  # noqa: ARG002
        time_ns: int,  # noqa: ARG002
        ends: str,  # noqa: ARG002
        head: str,  # noqa: ARG002
        correlation_id: int,  # noqa: ARG002
        client_id: str,  # noqa: ARG002
        data: bytes,  # noqa: ARG002
        start: int,  # noqa: ARG002
        position: int,  # noqa: ARG002
        end: int,  # noqa: ARG002
        program: Program,  # noqa: ARG002
        max_elements: int,  # noqa: ARG002
    ) -> bool:
        """Write the row of the frame `data[start:end]`, whose body begins at `position`.

        Returns False, and nothing is written, if it declines.
        """
        return False

    def body(self, data: bytes, position: int, program: Program, max_elements: int) -> bool:  # noqa: ARG002
        """Write only a body; returns what `row` does."""
        return False

    def place(self, path: str, topic: str | None, partition: int | None, data: bytes) -> None:
        """Write a `records` field with its path, topic and partition."""
        self.write(self._field_text(path, topic, partition, data))

    def value(self, data: bytes) -> None:
        """Write a key or a value."""
        self.write(self._value_text(data))

    def write(self, text: str) -> None:
        """Add text."""
        self._parts.append(text)
        self._size += len(text)

    def truncate(self, size: int) -> None:
        """Drop the text behind the first `size` characters."""
        self._parts = ["".join(self._parts)[:size]]
        self._size = size

    def view(self) -> memoryview:
        """Return a view of the text; nothing may be written while it exists."""
        return memoryview("".join(self._parts).encode("ascii"))

    def is_viewed(self) -> bool:
        """Whether there are views, so that nothing may be written: here they are copies."""
        return False
