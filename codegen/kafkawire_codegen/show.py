"""Shows a message's fields by version, as a table.

Adjacent versions with the same fields share a column; a cell shows the field on the wire.

    FetchRequest       0-2       3              column: a run of versions
      Topics           []FetchTopic  ...        cell: type, ? nullable, #N tagged, . absent
        Topic          string
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Final

from .dialect import MessageSchema
from .layout import Spot, spots
from .versions import Versions

PRESENT: Final = "●"
ABSENT: Final = "·"


@dataclass(frozen=True, slots=True)
class Cell:
    """A field in one run of versions."""

    type: str
    nullable: bool
    tag: int | None

    @property
    def mark(self) -> str:
        """Its attributes besides the type, which is the same in every version."""
        place = PRESENT if self.tag is None else f"#{self.tag}"
        return f"{place}{'?' * self.nullable}"


@dataclass(frozen=True, slots=True)
class Row:
    """A field: its nesting depth, and its cell in each column; None if absent."""

    depth: int
    name: str
    path: str
    type: str
    default: str | None
    about: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One message by version."""

    name: str
    type: str
    api_key: int | None
    valid: Versions
    flexible: Versions
    deprecated: Versions
    unstable: bool
    about: str
    columns: tuple[Versions, ...]
    rows: tuple[Row, ...]

    def heading(self) -> str:
        """Name the message and its attributes."""
        key = "" if self.api_key is None else f" {self.api_key}"
        notes = [f"{self.type}{key}", f"versions {self.valid}", f"flexible {self.flexible}"]
        if self.deprecated:
            notes.append(f"deprecated {self.deprecated}")
        if self.unstable:
            notes.append(f"{self.valid.high} unstable")
        return f"{self.name}: {', '.join(notes)}"

    def text(self) -> str:
        """The heading, the message's purpose, and the table, with aligned columns."""
        lines = [["", "type", *(str(column) for column in self.columns)]]
        for row in self.rows:
            cells = [ABSENT if cell is None else cell.mark for cell in row.cells]
            lines.append(["  " * row.depth + row.name, row.type, *cells])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
        return "\n".join([self.heading(), *filter(None, [self.about]), "", *table])

    def json(self) -> dict[str, object]:
        """The same as a JSON object, with the dialect's version ranges."""
        ranges = ("valid", "flexible", "deprecated")
        return {
            **asdict(self),
            **{name: str(getattr(self, name)) for name in ranges},
            "columns": [str(column) for column in self.columns],
        }


def show(schema: MessageSchema, *, each: bool = False) -> Table:
    """Arrange one message by version; `each` gives every version a column of its own."""
    fields = spots(schema)
    columns: list[tuple[Versions, tuple[Cell | None, ...]]] = []
    flexible = schema.flexible_versions
    for run in _runs(schema, fields, each):
        version = run.low
        cells = tuple(_cell(spot, version) for spot in fields)
        same = columns and columns[-1][1] == cells
        if same and not each and (version in flexible) == (columns[-1][0].high in flexible):
            columns[-1] = (Versions(columns[-1][0].low, run.high), cells)
        else:
            columns.append((run, cells))
    rows = tuple(
        Row(
            spot.depth,
            spot.field.name,
            spot.path,
            spot.field.type,
            spot.field.default,
            spot.field.about,
            tuple(cells[number] for _, cells in columns),
        )
        for number, spot in enumerate(fields)
    )
    return Table(
        name=schema.name,
        type=schema.type,
        api_key=schema.api_key,
        valid=schema.valid_versions,
        flexible=schema.flexible_versions,
        deprecated=schema.deprecated_versions,
        unstable=schema.latest_version_unstable,
        about=schema.about,
        columns=tuple(versions for versions, _ in columns),
        rows=rows,
    )


def _runs(schema: MessageSchema, fields: list[Spot], each: bool) -> list[Versions]:
    """Split a message's versions where something may change, or after each."""
    valid = schema.valid_versions
    if not valid:
        return []
    if each:
        return [Versions(version, version) for version in range(valid.low, valid.high + 1)]
    ranges = [r for spot in fields for r in (spot.versions, spot.nullable, spot.tagged)]
    edges = {v for r in (*ranges, schema.flexible_versions & valid, valid) for v in r.edges}
    starts = sorted(edges & set(range(valid.low, valid.high + 1)))
    return [
        Versions(start, end - 1)
        for start, end in zip(starts, [*starts[1:], valid.high + 1], strict=True)
    ]


def _cell(spot: Spot, version: int) -> Cell | None:
    if version not in spot.versions:
        return None
    tag = spot.field.tag if version in spot.tagged else None
    return Cell(spot.field.type, version in spot.nullable, tag)
