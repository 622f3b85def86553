"""The target json-schema: what `to_json` makes is valid, and what is wrong in any place is not.

The validator is jsonschema-rs, which is not ours.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import jsonschema_rs
import pytest

import kafkawire
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import Message, load
from kafkawire_codegen.targets import generate_target
from kafkawire_codegen.targets.json_schema import UNKNOWN_TAGS, schema
from kafkawire_codegen.user_templates.messages import message_of
from kafkawire_codegen.user_templates.structs import FieldVersion, StructVersion
from tests import vectors
from tests.calls import calls
from tests.codegen.hostile import COLLECTED, field, message
from tests.codegen.test_linear import STEEPEST, many_versions, nested, wide, written
from tests.fuzzing import SOAK

NAMES: Final = sorted(vectors.by_message("messages"))
ONE_IN: Final = max(1, 20 // SOAK)
"""Of so many golden vectors, one is made wrong in every place; in `make soak` all are."""


@cache
def models() -> dict[str, Message]:
    return {each.name: each for each in load(schemas_dir())}


@cache
def validator(name: str, version: int) -> jsonschema_rs.Draft202012Validator:
    made = json.loads(json.dumps(schema(models()[name], version)))
    jsonschema_rs.meta.validate(made)
    return jsonschema_rs.Draft202012Validator(made)


def documents(name: str) -> Iterator[tuple[dict[str, Any], Any]]:
    """Give the golden vectors of a message with their documents."""
    for row in vectors.by_message("messages")[name]:
        made = kafkawire.to_json(vectors.instance(row), row["version"])
        yield row, json.loads(json.dumps(made))


@pytest.mark.parametrize("name", NAMES)
def test_golden_messages_are_valid(name: str) -> None:
    for row, document in documents(name):
        found = [str(error) for error in validator(name, row["version"]).iter_errors(document)]
        assert found == [], vectors.where(row)


# -- wrong documents

Change = tuple[Any, Any, Any]
"""A container of a document, a key of it, and the wrong value that it gets."""

MISSING: Final = object()


def changes(struct: StructVersion, document: Any) -> Iterator[Change]:
    """List the ways to make a document wrong, in every place of it."""
    yield document, "noSuchField", 1
    for each in struct.fields:
        assert isinstance(each, FieldVersion)
        name = each.json_name
        if name not in document:
            assert each.is_tagged
            continue
        if not each.is_tagged:
            yield document, name, MISSING
        if not each.is_nullable:
            yield document, name, None
        yield from values(each, document, name, is_array=each.is_array)
    for at, tag in enumerate(document.get(UNKNOWN_TAGS, ())):
        yield document[UNKNOWN_TAGS], at, {}
        yield tag, "tag", -1
        yield tag, "data", "?"


def values(each: FieldVersion, at: Any, key: Any, *, is_array: bool) -> Iterator[Change]:
    """List wrong values of a field, and of what is in it."""
    value = at[key]
    if is_array:
        yield from ((at, key, wrong) for wrong in NOT_ARRAYS)
        for number in range(len(value or ())):
            yield value, number, None
            yield from values(each, value, number, is_array=False)
        return
    if each.wire is not None and each.wire.is_integer:
        assert each.wire.low is not None
        assert each.wire.high is not None
        yield from ((at, key, wrong) for wrong in (each.wire.low - 1, each.wire.high + 1))
    yield from ((at, key, wrong) for wrong in WRONG[each.element if each.wire else "struct"])
    if isinstance(each.struct, StructVersion) and value is not None:
        yield from changes(each.struct, value)


INTEGER: Final[tuple[Any, ...]] = (1.5, "1", True, [], {})
NOT_ARRAYS: Final[tuple[Any, ...]] = ({}, "", 0)
WRONG: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("int8", "int16", "uint16", "int32", "uint32", "int64"), INTEGER),
    "bool": (0, "true", [], {}),
    "string": (0, True, [], {}),
    "bytes": (0, "a", "aaa?", "a===", [], {}),
    "records": (0, "a", "aaa-", "aa==a", [], {}),
    "uuid": (0, "", "A" * 21, "A" * 23, "A" * 21 + "B", "A" * 21 + "+", [], {}),
    "float64": ("nan", "", True, [], {}),
    "struct": (0, "", [], {"noSuchField": 1}),
}
"""Type -> values that it does not have."""


@pytest.mark.fuzz
@pytest.mark.parametrize("name", NAMES)
def test_wrong_documents_are_refused(name: str) -> None:
    tried = 0
    for number, (row, document) in enumerate(documents(name)):
        if number and crc32(f"{name} {number}".encode()) % ONE_IN:
            continue
        is_valid = validator(name, row["version"]).is_valid
        at = message_of(models()[name]).at(row["version"])
        root = at.root
        assert isinstance(root, StructVersion)
        for container, key, wrong in list(changes(root, document)):
            refused(is_valid, document, container, key, wrong)
            tried += 1
        assert is_valid(document)
    assert tried


def refused(is_valid: Callable[[Any], bool], document: Any, at: Any, key: Any, wrong: Any) -> None:
    """Make a document wrong, see it refused, and make it right again."""
    before = at.get(key, MISSING) if isinstance(at, dict) else at[key]
    if wrong is MISSING:
        del at[key]
    else:
        at[key] = wrong
    assert not is_valid(document), (key, wrong)
    if before is MISSING:
        del at[key]
    else:
        at[key] = before


# -- files


def test_a_file_for_each_version(tmp_path: Path) -> None:
    made = generate_target("json-schema", schemas_dir(), tmp_path)
    assert made.files == sum(len(each.versions) for each in models().values())
    text = (tmp_path / "FetchRequest" / "12.json").read_text()
    found = json.loads(text)
    assert found["title"] == "FetchRequest, version 12"
    assert found["description"].startswith("Reads record batches")
    wait = found["properties"]["maxWaitMs"]
    assert (wait["type"], wait["minimum"], wait["maximum"]) == ("integer", -(2**31), 2**31 - 1)
    assert "clusterId" not in found["required"]
    assert found["properties"]["clusterId"]["default"] is None
    assert found["additionalProperties"] is False
    assert json.loads((tmp_path / "FetchRequest" / "3.json").read_text()).get("deprecated") == (
        True if 3 in models()["FetchRequest"].deprecated else None
    )


def test_hostile_schemas(tmp_path: Path) -> None:
    for each in COLLECTED:
        (tmp_path / f"{each['name']}.json").write_text(json.dumps(each))
    out = tmp_path / "out"
    generate_target("json-schema", tmp_path, out)
    found = list(out.glob("*/*.json"))
    assert len(found) > len(COLLECTED)
    for path in found:
        text = path.read_text("utf-8")
        assert text.isascii()
        jsonschema_rs.meta.validate(json.loads(text))


def test_a_default_is_in_the_form_of_the_document(tmp_path: Path) -> None:
    kinds = {"float64": ("NaN", "NaN"), "uuid": ("A" * 21 + "Q", "A" * 21 + "Q"), "int8": ("3", 3)}
    fields = [
        field(f"F{tag}", kind, taggedVersions="1+", tag=tag, default=default)
        for tag, (kind, (default, _)) in enumerate(kinds.items())
    ]
    written(tmp_path, message("M", *fields, validVersions="0-1", flexibleVersions="1+"))
    (own,) = load(tmp_path)
    properties = schema(own, 1)["properties"]
    wanted = [each for _, each in kinds.values()]
    assert [properties[f"f{tag}"]["default"] for tag in range(3)] == wanted


@pytest.mark.parametrize(("shape", "size"), [(nested, 3), (wide, 40), (many_versions, 10)])
def test_work_is_in_proportion(shape: Callable[[int], Any], size: int, tmp_path: Path) -> None:
    """For one version: all that the schema has is written once."""
    counted = []
    for number in (size, 10 * size):
        written(tmp_path, shape(number))
        (own,) = load(tmp_path)
        counted.append(calls(lambda own=own: schema(own, own.versions.high)))  # type: ignore[misc]
    assert counted[1] < STEEPEST * counted[0]
