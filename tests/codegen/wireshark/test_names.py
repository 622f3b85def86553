"""The naming rule is total, and two fields share a name only where they may."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from kafkawire.protocol.error_code import ErrorCode
from kafkawire_cli.input.protocol_facts import protocol_facts
from kafkawire_codegen import schemas_dir
from kafkawire_codegen.model import load
from kafkawire_codegen.source import SchemaErrors
from kafkawire_codegen.targets import InvalidName, Source, generate_target
from kafkawire_codegen.targets.wireshark import apis, files, lua, named
from kafkawire_codegen.targets.wireshark.names import Names, Position, kind_of
from tests.capture.written import Scenario
from tests.codegen.written import field, struct
from tests.conftest import FIXTURES

from .frames import frame
from .tshark import dissect, dissector, program

NAME: Final = re.compile(r"[a-z0-9_]+(\.[a-z][a-z0-9_]*)+\Z")
TYPES: Final = {
    "bool": "FT_BOOLEAN",
    "int8": "FT_INT8",
    "int16": "FT_INT16",
    "uint16": "FT_UINT16",
    "int32": "FT_INT32",
    "uint32": "FT_UINT32",
    "int64": "FT_INT64",
    "float64": "FT_DOUBLE",
    "uuid": "FT_STRING",
    "string": "FT_STRING",
    "bytes": "FT_BYTES",
    "records": "FT_BYTES",
    "struct": "FT_NONE",
}


@cache
def names_of(folder: Path) -> Names:
    return named(apis(load(folder)))


def schema(name: str, *fields: str, structs: str = "", key: int = 900) -> str:
    """Write the schema of a request or response."""
    side = "response" if name.endswith("Response") else "request"
    head = f'"name": "{name}", "type": "{side}", "apiKey": {key}, "validVersions": "0"'
    rest = f'"flexibleVersions": "none", "commonStructs": [{structs}]'
    return f'{{ {head}, {rest}, "fields": [ {", ".join(fields)} ] }}'


def written(folder: Path, **schemas: str) -> Path:
    """Write schemas by the names of their messages."""
    folder.mkdir(exist_ok=True)
    for name, text in schemas.items():
        (folder / f"{name}.json").write_text(text)
    return folder


@pytest.mark.parametrize(
    "name",
    [
        "fetch.topics.topic",
        "fetch.responses.partitions.records",
        "list_offsets.topics.partitions.timestamp",
        "update_metadata.is_k_raft_controller",
        "delete_topics.topics",
        "delete_topics.topic_names",
    ],
)
def test_names_of_kafka(name: str) -> None:
    assert name in {each.name for each in names_of(schemas_dir()).fields}


def test_fields_of_one_name_are_of_one_api_path_and_type() -> None:
    """And fields of one API, path and type have one name."""
    names = names_of(schemas_dir())
    by_name: dict[str, set[tuple[str, str, str]]] = defaultdict(set)
    by_place: dict[tuple[str, str, str], set[str]] = defaultdict(set)

    def visit(api: str, path: str, positions: list[Position]) -> None:
        for each in positions:
            place = f"{path}.{each.field.attribute.rstrip('_')}"
            key = api, place, kind_of(each.field)
            found = names.fields[each.number - 1]
            assert found.type == kind_of(each.field)
            by_name[found.name].add(key)
            by_place[key].add(found.name)
            visit(api, place, each.inside)

    for message_name, positions in names.positions.items():
        visit(re.sub("(Request|Response)$", "", message_name), "", positions)
    assert all(len(keys) == 1 for keys in by_name.values())
    assert all(len(found) == 1 for found in by_place.values())
    assert len(by_name) == len(names.fields) > 1500
    assert all(NAME.match(name) for name in by_name)


def test_another_type_has_another_name(tmp_path: Path) -> None:
    """Request and response have the path twice, with two types."""
    request = schema("PingRequest", field("Topics", "[]string"), field("Code"))
    topics = struct("Topics", "[]Topic", field("Code", "int64"))
    answer = schema("PingResponse", topics, field("Code", "string"))
    folder = written(tmp_path / "in", PingRequest=request, PingResponse=answer)
    assert [(each.name, each.type) for each in names_of(folder).fields] == [
        ("ping.topics", "string"),
        ("ping.code", "int32"),
        ("ping.topics.code", "int64"),
        ("ping.topics__struct", "struct"),
        ("ping.code__string", "string"),
    ]


def test_structs_that_unfold_without_end_are_refused(tmp_path: Path) -> None:
    names = [*(f"S{n}" for n in range(20)), "int32"]
    structs = (
        f'{{"name": "{name}", "versions": "0+", '
        f'"fields": [{field("L", below)}, {field("R", below)}]}}'
        for name, below in pairwise(names)
    )
    text = schema("PingRequest", field("Top", "S0"), structs=", ".join(structs))
    folder = written(tmp_path / "in", PingRequest=text)
    with pytest.raises(SchemaErrors, match="unfold"):
        generate_target("wireshark", folder, tmp_path / "out")


@pytest.mark.parametrize("name", ["Kafka", "a b", "9x", "a.b", "a" * 33, "x\n"])
def test_names_that_wireshark_refuses(name: str) -> None:
    with pytest.raises(InvalidName, match="invalid protocol name"):
        files(Source([], name, None))


def test_error_codes_are_those_that_are_supplied() -> None:
    text = dissector().read_text("utf-8")
    assert all(f'[{int(code)}]="{code.name}"' in text.replace(" ", "") for code in ErrorCode)
    (alone,) = files(Source([], "mine", None))
    assert "UNKNOWN_SERVER_ERROR" not in alone.text


def test_output_is_the_same_each_time() -> None:
    made = generate_target(
        "wireshark", schemas_dir(), dissector().parent, None, protocol_facts(schemas_dir())
    )
    assert (made.files, made.changed) == (1, 0)


@pytest.mark.parametrize("text", ['"]]..os.exit()--', "a\nb\\n", "\0\x1b[2J", "\ud800é"])
def test_strings_are_one_line_of_ascii(text: str) -> None:
    literal = lua.string(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert '"' not in literal[1:-1].replace("\\\\", "").replace('\\"', "")


def test_wireshark_knows_every_field(tmp_path: Path) -> None:
    """Names, types and descriptions, with hostile texts among them."""
    text = (FIXTURES / "hostile" / "HostileRequest.json").read_text()
    about = '"about": "]] \\u0022 .. os.exit(1) -- \\u0000\\n\\u001b[2J \\ud800"'
    other = schema("EvilRequest", field("Evil", "string", more=about), key=901)
    folder = written(tmp_path / "in", HostileRequest=text, EvilRequest=other)
    generate_target("wireshark", folder, tmp_path, "hostile")
    scripts = [dissector(), tmp_path / "hostile.lua"]
    options = [option for script in scripts for option in ("-X", f"lua_script:{script}")]
    done = subprocess.run(
        [program(), "-G", "fields", *options], capture_output=True, timeout=120, check=True
    )
    assert b"Lua" not in done.stderr
    rows = [line.split("\t") for line in done.stdout.decode("utf-8", "replace").splitlines()]
    found = {row[2]: row for row in rows if row[0] == "F" and "." in row[2]}
    for each in names_of(schemas_dir()).fields:
        row = found[f"kafkawire.{each.name}"]
        assert (row[1], row[3]) == (each.label, TYPES[each.type])
    evil = found["hostile.evil.evil"]
    assert "os.exit(1)" in evil[7]
    assert "hostile.hostile.bytes" in found


def test_a_protocol_of_ones_own(tmp_path: Path) -> None:
    """Schemas that are not Kafka's, with an API key of their own."""
    request = schema("PingRequest", field("Payload", "string"))
    answer = schema("PingResponse", field("Count"))
    folder = written(tmp_path / "in", PingRequest=request, PingResponse=answer)
    generate_target("wireshark", folder, tmp_path)
    head = bytes.fromhex("0384 0000 00000001")
    scenario = Scenario().send(0, frame(head + bytes.fromhex("0002 6d65 0002 6869")))
    scenario.send(1, frame(bytes.fromhex("00000001 00000007")))
    capture = scenario.save(tmp_path / "made.pcap")
    found = [item for _, item in dissect(capture, script=tmp_path / "kafkawire.lua").messages]
    assert [item.value("ping.payload") for item in found] == ["hi", None]
    assert [item.value("ping.count") for item in found] == [None, "7"]
