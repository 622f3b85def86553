"""The contract of the tables: types that Spark takes, documented columns, and the rules that say
what fields mean, held against the schemas' own marks.
"""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

import kafkawire
from kafkawire.capture.exchanges.topic_ids import TopicNames
from kafkawire.capture.rows import Row, Status
from kafkawire.capture.tables import TABLES
from kafkawire.capture.tables.extraction import blocks
from kafkawire.capture.tables.extraction.blocks import ENTITIES, Reader
from kafkawire.capture.tables.extraction.body_facts import body_facts_of
from kafkawire.capture.tables.extraction.decoded_partitions import count_records
from kafkawire.capture.tables.extraction.entities import Entities, recorder_of
from kafkawire.capture.tables.extraction.partition_fields import partition_references
from kafkawire.capture.tables.extraction.partition_paths import (
    REQUEST_FIELDS,
    REQUESTS,
    RESPONSE_FIELDS,
    RESPONSES,
    PartitionPath,
)
from kafkawire.capture.tables.extraction.programs import program_of
from kafkawire.capture.tables.extraction.record_batches import RecordsField
from kafkawire.messages import REGISTRY
from kafkawire.protocol import ApiKey
from kafkawire.protocol.fields import Field, all_fields
from kafkawire.reports.tables.documentation import markdown
from kafkawire_cli.render.message_table.lines import facts
from kafkawire_codegen.model import Message, build
from tests.conftest import ROOT
from tests.schemas import schemas

PLAIN = {
    "bool", "int8", "int16", "int32", "int64", "string", "binary", "timestamp[us, tz=UTC]",
}  # fmt: skip


def types_in(type: Any) -> set[str]:
    if pa.types.is_list(type):
        assert type.value_field.name == "element", type
        assert type.value_field.nullable
        return types_in(type.value_type)
    if pa.types.is_struct(type):
        return {name for field in type for name in types_in(field.type)}
    return {str(type)}


@pytest.mark.parametrize("name", TABLES)
def test_types_are_supported_by_spark(name: str) -> None:
    schema = TABLES[name].schema
    for field in schema:
        assert types_in(field.type) <= PLAIN, field
        assert field.nullable
    assert len(set(schema.names)) == len(schema.names)


def test_the_tables_are_those_of_the_contract() -> None:
    assert list(TABLES) == [
        "exchanges",
        "messages",
        "records",
        "partitions",
        "connections",
        "group_events",
        "problems",
    ]


def test_the_documentation_of_tables_is_up_to_date() -> None:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    assert page == markdown(), "python -m kafkawire.reports.tables.documentation > docs/tables.md"


def test_every_column_has_a_description() -> None:
    for table in TABLES.values():
        for column in table.columns:
            assert column.description.endswith("."), column.name
            assert column.description[0].isupper() or column.description[0] == "`", column.name


# -- what fields mean: our rules against `entityType`

MARKS = {
    "topicName": Entities.topic,
    "groupId": Entities.group,
    "transactionalId": Entities.transactional_id,
}
MESSAGES = [
    message
    for message in map(build, schemas())
    if message.type in ("request", "response") and message.api_key is not None
]


def marked(message: Message) -> set[tuple[str, str, str]]:
    """(struct, field, mark) of the fields that the schemas mark as one of MARKS."""
    return {
        (struct.name, field.attribute, field.entity_type)
        for struct in message.structs
        for field in struct.fields
        if field.entity_type in MARKS
    }


def ours(message: Message) -> set[tuple[str, str, str]]:
    """The same by our rules."""
    notes = {note: mark for mark, note in MARKS.items()}
    module = sys.modules[REGISTRY.load(message.name).__module__]
    found = set()
    for struct in message.structs:
        for field in all_fields(getattr(module, struct.name)):
            note = recorder_of(struct.name, field)
            if note in notes:
                found.add((struct.name, field.attribute, notes[note]))
    return found


def test_our_rules_find_what_the_schemas_mark() -> None:
    assert len(MESSAGES) > 180
    missed = {m.name: marked(m) - ours(m) for m in MESSAGES if marked(m) - ours(m)}
    assert missed == {}


def test_our_rules_find_nothing_else() -> None:
    more = {m.name: ours(m) - marked(m) for m in MESSAGES if ours(m) - marked(m)}
    # the state of share groups, between brokers: a group_id without its mark
    assert set(more) == {
        f"{verb}ShareGroupState{what}Request"
        for verb, what in [
            ("Initialize", ""), ("Read", ""), ("Write", ""), ("Delete", ""), ("Read", "Summary")
        ]
    }  # fmt: skip


CONFIGS = {"name": "retention.ms", "value": "1"}
NAMED: dict[str, tuple[str, int, dict[str, Any], list[str], list[str], list[str]]] = {
    "configs of topics": (
        "CreateTopicsRequest",
        5,
        {"topics": [{"name": "a", "configs": [CONFIGS], "assignments": []}]},
        ["a"],
        [],
        [],
    ),
    "configs in a response": (
        "CreateTopicsResponse",
        5,
        {"topics": [{"name": "a", "configs": [{"name": "retention.ms"}]}]},
        ["a"],
        [],
        [],
    ),
    "keys that are no coordinator's": (
        "StreamsGroupHeartbeatRequest",
        0,
        {
            "groupId": "g",
            "topology": {
                "epoch": 1,
                "subtopologies": [
                    {
                        "subtopologyId": "s",
                        "sourceTopics": ["a"],
                        "stateChangelogTopics": [
                            {"name": "b", "topicConfigs": [{"key": "k", "value": "v"}]}
                        ],
                    }
                ],
            },
        },
        ["a", "b"],
        ["g"],
        [],
    ),
    "transactions": (
        "TxnOffsetCommitRequest",
        3,
        {
            "transactionalId": "t",
            "groupId": "g",
            "groupInstanceId": "i",
            "topics": [{"name": "a"}],
        },
        ["a"],
        ["g"],
        ["t"],
    ),
    "a coordinator of transactions": (
        "FindCoordinatorRequest",
        4,
        {"keyType": 1, "coordinatorKeys": ["t"]},
        [],
        [],
        ["t"],
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_all_readers_find_the_same_entities(case: str) -> None:
    """By the tables, from decoded messages and from bytes, and in `decode`'s table and filters."""
    name, version, fields, topics, groups, transactions = NAMED[case]
    message = kafkawire.from_json(name, version, fields)
    info = REGISTRY.get(name)
    assert info.api_key is not None
    row = Row(
        1, 1, info.type, 1, Status.OK, api_key=info.api_key, api_version=version,
        body_version=version, message=message,
    )  # fmt: skip
    names = TopicNames()
    entities = body_facts_of(row, names, ENTITIES).entities
    assert entities is not None
    assert [topic.name for topic in entities.entities[0]] == topics
    assert entities.entities[1:3] == (groups, transactions)
    said = facts(message, version, info.api_key, info.type)
    assert list(said.topics) == topics
    assert said.names == (
        *(("group_id", group) for group in groups),
        *(("transactional_id", one) for one in transactions),
    )
    is_request = info.type == "request"
    flexible = info.is_flexible(version)
    program = program_of(type(message), info.api_key, is_request, version, flexible)
    if program is None:
        return
    reader = Reader(names.topic, names.add, names.learned, count_records, RecordsField)
    block = reader.read(program, message.encode(version), 0, 1000, ENTITIES)
    assert (block is None) == str(blocks.__file__).endswith(".py")
    if block is not None:
        assert [topic.name for topic in block.entities[0]] == topics
        assert block.entities[1:3] == (groups, transactions)


def test_a_field_has_the_entity_type_of_its_schema() -> None:
    for message in MESSAGES:
        module = sys.modules[REGISTRY.load(message.name).__module__]
        for struct in message.structs:
            rows = getattr(module, struct.name).__fields__
            assert [row.entity_type or None for row in rows] == [
                field.entity_type for field in struct.fields
            ]


def test_a_name_without_an_entity_type_identifies_nothing() -> None:
    for name in ("topic", "topic_name", "name", "group_id", "groups", "transactional_id"):
        field = Field(name, name, "string", False, None, 0, 1, -1, "")
        assert recorder_of("SomeTopic", field) is None


# -- where partitions are


def struct_at(cls: Any, attribute: str) -> Any:
    """The struct type of a field that is an array of structs; None for one of numbers."""
    field = next(field for field in all_fields(cls) if field.attribute == attribute)
    assert field.is_array, (cls, attribute)
    assert field.struct is not None or field.element == "int32"
    return field.struct


PLACES = [
    (info.name, place)
    for table, find in ((REQUESTS, REGISTRY.request), (RESPONSES, REGISTRY.response))
    for api_key, places in table.items()
    for place in places
    if (info := find(api_key)) is not None
]


@pytest.mark.parametrize(("name", "place"), PLACES, ids=lambda value: str(value)[:40])
def test_paths_to_partitions_exist(name: str, place: PartitionPath) -> None:
    struct = REGISTRY.load(name)
    for step in place.attributes:
        struct = struct_at(struct, step)
    here = {row.attribute: row.type for row in struct.__fields__}
    assert here.get(place.name, "string") == "string"
    assert place.name in here or (not place.name and here["topic_id"] == "uuid")
    inner = struct_at(struct, place.partitions)
    if inner is None:
        assert place.number == ""
    else:
        assert any(row.attribute == place.number for row in inner.__fields__)


def test_apis_have_partitions_in_both_directions() -> None:
    only = set(REQUESTS) ^ set(RESPONSES)
    assert {ApiKey(key).name for key in only} == {"METADATA", "DESCRIBE_TOPIC_PARTITIONS"}


def test_partition_fields_map_to_existing_columns() -> None:
    columns = {column.name for column in TABLES["partitions"].columns}
    assert set(REQUEST_FIELDS.values()) | set(RESPONSE_FIELDS.values()) <= columns


def test_an_undecoded_message_has_no_partitions() -> None:
    row = Row(1, 1, "request", 1, Status.MALFORMED, api_key=0)
    assert list(partition_references(row, TopicNames())) == []
