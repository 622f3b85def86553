"""Everything Kafka's own schema files do, in small schemas of our own making."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkawire_codegen import model, schemas_dir
from kafkawire_codegen.lint import lint
from kafkawire_codegen.schema import (
    FieldSchema,
    MessageSchema,
    SchemaErrors,
    load_directory,
    load_file,
    schema_files,
)
from kafkawire_codegen.versions import ALL, NONE, Versions


def load(directory: Path, text: str, name: str = "M") -> MessageSchema:
    file = directory / f"{name}.json"
    file.write_text(text, "utf-8")
    return load_file(file)


def field(directory: Path, text: str) -> FieldSchema:
    """Read one field of a data message in versions 0-9, flexible from 2."""
    head = '"name": "M", "type": "data", "validVersions": "0-9", "flexibleVersions": "2+"'
    (only,) = load(directory, f'{{ {head}, "fields": [ {text} ] }}').fields
    return only


def test_a_schema_of_the_oldest_releases(tmp_path: Path) -> None:
    text = """// A licence
// header

{
  "apiKey": 3,
  "type": "request",
  "name": "OldRequest",
  // What version 1 brought.
  "validVersions": "0-1",
  "fields": [
    { "name": "Topics", "type": "[]OldTopic", "versions": "0+", "nullableVersions": "1+",
      "about": "The topics.", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true,
        "entityType": "topicName", "about": "The name." }, // its name
      { "name": "maxBytes", "type": "int32", "versions": "1+", "default": "0x7fffffff",
        "ignorable": true }
    ]} /* the only one */
  ]
}
"""
    message = load(tmp_path, text, "OldRequest")
    assert (message.api_key, message.type) == (3, "request")
    assert message.flexible_versions == NONE
    (topics,) = message.fields
    name, max_bytes = topics.fields
    assert (topics.type, topics.element, topics.is_array) == ("[]OldTopic", "OldTopic", True)
    assert (topics.nullable_versions, topics.about) == (Versions(1, ALL.high), "The topics.")
    assert (name.map_key, name.entity_type) == (True, "topicName")
    assert (max_bytes.name, max_bytes.default, max_bytes.ignorable) == (
        "maxBytes",
        "0x7fffffff",
        True,
    )
    assert (topics.location.line, topics.location.column) == (11, 5)


def test_a_schema_with_everything_newer_releases_say(tmp_path: Path) -> None:
    text = """{
  "apiKey": 1, "type": "request", "name": "NewRequest",
  "listeners": ["broker", "controller", "zkBroker"],
  "validVersions": "2-5", "deprecatedVersions": "2-3", "flexibleVersions": "4+",
  "headerVersions": { "0-3": "1", "4+": "2" },
  "latestVersionUnstable": true,
  "about": "Asks.",
  "fields": [ { "name": "A", "type": "S", "versions": "2+" } ],
  "commonStructs": [
    { "name": "S", "versions": "0+", "about": "Shared.", "fields": [
      { "name": "B", "type": "bytes", "versions": "0+", "zeroCopy": true } ] } ]
}"""
    message = load(tmp_path, text, "NewRequest")
    assert message.listeners == ("broker", "controller", "zkBroker")
    assert message.deprecated_versions == Versions(2, 3)
    assert message.latest_version_unstable
    assert message.about == "Asks."
    (struct,) = message.common_structs
    assert (struct.name, struct.versions, struct.about) == ("S", ALL, "Shared.")
    assert struct.fields[0].zero_copy


def test_versions_left_out_beside_tagged_versions_are_those(tmp_path: Path) -> None:
    found = field(tmp_path, '{ "name": "A", "type": "int8", "taggedVersions": "3+", "tag": 0 }')
    assert found.versions == found.tagged_versions == Versions(3, ALL.high)


def test_json_null_equals_an_absent_key(tmp_path: Path) -> None:
    text = """{ "name": "A", "type": "S", "versions": "2+", "nullableVersions": "2+", "tag": 0,
      "taggedVersions": "2+", "default": null, "fields": [
        { "name": "B", "type": "int8", "versions": "2+" } ] }"""
    assert field(tmp_path, text).default is None


@pytest.mark.parametrize(("tag", "number"), [("0", 0), ('"0"', 0)])
def test_a_tag_may_be_a_number_or_a_string(tag: str, number: int, tmp_path: Path) -> None:
    text = f'{{ "name": "A", "type": "int8", "taggedVersions": "2+", "tag": {tag} }}'
    assert field(tmp_path, text).tag == number


@pytest.mark.parametrize(
    ("type_", "written", "default"),
    [
        ("int32", '"-1"', "-1"),
        ("int32", "-1", "-1"),
        ("int64", '"0x10"', "0x10"),
        ("bool", "false", "false"),
        ("bool", '"true"', "true"),
        ("float64", "0.5", "0.5"),
        ("string", '""', ""),
        ("string", '"null"', "null"),
        ("uint16", "65535", "65535"),
        ("uint32", '"0xffffffff"', "0xffffffff"),
        ("int64", '"-9223372036854775808"', "-9223372036854775808"),
        ("uuid", '"AAAAAAAAAAAAAAAAAAAAAQ"', "AAAAAAAAAAAAAAAAAAAAAQ"),
        ("bytes", '""', ""),
        ("[]int32", '"null"', "null"),
        ("records", '"null"', "null"),
    ],
)
def test_defaults_may_be_strings_or_scalars(
    type_: str, written: str, default: str, tmp_path: Path
) -> None:
    nullable = ', "nullableVersions": "0+"' * (default == "null")
    text = f'{{ "name": "A", "type": "{type_}", "versions": "0+"{nullable}, "default": {written} }}'
    assert field(tmp_path, text).default == default


@pytest.mark.parametrize(
    ("written", "flag"), [("true", True), ('"true"', True), ('"false"', False)]
)
def test_a_flag_may_be_text(written: str, flag: bool, tmp_path: Path) -> None:
    text = f'{{ "name": "A", "type": "int8", "versions": "0+", "ignorable": {written} }}'
    assert field(tmp_path, text).ignorable is flag


@pytest.mark.parametrize(
    ("written", "own"), [('"none"', NONE), ('""', None), ('"3+"', Versions(3, ALL.high))]
)
def test_a_string_may_have_flexible_versions_of_its_own(
    written: str, own: Versions | None, tmp_path: Path
) -> None:
    text = f'{{ "name": "A", "type": "string", "versions": "0+", "flexibleVersions": {written} }}'
    assert field(tmp_path, text).flexible_versions == own


def test_an_api_upstream_has_removed_needs_no_fields_and_generates_nothing(tmp_path: Path) -> None:
    for kind in ("Request", "Response"):
        keys = f'"apiKey": 4, "type": "{kind.lower()}", "name": "Gone{kind}"'
        text = f'{{ {keys}, "validVersions": "none" }}'
        assert load(tmp_path, text, f"Gone{kind}").valid_versions == NONE
    assert model.load(tmp_path) == []


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    text = '\ufeff{ "name": "M", "type": "data", "validVersions": "0", "fields": [] }'
    assert load(tmp_path, text).location.column == 1


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "M.json").write_bytes(b'{ "name": "\xff" }')
    with pytest.raises(SchemaErrors, match=r"M\.json:1:1: byte 11 is not UTF-8 \[syntax\]"):
        load_file(tmp_path / "M.json")


def test_a_directory_is_read_sorted_by_name_and_other_files_are_left(tmp_path: Path) -> None:
    for name in ("B", "A"):
        load(
            tmp_path,
            f'{{ "name": "{name}", "type": "data", "validVersions": "0", "fields": [] }}',
            name,
        )
    (tmp_path / "releases.json").write_text("{}")
    (tmp_path / "README.md").write_text("no schema")
    assert [schema.name for schema in load_directory(tmp_path)] == ["A", "B"]
    assert [file.name for file in schema_files(tmp_path)] == ["A.json", "B.json"]


def test_a_directory_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load_directory(tmp_path / "absent")


def test_a_common_struct_may_be_keyed_where_an_array_holds_it(tmp_path: Path) -> None:
    text = """{ "name": "M", "type": "data", "validVersions": "0", "fields": [
        { "name": "A", "type": "[]S", "versions": "0+" } ],
      "commonStructs": [ { "name": "S", "versions": "0+", "fields": [
        { "name": "B", "type": "int8", "versions": "0+", "mapKey": true } ] } ] }"""
    load(tmp_path, text)
    assert not lint(tmp_path).errors


def test_all_our_own_schemas_are_read_in_the_order_of_their_names() -> None:
    loaded = load_directory(schemas_dir())
    assert [schema.name for schema in loaded] == sorted(f.stem for f in schema_files(schemas_dir()))
    assert len(loaded) == 292
