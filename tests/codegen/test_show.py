"""A message by version: columns, marks, nesting."""

from __future__ import annotations

import json

import pytest

from kafkawire_codegen import model
from kafkawire_codegen.schema import MessageSchema
from kafkawire_codegen.show import Cell, show
from tests.schemas import schemas

from .written import field, message, struct, tagged

EXAMPLE = message(
    field("A", "string", more='"nullableVersions": "1+", "about": "The first."'),
    field("B", versions="0-1", more='"default": "-1"'),
    struct("S", "[]T", field("C"), field("D", "uuid", "3+"), versions="1+"),
    tagged("E", 0, "string", "3+", ', "nullableVersions": "3+"'),
    valid="0-4",
    flexible="3+",
    head='"type": "metadata", "apiKey": 7, "deprecatedVersions": "0-1", "about": "An example."',
)


def test_the_table_as_text() -> None:
    assert show(EXAMPLE).text().splitlines() == [
        "M: metadata 7, versions 0-4, flexible 3+, deprecated 0-1",
        "An example.",
        "",
        "     type    0  1   2   3-4",
        "A    string  ●  ●?  ●?  ●?",
        "B    int32   ●  ●   ·   ·",
        "S    []T     ·  ●   ●   ●",
        "  C  int32   ·  ●   ●   ●",
        "  D  uuid    ·  ·   ·   ●",
        "E    string  ·  ·   ·   #0?",
    ]


def test_each_version_in_a_column_of_its_own() -> None:
    table = show(EXAMPLE, each=True)
    assert [str(column) for column in table.columns] == ["0", "1", "2", "3", "4"]
    assert table.rows[0].cells[3] == table.rows[0].cells[4] == Cell("string", True, None)


def test_versions_that_differ_only_in_being_flexible_stand_apart() -> None:
    plain = message(field("A"), valid="0-3", flexible="2+")
    assert [str(column) for column in show(plain).columns] == ["0-1", "2-3"]


def test_the_table_for_machines() -> None:
    table = json.loads(json.dumps(show(EXAMPLE).json()))
    assert (table["name"], table["api_key"], table["valid"]) == ("M", 7, "0-4")
    assert (table["flexible"], table["deprecated"], table["unstable"]) == ("3+", "0-1", False)
    assert table["columns"] == ["0", "1", "2", "3-4"]
    a, b, _, c, *_ = table["rows"]
    assert (a["path"], a["about"], b["default"]) == ("A", "The first.", "-1")
    assert (c["path"], c["name"], c["depth"]) == ("S[].C", "C", 1)
    assert c["cells"] == [None, *[{"type": "int32", "nullable": False, "tag": None}] * 3]


def test_an_unstable_version_is_said_to_be() -> None:
    head = '"type": "request", "apiKey": 1, "latestVersionUnstable": true'
    unstable = message(field("A"), name="ARequest", valid="0-4", head=head)
    assert show(unstable).heading() == "ARequest: request 1, versions 0-4, flexible 1+, 4 unstable"


@pytest.mark.parametrize("schema", schemas(), ids=lambda s: s.name)
def test_every_column_has_the_fields_the_model_has(schema: MessageSchema) -> None:
    """Two walks of the same schema: the flat one here, the model's by struct."""
    table = show(schema, each=True)
    structs = {struct.name: struct for struct in model.build(schema).structs}

    def names(struct_name: str, version: int) -> list[str]:
        found = []
        for f in structs[struct_name].fields:
            if version in f.versions:
                found.append(f.kafka_name)
                if f.struct is not None:
                    found += names(f.struct.name, version)
        return found

    for number, column in enumerate(table.columns):
        shown = [row.name for row in table.rows if row.cells[number] is not None]
        assert shown == names(schema.name, column.low)
