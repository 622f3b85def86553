"""JSON lines straight from frames: what `quick_text.c` does, where no compiler made it.

Law: `quick_text.c` writes a row, or the records of a batch, as `row_text` and `record_text` write
them of what was decoded, or leaves them to those. This module leaves them all: so what is written
is said there alone, and C only makes it quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Program:
    """The fields of a struct at a version, in wire order.

    steps: of each field the text before its value, its attribute, its kind, whether it is an array
    of that, what it says of records (see `record_text`; -1 for nothing), and a struct's program.
    """

    def __init__(
        self,
        is_flexible: bool,
        steps: tuple[tuple[bytes, bytes, int, bool, int, Program | None], ...],
    ) -> None:
        self.is_flexible = is_flexible
        self.steps = steps


class Text:
    """A buffer of ASCII that rows, records and texts are added to.

    value_text: writes the keys and values that are left to it.
    """

    def __init__(self, value_text: Callable[[bytes], str]) -> None:
        self._value_text = value_text
        self._parts: list[str] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def row(
        self,
        start: str,  # noqa: ARG002
        packet: int,  # noqa: ARG002
        time_ns: int,  # noqa: ARG002
        ends: str,  # noqa: ARG002
        head: str,  # noqa: ARG002
        correlation_id: int,  # noqa: ARG002
        client_id: str,  # noqa: ARG002
        frame: bytes,  # noqa: ARG002
        at: int,  # noqa: ARG002
        program: Program,  # noqa: ARG002
        max_elements: int,  # noqa: ARG002
    ) -> Any:
        """Write the row of a frame whose body begins at `at`; False where it is left to others,
        None if it is done, and for one with records (path, topic, partition, data) of each field
        that holds them: then the row ends behind its body.
        """
        return False

    def body(self, data: bytes, at: int, program: Program, max_elements: int) -> Any:  # noqa: ARG002
        """Write a body alone; returns what `row` does."""
        return False

    def allow(self) -> bool:
        """Let the nulls pass at which the last row was left to others, since the decoder took them;
        whether there were any.
        """
        return False

    def records(
        self,
        data: bytes,  # noqa: ARG002
        start: int,  # noqa: ARG002
        end: int,  # noqa: ARG002
        count: int,  # noqa: ARG002
        base_offset: int,  # noqa: ARG002
        base_timestamp: int,  # noqa: ARG002
        append_timestamp: int | None,  # noqa: ARG002
        control: bool,  # noqa: ARG002
        first: bool,  # noqa: ARG002
    ) -> bool:
        """Write the records of a batch of magic 2 in `data[start:end]`, a comma before each but the
        first; False where they are left to others, and then nothing is written.
        """
        return False

    def value(self, data: bytes) -> None:
        """Write a key or a value."""
        self.write(self._value_text(data))

    def write(self, text: str) -> None:
        """Add text."""
        self._parts.append(text)
        self._size += len(text)

    def truncate(self, size: int) -> None:
        """Forget what is behind the first `size` characters."""
        self._parts = ["".join(self._parts)[:size]]
        self._size = size

    def take(self) -> str:
        """Give all that was written since the last time."""
        text = "".join(self._parts)
        self._parts = []
        self._size = 0
        return text
