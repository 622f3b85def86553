"""Arranges the fields of a message: a row for each, a column for each version.

Rows are in wire order, parents first; a field of a common struct has a row at each use.

    FetchRequest                 0  1  2  3  4        + new, − removed, ~ changed
      MaxBytes     int32                  +  ●        ? nullable, #N tagged
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ...dialect import FieldSchema, MessageSchema
from ...layout import Spot, spots
from ...source import SchemaError, SchemaErrors
from ...versions import Versions
from .texts import Part, anchor, parts

MOST_COLUMNS: Final = 60
"""Versions of a message that have a column each; those of a message with more share columns."""

MOST_CELLS: Final = 1_000_000
"""The most cells of a table; the largest of Kafka's has under 1000."""

ABSENT: Final = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A field in a column. state: absent, new, removed, changed or same, against the one before.

    mark: what the cell shows; title: the same in words, where something is new.
    """

    mark: str
    state: str
    title: str


@dataclass(frozen=True, slots=True)
class Row:
    """A field of a message at one position."""

    anchor: str
    path: str
    name: str
    depth: int
    type: str
    element: str
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: str | None
    notes: tuple[str, ...]
    about: tuple[Part, ...]
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The fields of a message by version."""

    columns: tuple[Versions, ...]
    rows: tuple[Row, ...]


def table(schema: MessageSchema, fields: list[Spot]) -> Table:
    """Arrange a message. fields: its `spots`. SchemaErrors for more than MOST_CELLS."""
    columns = tuple(_columns(schema, fields))
    if len(columns) * len(fields) > MOST_CELLS:
        reason = (
            f"{len(fields)} fields in {len(columns)} different versions: "
            f"a page has {MOST_CELLS} cells at most"
        )
        raise SchemaErrors(
            (SchemaError.at(schema.location, schema.name, "too-many-cells", reason),)
        )
    common = {struct.name: struct.about for struct in schema.common_structs}
    rows = (_row(spot, common.get(spot.field.element, ""), columns) for spot in fields)
    return Table(columns, tuple(rows))


def positions(schema: MessageSchema) -> list[Spot]:
    """List the fields of a message; SchemaErrors if there are too many to list."""
    return spots(schema)


def _columns(schema: MessageSchema, fields: list[Spot]) -> list[Versions]:
    valid = schema.valid_versions
    every = range(valid.low, valid.high + 1)
    if len(valid) <= MOST_COLUMNS:
        return [Versions(version, version) for version in every]
    ranges = [r for spot in fields for r in (spot.versions, spot.nullable, spot.tagged)]
    ranges += [schema.flexible_versions & valid, schema.deprecated_versions & valid]
    starts = sorted({valid.low, *(v for r in ranges for v in r.edges if v in every)})
    ends = [*(start - 1 for start in starts[1:]), valid.high]
    return [Versions(start, end) for start, end in zip(starts, ends, strict=True)]


def _row(spot: Spot, about: str, columns: tuple[Versions, ...]) -> Row:
    field = spot.field
    return Row(
        anchor=anchor(spot.path),
        path=spot.path,
        name=field.name,
        depth=spot.depth,
        type=field.type,
        element=field.element,
        versions=spot.versions,
        nullable=spot.nullable,
        tagged=spot.tagged,
        tag=field.tag,
        default=field.default,
        notes=tuple(_notes(field)),
        about=parts(field.about or about),
        cells=_cells(spot, columns),
    )


def _notes(field: FieldSchema) -> list[str]:
    """List the attributes of a field that are the same in every version."""
    notes = [field.entity_type] if field.entity_type else []
    notes += ["map key"] * field.map_key + ["ignorable"] * field.ignorable
    notes += ["zero copy"] * field.zero_copy
    if field.flexible_versions is not None:
        notes.append(f"flexible {field.flexible_versions}")
    return notes


def _cells(spot: Spot, columns: tuple[Versions, ...]) -> tuple[Cell, ...]:
    cells: list[Cell] = []
    before: str | None = None
    for column in columns:
        now = _form(spot, column.low)
        cells.append(_cell(before, now, str(column)))
        before = now
    return tuple(cells)


def _form(spot: Spot, version: int) -> str:
    """Write a field in a version: "●", "●?", "#0", "#0?"; empty where it does not exist."""
    if version not in spot.versions:
        return ABSENT
    place = f"#{spot.field.tag}" if version in spot.tagged else "●"
    return f"{place}{'?' * (version in spot.nullable)}"


def _cell(before: str | None, now: str, version: str) -> Cell:
    """Compare a field with the column before; None before the first one."""
    if now == before or before is None:
        return Cell(now, "same" if now else "absent", "")
    if not now:
        return Cell("−", "removed", f"removed in {version}")
    words = _words(now)
    if not before:
        mark = f"+{now.removeprefix('●')}"
        return Cell(mark, "new", ", ".join([f"new in {version}", *words]))
    return Cell(f"~{now.removeprefix('●')}", "changed", f"{' and '.join(words) or 'plain'} now")


def _words(form: str) -> list[str]:
    tag = form.rstrip("?").partition("#")[2]
    return [f"tag {tag}"] * bool(tag) + ["nullable"] * form.endswith("?")
