"""Our schemas against the protocol's facts: both ways, field by field."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import Field, Message, Struct, build
from kafkawire_codegen.schema import FieldSchema, MessageSchema
from kafkawire_codegen.versions import Versions
from tests.conftest import FIXTURES
from tests.schemas import schemas

SCHEMAS = {schema.name: schema for schema in schemas()}


def facts(name: str) -> list[dict[str, Any]]:
    with gzip.open(FIXTURES / "reference" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


FACTS = {fact["name"]: fact for fact in facts("protocol_facts")}


def versions(text: str | None, newest: int) -> set[int]:
    run = Versions.parse(text or "none") & Versions(0, newest)
    return set(range(run.low, run.high + 1))


def from_fact(field: dict[str, Any], newest: int) -> dict[str, Any]:
    default = field.get("default")
    return {
        "type": field["type"],
        "versions": versions(field["versions"], newest),
        "nullable": versions(field.get("nullableVersions"), newest),
        "tagged": versions(field.get("taggedVersions"), newest),
        "tag": field.get("tag"),
        "default": None if default is None else str(default),
        "flexible": field.get("flexibleVersions"),
        "map_key": field.get("mapKey", False),
        "entity_type": field.get("entityType"),
        "ignorable": field.get("ignorable") in (True, "true"),
        "zero_copy": field.get("zeroCopy", False),
    }


def flat(
    schema: MessageSchema, fields: tuple[FieldSchema, ...], path: str, where: set[int], newest: int
) -> list[tuple[str, dict[str, Any]]]:
    """Walk a schema in wire order; a field exists where it and all its parents do."""
    common = {struct.name: struct.fields for struct in schema.common_structs}
    made = []
    for field in fields:
        here = versions(str(field.versions), newest) & where
        if not here:
            continue
        name = f"{path}{field.name}"
        made.append(
            (
                name,
                {
                    "type": field.type,
                    "versions": here,
                    "nullable": versions(str(field.nullable_versions), newest) & here,
                    "tagged": versions(str(field.tagged_versions), newest) & here,
                    "tag": field.tag,
                    "default": field.default,
                    "flexible": None
                    if field.flexible_versions is None
                    else str(field.flexible_versions),
                    "map_key": field.map_key,
                    "entity_type": field.entity_type,
                    "ignorable": field.ignorable,
                    "zero_copy": field.zero_copy,
                },
            )
        )
        array = field.type.startswith("[]")
        children = common.get(field.type.removeprefix("[]"), field.fields)
        made += flat(schema, children, f"{name}{'[]' if array else ''}.", here, newest)
    return made


def test_there_is_a_schema_for_every_message_and_no_other() -> None:
    assert set(SCHEMAS) == set(FACTS)
    assert len(SCHEMAS) == 292
    pairs = sum(len(s.valid_versions) for s in SCHEMAS.values())
    assert pairs == 879


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_field_is_as_the_facts_say(name: str) -> None:
    fact, schema = FACTS[name], SCHEMAS[name]
    newest = schema.valid_versions.high
    assert str(schema.valid_versions) == fact["validVersions"]
    assert str(schema.flexible_versions) == fact["flexibleVersions"]
    assert (schema.api_key, schema.type) == (fact.get("apiKey"), fact["type"])
    assert list(schema.listeners) == fact.get("listeners", [])
    assert schema.latest_version_unstable == ("unstableVersions" in fact)
    whole = versions(fact["validVersions"], newest)
    ours = flat(schema, schema.fields, "", whole, newest)
    theirs = [(f["path"], from_fact(f, newest)) for f in fact["fields"]]
    assert [path for path, _ in ours] == [path for path, _ in theirs], "wire order"
    for (path, mine), (_, wanted) in zip(ours, theirs, strict=True):
        for column, value in wanted.items():
            assert mine[column] == value, f"{name}.{path}: {column}"


@pytest.mark.parametrize("name", sorted(FACTS))
def test_every_message_has_its_facts(name: str) -> None:
    about = SCHEMAS[name].about
    assert about.endswith(".")
    assert "\n" not in about
    assert len(about.split()) >= 4


def test_header_versions_follow_from_the_schemas() -> None:
    from kafkawire.protocol import request_header_version, response_header_version

    for fact in FACTS.values():
        of = {"request": request_header_version, "response": response_header_version}.get(
            fact["type"]
        )
        for header, text in fact.get("headerVersions", {}).items():
            assert of is not None
            for version in versions(text, 99) if not text.endswith("+") else ():
                assert of(fact["apiKey"], version) == int(header), (fact["name"], version)


def test_a_layout_that_changed_in_place_is_noted_in_its_schema() -> None:
    for change in facts("in_place_changes"):
        text = (schemas_dir() / f"{change['message']}.json").read_text()
        between = f"between {change['from']} and {change['to']}"
        note = f"Version {change['version']} changed in place {between}"
        assert note in text, change["message"]


def test_releases_are_those_of_the_history() -> None:
    releases = json.loads((schemas_dir() / "releases.json").read_text())["releases"]
    assert next(iter(releases)) == "2.2"
    assert list(releases)[-1] == "trunk"
    for name, fact in FACTS.items():
        if fact["type"] != "request":
            continue
        api = name.removesuffix("Request")
        for release, text in fact["history"].items():
            short = "trunk" if release.startswith("trunk") else release.removesuffix(".0")
            wanted = None if text in (None, "none") else text.removesuffix("*")
            assert releases[short].get(api) == wanted, (api, release)
        trunk = releases["trunk"].get(api, "none")
        assert trunk == fact["currentVersions"], api


def shape(struct: Struct) -> list[tuple[str, str]]:
    return [(field.kafka_name, field.type) for field in struct.fields]


def test_the_model_keeps_wire_order_when_a_struct_is_met_twice() -> None:
    message: Message = build(SCHEMAS["LeaderAndIsrRequest"])
    state = next(s for s in message.structs if s.name == "LeaderAndIsrPartitionState")
    names = [name for name, _ in shape(state)]
    assert names.index("Replicas") < names.index("AddingReplicas") < names.index("IsNew")
    adding: Field = next(f for f in state.fields if f.kafka_name == "AddingReplicas")
    assert (adding.versions.low, adding.versions.high) == (3, 7)


@pytest.mark.parametrize(
    "name", sorted(name for name in SCHEMAS if "headerVersions" in FACTS[name])
)
def test_header_versions(name: str) -> None:
    message = build(SCHEMAS[name])
    found = {header: set(range(run.low, run.high + 1)) for run, header in message.headers}
    newest = message.versions.high
    expected = {
        int(header): versions(run, newest) for header, run in FACTS[name]["headerVersions"].items()
    }
    assert found == expected
    assert all(message.header_version(v) == h for h, run in expected.items() for v in run)
