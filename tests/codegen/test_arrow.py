"""The target arrow: tables of golden messages, typed by its schemas, are read back equal."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pyarrow as pa
import pytest
from pyarrow import parquet

from kafkawire.messages import REGISTRY
from kafkawire.protocol.fields import all_fields
from kafkawire_codegen import model, schemas_dir
from kafkawire_codegen.targets import generate_target
from kafkawire_codegen.targets.arrow import TYPES, module
from kafkawire_codegen.wire_types import WIRE_TYPES
from tests import vectors
from tests.calls import calls
from tests.codegen.hostile import COLLECTED
from tests.codegen.test_linear import STEEPEST, nested, wide, written
from tests.conftest import ROOT

NAMES: Final = sorted(vectors.by_message("messages"))


def imported(schemas: Path, folder: Path, name: str) -> ModuleType:
    """Generate the package and import it."""
    generate_target("arrow", schemas, folder / name, name)
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(folder))


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    yield imported(schemas_dir(), tmp_path_factory.mktemp("arrow"), "kafka_arrow_of_tests")
    for name in [name for name in sys.modules if name.startswith("kafka_arrow_of_tests")]:
        del sys.modules[name]


def rows(schemas: ModuleType, name: str) -> list[dict[str, Any]]:
    return [
        schemas.row(name, vectors.instance(row), row["version"])
        for row in vectors.by_message("messages")[name]
    ]


@pytest.mark.parametrize("name", NAMES)
def test_golden_messages_are_read_back_equal(schemas: ModuleType, name: str) -> None:
    """Also held against `all_fields`, not against the schema that made the rows."""
    made = rows(schemas, name)
    table = pa.Table.from_pylist(made, schema=schemas.schema(name))
    assert vectors.same(table.to_pylist(), made)
    for row, one in zip(vectors.by_message("messages")[name], made, strict=True):
        same_values(vectors.instance(row), one, row["version"])


def same_values(value: Any, made: dict[str, Any], version: int) -> None:
    fields = all_fields(type(value))
    names = {field.attribute for field in fields}
    assert made.keys() - names <= {"unknown_tags"}
    assert [(tag["tag"], tag["data"]) for tag in made.get("unknown_tags") or ()] == (
        getattr(value, "unknown_tags", None) or []
    )
    for field in fields:
        own, found = getattr(value, field.attribute), made[field.attribute]
        if not field.first <= version <= field.last:
            assert found is None
        elif field.struct is not None and own is not None:
            pairs = [*zip(own, found, strict=True)] if field.is_array else [(own, found)]
            for one, other in pairs:
                same_values(one, other, version)
        elif not (field.element == "uuid" and own is not None):
            assert vectors.same(found, own)


def test_uuids_are_text_as_in_the_json_form(schemas: ModuleType) -> None:
    from kafkawire.messages.fetch_request import FetchRequest, FetchTopic

    message = FetchRequest(topics=[FetchTopic(topic_id=bytes(15) + b"\x01")])
    (topic,) = schemas.row("FetchRequest", message, 13)["topics"]
    assert topic["topic_id"] == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert topic["topic"] is None


def test_fields_tell_their_versions_and_purpose(schemas: ModuleType) -> None:
    schema = schemas.schema("FetchRequest")
    assert schema.metadata[b"message"] == b"FetchRequest"
    assert schema.metadata[b"api_key"] == b"1"
    assert schema.metadata[b"versions"].startswith(b"0-")
    field = schema.field("cluster_id")
    assert (field.type, field.nullable) == (pa.string(), True)
    assert field.metadata[b"versions"].startswith(b"12-")
    assert field.metadata[b"about"]
    (found,) = [
        f
        for f in json.loads(schemas.spark_schema("FetchRequest"))["fields"]
        if f["name"] == "cluster_id"
    ]
    assert found["metadata"]["comment"] == field.metadata[b"about"].decode()
    with pytest.raises(KeyError):
        schemas.schema("NoSuchRequest")


def test_schemas_have_every_message_and_no_type_that_spark_lacks(schemas: ModuleType) -> None:
    assert set(schemas.MESSAGES) == {info.name for info in REGISTRY}
    assert TYPES.keys() == WIRE_TYPES.keys()
    for name in schemas.MESSAGES:
        for field in schemas.schema(name):
            assert "uint" not in str(field.type)
            assert field.nullable
        assert json.loads(schemas.spark_schema(name))["type"] == "struct"


def test_parquet_keeps_values_and_metadata(schemas: ModuleType, tmp_path: Path) -> None:
    made = rows(schemas, "FetchResponse")
    table = pa.Table.from_pylist(made, schema=schemas.schema("FetchResponse"))
    parquet.write_table(table, tmp_path / "f.parquet")
    back = parquet.read_table(tmp_path / "f.parquet")
    assert back.schema.equals(table.schema, check_metadata=False)
    assert back.schema.metadata[b"message"] == b"FetchResponse"
    assert back.to_pylist() == made


def test_hostile_schemas(tmp_path: Path) -> None:
    for each in COLLECTED:
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    made = imported(tmp_path, tmp_path, "hostile_arrow_of_tests")
    for name in made.MESSAGES:
        assert made.schema(name).metadata[b"message"].decode() == name
    for path in (tmp_path / "hostile_arrow_of_tests").glob("*.py"):
        assert path.read_bytes().isascii()


@pytest.mark.parametrize(("shape", "size"), [(nested, 3), (wide, 40)])
def test_work_and_text_are_in_proportion(shape: Any, size: int, tmp_path: Path) -> None:
    counted: list[tuple[int, int]] = []
    for number in (size, 10 * size):
        written(tmp_path, shape(number))
        (own,) = model.load(tmp_path)
        texts: list[str] = []
        work = calls(lambda own=own, texts=texts: texts.append(module(own)))  # type: ignore[misc]
        counted.append((work, len(texts[0])))
    (few, short), (many, long) = counted
    assert many < STEEPEST * few
    assert long < STEEPEST * short


def test_structs_within_structs_are_one_type_each(tmp_path: Path) -> None:
    """Unfolded, the schema would have 2 to the power of 28 fields."""
    written(tmp_path, nested(28))
    made = imported(tmp_path, tmp_path, "nested_arrow_of_tests")
    names = made.schema("M").names  # in the assertion, pytest would unfold the schema as text
    assert names == ["a", "unknown_tags"]


def test_the_package_needs_pyarrow_alone(schemas: ModuleType) -> None:
    assert schemas.__file__ is not None
    imports: set[str] = set()
    for path in Path(schemas.__file__).parent.glob("*.py"):
        lines = path.read_text().splitlines()
        imports |= {line.split()[1] for line in lines if line.startswith(("import ", "from "))}
    own = {name for name in imports if name.startswith("._")}
    assert own == {"._types"}
    third = {name.partition(".")[0] for name in imports - own} - sys.stdlib_module_names
    assert third == {"pyarrow"}
    assert (ROOT / "docs" / "arrow.md").exists()
