"""Finds the type that values have in common, and makes columns of it.

Values are added in portions of any size. Those without a common type, or with too many fields,
are JSON text.

    portions of values --add--> common type --array--> columns
"""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import UUID

import pyarrow as pa

from ..values.json_form import json_form

MAX_FIELDS: Final = 1000
"""Different fields, nested ones included, of values that have a type."""

UNTYPABLE: Final = (pa.ArrowException, OverflowError, TypeError, ValueError)
"""What Arrow raises for values without a common type."""

COLUMN: Final = "value"


class ValueTypes:
    """The type that values have in common: of objects a struct with the fields of all of them.

    is_text: whether they have none, and are JSON text.
    """

    def __init__(self) -> None:
        self.type: pa.DataType = pa.null()
        self.is_text = False
        self._fields: dict[str, Any] = {}
        self._count = 0

    def add(self, values: list[object]) -> None:
        """Add values; None for null."""
        if self.is_text:
            return
        plain = [self._plain(value, self._fields) for value in values]
        if self._count > MAX_FIELDS:
            self.be_text()
            return
        try:
            types = [self.type, pa.array(plain).type]
            schemas = [pa.schema([(COLUMN, each)]) for each in types]
            merged = pa.unify_schemas(schemas, promote_options="permissive")
            self.type = merged.field(COLUMN).type
        except UNTYPABLE:
            self.be_text()

    def be_text(self) -> None:
        """Let values be JSON text."""
        self.is_text = True
        self._fields = {}
        self.type = pa.string()

    def array(self, values: list[object]) -> pa.Array:
        """Make a column of values that were added. Raises what is in UNTYPABLE, if not for text."""
        if self.is_text:
            texts = [None if value is None else json.dumps(json_form(value)) for value in values]
            return pa.array(texts, pa.string())
        plain = [self._plain(value, self._fields) for value in values]
        return pa.array(plain, self.type)

    def _plain(self, value: object, fields: dict[str, Any]) -> object:
        """Convert what Arrow does not infer types of; count fields that are new.

        An object without fields is null: DuckDB and Parquet have no struct without fields.
        fields: those of the object, or of the objects in a list, each with its own fields.
        """
        if isinstance(value, dict):
            typed = {}
            for name, inner in value.items():
                below = fields.get(name)
                if below is None:
                    self._count += 1
                    if self._count > MAX_FIELDS:
                        return None
                    below = fields[name] = {}
                typed[name] = self._plain(inner, below)
            return typed or None
        if isinstance(value, list):
            return [self._plain(inner, fields) for inner in value]
        return str(value) if isinstance(value, UUID) else value
