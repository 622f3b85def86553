"""The one walk over the fields of messages and structs."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import kafkawire
import kafkawire_cli
import kafkawire_codegen
from kafkawire.messages import REGISTRY
from kafkawire.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from kafkawire.primitives import FieldRow, Structure
from kafkawire.protocol.connect import ConnectAssignment, ConnectorAssignment
from kafkawire.protocol.fields import Field, Step, all_fields, fields_at, steps_to

SOURCES = {
    f"{package.__name__}/{path.relative_to(folder).as_posix()}": path
    for package in (kafkawire, kafkawire_cli, kafkawire_codegen)
    for folder in (Path(str(package.__file__)).parent,)
    for path in folder.rglob("*.py")
    if path.parent.name != "messages"
}
"""The modules that are tested, of the source tree or of an installation."""


def field_named(cls: type[Structure], attribute: str) -> Field:
    return next(field for field in all_fields(cls) if field.attribute == attribute)


@pytest.mark.parametrize("name", ["__fields__", "modules"])
def test_only_one_module_walks_over_fields(name: str) -> None:
    """`x.__fields__`, and `sys.modules` for the classes of nested structs; what reads states asks
    whether a package is imported.
    """
    users = [
        path
        for path, file in SOURCES.items()
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.Attribute) and node.attr == name
        if name == "__fields__" or (isinstance(node.value, ast.Name) and node.value.id == "sys")
    ]
    others = {"kafkawire/capture/state_format.py"} if name == "modules" else set()
    assert set(users) - others == {"kafkawire/protocol/fields.py"}


def test_every_field_of_every_message_is_resolved() -> None:
    def check(cls: type[Structure]) -> None:
        rows: tuple[FieldRow, ...] = cls.__fields__
        assert [field.attribute for field in all_fields(cls)] == [row.attribute for row in rows]
        for field, row in zip(all_fields(cls), rows, strict=True):
            assert "[]" * field.is_array + field.element == row.type
            assert (field.struct is not None) == field.element[0].isupper()
            if field.struct is not None:
                assert field.struct.__name__ == field.element
                assert field.struct.__module__ == cls.__module__
                check(field.struct)

    for info in REGISTRY:
        check(REGISTRY.load(info.name))


def test_a_version_has_its_fields_only() -> None:
    assert [field.attribute for field in fields_at(FetchResponse, 0)] == ["responses"]
    everything = {field.attribute for field in all_fields(FetchResponse)}
    assert {field.attribute for field in fields_at(FetchResponse, 17)} == everything
    assert fields_at(FetchResponse, 17) is fields_at(FetchResponse, 17)


def test_types_are_values() -> None:
    responses = field_named(FetchResponse, "responses")
    assert (responses.is_array, responses.struct) == (True, FetchableTopicResponse)
    assert field_named(PartitionData, "records").is_a("records")
    assert field_named(PartitionData, "current_leader").is_tagged
    assert field_named(FetchableTopicResponse, "topic").entity_type == "topicName"
    assert not responses.has_type_of(field_named(PartitionData, "records"))


def test_payloads_of_clients_have_fields() -> None:
    assert field_named(ConnectAssignment, "assignment").struct is ConnectorAssignment
    assert "revoked" not in {field.attribute for field in fields_at(ConnectAssignment, 0)}


def test_steps_lead_to_what_is_chosen() -> None:
    def error(_: type[Structure], field: Field) -> str | None:
        return field.attribute.upper() if field.attribute.endswith("error_code") else None

    def shown(steps: tuple[Step[str], ...]) -> list[Any]:
        return [step.use or {step.attribute: shown(step.inner)} for step in steps]

    assert shown(steps_to(FetchResponse, 12, error)) == [
        "ERROR_CODE",
        {"responses": [{"partitions": ["ERROR_CODE"]}]},
    ]
    assert steps_to(ConnectorAssignment, 0, error) == ()
