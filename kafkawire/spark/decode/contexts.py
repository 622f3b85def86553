"""What the contexts of tasks have in common: bodies that no table needs are left out."""

from __future__ import annotations

from ...capture.frames.decoding import LocatedItem
from ...capture.multifile import Reader
from ...capture.rows import Located
from ...capture.tables.context import Context


class BareContext(Context):
    """A reader of rows for tables.

    bare: the tables do not need decoded bodies once their names are recorded.
    """

    def __init__(self, traffic: Reader, *, bare: bool) -> None:
        super().__init__(traffic)
        self._bare = bare

    def decode(self, located_item: LocatedItem) -> Located:
        """Decode a frame, and learn the topic names in it; with `bare`, leave its message out."""
        located = super().decode(located_item)
        return located._replace(row=located.row._replace(message=None)) if self._bare else located
