"""JSON lines straight from frames: what `writer.c` does, where no compiler made it.

Law: `writer.c` writes a row, or the records of a batch, as `rows` and `records` write
them of what was decoded, or leaves them to those. This module leaves them all: so what is written
is said there alone, and C only makes it quick.
"""

from __future__ import annotations

from collections.abc import Callable


class Program:
    """The fields of a struct at a version, in wire order.

    steps: of each field the text before its value, its attribute, its kind, whether it is an array
    of that, what it says of records (see `records`; -1 for nothing), and a struct's program.
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

    value_text, place_text: write keys and values, and fields of records, that are left to them.
    batch_body: finds the records of a batch (see `records`). has_content: whether records are
    written, not only counted.
    """

    def __init__(
        self,
        value_text: Callable[[bytes], str],
        place_text: Callable[[str, str | None, int | None, bytes], str],
        batch_body: Callable[[bytes, int, int, int, int], tuple[bytes, int, int] | None],  # noqa: ARG002
        has_content: bool,  # noqa: ARG002
    ) -> None:
        self._value_text = value_text
        self._place_text = place_text
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
    ) -> bool:
        """Write the row of a frame whose body begins at `at`; False where it is left to others, and
        then nothing is written.
        """
        return False

    def body(self, data: bytes, at: int, program: Program, max_elements: int) -> bool:  # noqa: ARG002
        """Write a body alone; returns what `row` does."""
        return False

    def allow(self) -> bool:
        """Let the nulls pass at which the last row was left to others, since the decoder took them;
        whether there were any.
        """
        return False

    def place(self, path: str, topic: str | None, partition: int | None, data: bytes) -> None:
        """Write a field of records: where it is, whose, and what it holds."""
        self.write(self._place_text(path, topic, partition, data))

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

    def view(self) -> memoryview:
        """Show what was written; while somebody looks, no more may be written."""
        return memoryview("".join(self._parts).encode("ascii"))
