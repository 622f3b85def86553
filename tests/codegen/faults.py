"""Schemas each wrong in exactly one way, with the rule broken and the place.

The mark § stands right before the place that must be reported; it is taken out before reading.
"""

from __future__ import annotations

from typing import NamedTuple

MARK = "§"
PLAIN = '"apiKey": 7, "validVersions": "0-1"'
INFLEXIBLE = '"flexibleVersions": "none"'
END = f'{INFLEXIBLE}, "fields": [] }}'


class Fault(NamedTuple):
    """Files by name, one of which has the mark; `path` is the schema path of the finding."""

    rule: str
    path: str
    files: dict[str, str]


def field(rule: str, path: str, *fields: str, common: str = "") -> Fault:
    """A fault in the fields of a data message M, versions 0-3, flexible from 2."""
    structs = f'"commonStructs": [\n    {common}\n  ],\n  ' if common else ""
    text = (
        '{\n  "name": "M", "type": "data", "validVersions": "0-3", "flexibleVersions": "2+",\n  '
        + structs
        + '"fields": [\n    '
        + ",\n    ".join(fields)
        + "\n  ]\n}\n"
    )
    return Fault(rule, path, {"M.json": text})


def head(rule: str, path: str, *, name: str = "M", keys: str) -> Fault:
    """A fault in the head of a message without fields."""
    more = "" if "flexibleVersions" in keys else f"{INFLEXIBLE}, "
    return Fault(rule, path, {f"{name}.json": f'{{ {keys},\n  {more}"fields": [] }}\n'})


def pair(
    rule: str,
    path: str,
    *,
    request: str = "",
    response: str = "",
    more: dict[str, str] | None = None,
) -> Fault:
    """A fault between A's request and response, or between them and more files."""
    keys = {"Request": request, "Response": response}
    files = {
        f"A{suffix}.json": f'{{ "name": "A{suffix}", "type": "{suffix.lower()}",\n'
        f'  {keys[suffix] or PLAIN}, {INFLEXIBLE}, "fields": [] }}'
        for suffix in keys
    }
    return Fault(rule, path, files | (more or {}))


INT = '{ "name": "%s", "type": "int32", "versions": "0+" }'
REST = f'"type": "data", "validVersions": "0", {INFLEXIBLE}'
DATA = '"name": "M", "type": "data"'

S = '{ "name": "S", "versions": "0+", "fields": [' + INT % "B" + "] }"
USES_S = '{ "name": "A", "type": "S", "versions": "0+" }'


def chain(length: int, times: int = 1) -> str:
    """Write common structs, each of which holds the next one, once or several times."""
    use = '{ "name": "F%d", "type": "S%d", "versions": "0+" }'
    fields = [", ".join(use % (t, n + 1) for t in range(times)) for n in range(length - 1)]
    return ",\n".join(
        f'{{ "name": "S{n}", "versions": "0+", "fields": [{inner}] }}'
        for n, inner in enumerate([*fields, INT % "B"])
    )


FORM = [
    head("syntax", "", keys=f'{DATA}, "apiKey": §1e400, "validVersions": "0"'),
    Fault("syntax", "", {"M.json": '{ "name": "M"\n  §"type": "data" }'}),
    Fault("syntax", "", {"M.json": "§"}),
    Fault("syntax", "", {"M.json": "{}\n §1"}),
    head("syntax", "", keys=f"{DATA}, \"validVersions\": §'0'"),
    head("duplicate-key", "M", keys=f'{DATA}, "validVersions": "0", §"validVersions": "1"'),
    field(
        "duplicate-key",
        "M.A",
        '{ "name": "A", "type": "int32", "versions": "0+", §"type": "int8" }',
    ),
    field("unknown-key", "M.A", '{ "name": "A", "type": "int8", "versions": "0+", §"taged": "1" }'),
    head("unknown-key", "M", keys=f'{DATA}, "validVersions": "0", §"apiKeys": 1'),
    field(
        "unknown-key",
        "M.commonStructs.S",
        USES_S,
        common='{ "name": "S", "versions": "0+", §"type": "x", "fields": [' + INT % "B" + "] }",
    ),
    field("missing-key", "M.A", '§{ "name": "A", "type": "int8" }'),
    field("missing-key", "M.A", '§{ "name": "A", "versions": "0+" }'),
    field("missing-key", "M.?", '§{ "type": "int8", "versions": "0+" }'),
    Fault("missing-key", "M", {"M.json": f'§{{ {DATA}, "fields": [] }}'}),
    Fault("missing-key", "M", {"M.json": f'§{{ {DATA}, "validVersions": "0", {INFLEXIBLE} }}'}),
    Fault("missing-key", "M", {"M.json": '§{ "type": "data", "validVersions": "0", ' + END}),
    Fault("wrong-kind", "", {"M.json": "§[]"}),
    head("wrong-kind", "M", keys=f'{DATA}, "validVersions": "0", "commonStructs": §{{}}'),
    head("wrong-kind", "M", keys=f'{DATA}, "validVersions": §["0"]'),
    head("wrong-kind", "M", keys=f'{DATA}, "validVersions": "0", "listeners": §["broker", 1]'),
    head("wrong-kind", "M", keys=f'{DATA}, "validVersions": "0", "apiKey": §"one"'),
    field("wrong-kind", "M.A", '{ "name": "A", "type": "int8", "versions": "0+", "default": §[] }'),
    field("wrong-kind", "M.A", '{ "name": "A", "type": §1, "versions": "0+" }'),
    field(
        "wrong-kind", "M.A", '{ "name": "A", "type": "int8", "versions": "0+", "mapKey": §"no" }'
    ),
    field("wrong-kind", "M", '§"A"'),
    pair(
        "wrong-kind",
        "ARequest",
        request='"apiKey": 7, "validVersions": "0-1", "headerVersions": { "0+": §"new" }',
    ),
    head("ill-formed-versions", "M", keys=f'{DATA}, "validVersions": §"0-"'),
    head("ill-formed-versions", "M", keys=f'{DATA}, "validVersions": §"3-1"'),
    head("ill-formed-versions", "M", keys=f'{DATA}, "validVersions": §"0-40000"'),
    field("ill-formed-versions", "M.A", '{ "name": "A", "type": "int8", "versions": §"all" }'),
    pair(
        "ill-formed-versions",
        "ARequest",
        request='"apiKey": 7, "validVersions": "0-1", "headerVersions": { §"x": "1" }',
    ),
]

FIELDS = [
    field("field-name", "M.a-b", '{ "name": §"a-b", "type": "int8", "versions": "0+" }'),
    field("field-name", "M.9a", '{ "name": §"9a", "type": "int8", "versions": "0+" }'),
    field("array-of-arrays", "M.A", '{ "name": "A", "type": §"[][]int8", "versions": "0+" }'),
    field(
        "struct-name",
        "M.A",
        '{ "name": "A", "type": §"s", "versions": "0+", "fields": [' + INT % "B" + "] }",
    ),
    field(
        "struct-name",
        "M.A",
        '{ "name": "A", "type": §"[]None", "versions": "0+", "fields": [' + INT % "B" + "] }",
    ),
    field("unknown-type", "M.A", '{ "name": "A", "type": §"int23", "versions": "0+" }'),
    field("unknown-type", "M.A", '{ "name": "A", "type": §"[]Topic", "versions": "0+" }'),
    field(
        "struct-without-fields",
        "M.A",
        '{ "name": "A", "type": "S", "versions": "0+", "fields": §[] }',
    ),
    field(
        "fields-on-primitive",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "0+", "fields": §[' + INT % "B" + "] }",
    ),
    field(
        "fields-on-primitive",
        "M.A",
        '{ "name": "A", "type": "[]int8", "versions": "0+", "fields": §[' + INT % "B" + "] }",
    ),
    field("never-present", "M.A", '{ "name": "A", "type": "int8", "versions": §"4+" }'),
    field(
        "never-present",
        "M.A[].B",
        '{ "name": "A", "type": "[]S", "versions": "2+", "fields": ['
        + INT % "C"
        + ', { "name": "B", "type": "int8", "versions": §"0-1" }] }',
    ),
    field(
        "nullable-type",
        "M.A",
        '{ "name": "A", "type": "uuid", "versions": "0+", "nullableVersions": §"0+" }',
    ),
    field(
        "nullable-type",
        "M.A",
        '{ "name": "A", "type": "bool", "versions": "0+", "nullableVersions": §"0+" }',
    ),
    field(
        "nullable-outside",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0-1", "nullableVersions": §"2+" }',
    ),
    field(
        "map-key-place", "M.A", '{ "name": "A", "type": "int8", "versions": "0+", "mapKey": §true }'
    ),
    field(
        "map-key-place",
        "M.A.B",
        '{ "name": "A", "type": "S", "versions": "0+", "fields": ['
        '{ "name": "B", "type": "int8", "versions": "0+", "mapKey": §true }] }',
    ),
    field(
        "map-key-type",
        "M.A[].B",
        '{ "name": "A", "type": "[]S", "versions": "0+", "fields": ['
        '{ "name": "B", "type": "[]int8", "versions": "0+", "mapKey": §true }] }',
    ),
    field(
        "zero-copy-type",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0+", "zeroCopy": §true }',
    ),
    field(
        "entity-type-name",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0+", "entityType": §"topic name" }',
    ),
    field(
        "versions-beyond",
        "M.A",
        '{ "name": "A", "type": "string", "versions": §"2-9" }',
    ),
    field(
        "versions-beyond",
        "M.A[].B",
        '{ "name": "A", "type": "[]S", "versions": "0-3", "fields": ['
        '{ "name": "B", "type": "int8", "versions": §"0-4" }] }',
    ),
    field(
        "nullable-beyond",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0+", "nullableVersions": §"2-9" }',
    ),
    field(
        "unknown-entity-type",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0+", "entityType": §"topic" }',
    ),
    field(
        "entity-type-mismatch",
        "M.A",
        '{ "name": "A", "type": "int64", "versions": "0+", "entityType": §"brokerId" }',
    ),
    field(
        "entity-type-mismatch",
        "M.A",
        '{ "name": "A", "type": "[]uuid", "versions": "0+", "entityType": §"topicName" }',
    ),
    field(
        "field-flexible-type",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "0+", "flexibleVersions": §"none" }',
    ),
    field(
        "field-flexible-outside",
        "M.A",
        '{ "name": "A", "type": "string", "versions": "0+", "flexibleVersions": §"1+" }',
    ),
]

TAGS = [
    field("tag-alone", "M.A", '{ "name": "A", "type": "int8", "versions": "2+", "tag": §0 }'),
    field(
        "tagged-versions-alone",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "2+", "taggedVersions": §"2+" }',
    ),
    field(
        "tag-range", "M.A", '{ "name": "A", "type": "int8", "taggedVersions": "2+", "tag": §-1 }'
    ),
    field(
        "tagged-versions-closed",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "2+","taggedVersions": §"2-3", "tag": 0 }',
    ),
    field(
        "tagged-versions-outside",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "3+","taggedVersions": §"2+", "tag": 0 }',
    ),
    field(
        "tagged-versions-inflexible",
        "M.A",
        '{ "name": "A", "type": "int8", "versions": "0+","taggedVersions": §"1+", "tag": 0 }',
    ),
    field(
        "tagged-map-key",
        "M.A[].B",
        '{ "name": "A", "type": "[]S", "versions": "2+", "fields": ['
        '{ "name": "B", "type": "int8", "taggedVersions": "2+", "tag": 0, "mapKey": §true }] }',
    ),
    field(
        "tagged-nullability",
        "M.A",
        '{ "name": "A", "type": "string", "taggedVersions": "2+", "tag": 0,'
        '"nullableVersions": §"3+" }',
    ),
    field(
        "duplicate-tag",
        "M.B",
        '{ "name": "A", "type": "int8", "taggedVersions": "2+", "tag": 0 }',
        '{ "name": "B", "type": "int8", "taggedVersions": "2+", "tag": §0 }',
    ),
    field(
        "tag-gap",
        "M.B",
        '{ "name": "A", "type": "int8", "taggedVersions": "2+", "tag": 0 }',
        '{ "name": "B", "type": "int8", "taggedVersions": "2+", "tag": §2 }',
    ),
    field("tag-gap", "M.A", '{ "name": "A", "type": "int8", "taggedVersions": "2+", "tag": §1 }'),
]


def default(rule: str, type_: str, text: str, more: str = "") -> Fault:
    """A field A whose default is at fault."""
    keys = f'"type": "{type_}", "versions": "0+"{more}, "default": §{text}'
    return field(rule, "M.A", f'{{ "name": "A", {keys} }}')


STRUCT = ', "fields": [' + INT % "B" + "]"
DEFAULTS = [
    default("default-ill-formed", "int32", '"many"'),
    default("default-ill-formed", "int32", '"null"'),
    default("default-ill-formed", "int32", '"0x"'),
    default("default-ill-formed", "int32", "1.5"),
    default("default-ill-formed", "int16", "true"),
    default("default-ill-formed", "bool", '"yes"'),
    default("default-ill-formed", "bool", "1"),
    default("default-ill-formed", "float64", '"1,5"'),
    default("default-ill-formed", "uuid", '"AAAAAAAAAAAAAAAAAAAAA"'),
    default("default-ill-formed", "uuid", '"AAAAAAAAAAAAAAAAAAAA=="'),
    default("default-ill-formed", "float64", '"inf"'),
    default("default-out-of-range", "float64", '"1e400"'),
    default("default-out-of-range", "float64", '"-1e999"'),
    default("default-out-of-range", "int64", f'"{"9" * 5000}"'),
    default("default-out-of-range", "int32", f'"0x{"f" * 5000}"'),
    default("default-out-of-range", "string", f'"{"é" * 16384}"'),
    default("default-out-of-range", "int8", '"128"'),
    default("default-out-of-range", "int8", "-129"),
    default("default-out-of-range", "uint16", '"-1"'),
    default("default-out-of-range", "uint32", '"0x100000000"'),
    default("default-out-of-range", "int64", '"9223372036854775808"'),
    default("default-not-null", "S", '"{}"', STRUCT),
    default("default-not-null", "[]int32", '"[]"'),
    default("default-not-null", "bytes", '"00"'),
    default("default-not-null", "records", '"00"'),
    default("default-null-not-nullable", "string", '"null"'),
    default("default-null-not-nullable", "string", '"null"', ', "nullableVersions": "1+"'),
    default("default-null-not-nullable", "S", '"null"', STRUCT),
    default("default-null-not-nullable", "[]S", '"null"', STRUCT),
]

STRUCTS = [
    field(
        "duplicate-field", "M.A", INT % "A", '{ "name": §"A", "type": "int8", "versions": "1+" }'
    ),
    field(
        "duplicate-field",
        "M.topicid",
        INT % "TopicId",
        '{ "name": §"topicid", "type": "int8", "versions": "0+" }',
    ),
    field(
        "common-struct-name",
        "M.commonStructs.s",
        '{ "name": "A", "type": "s", "versions": "0+" }',
        common='{ "name": §"s", "versions": "0+", "fields": [' + INT % "B" + "] }",
    ),
    field(
        "struct-defined-twice",
        "M.commonStructs.S",
        USES_S,
        common=S + ",\n" + S.replace('"S"', '§"S"'),
    ),
    field(
        "struct-defined-twice",
        "M.B",
        '{ "name": "A", "type": "S", "versions": "0+", "fields": [' + INT % "C" + "] }",
        '{ "name": "B", "type": §"S", "versions": "0+", "fields": [' + INT % "D" + "] }",
    ),
    field(
        "struct-defined-twice",
        "M.A",
        '{ "name": "A", "type": §"M", "versions": "0+", "fields": [' + INT % "C" + "] }",
    ),
    field(
        "struct-defined-twice",
        "M.A.C",
        '{ "name": "A", "type": "S", "versions": "0+", "fields": ['
        '{ "name": "C", "type": §"S", "versions": "0+", "fields": [' + INT % "D" + "] }] }",
    ),
    field(
        "struct-defined-twice",
        "M.B",
        '{ "name": "A", "type": "FooID", "versions": "0+", "fields": [' + INT % "C" + "] }",
        '{ "name": "B", "type": §"FooId", "versions": "0+", "fields": [' + INT % "D" + "] }",
    ),
    field(
        "nesting-too-deep",
        "M.A",
        '{ "name": "A", "type": §"S0", "versions": "0+" }',
        common=chain(33),
    ),
    field(
        "nesting-too-deep",
        "M.A",
        '{ "name": "A", "type": §"S0", "versions": "0+" }',
        common=chain(5000),
    ),
    field(
        "common-struct-with-fields",
        "M.A",
        '{ "name": "A", "type": "S", "versions": "0+", "fields": §[' + INT % "B" + "] }",
        common=S,
    ),
    field("common-struct-unused", "M.commonStructs.S", INT % "A", common=S.replace('"S"', '§"S"')),
    field(
        "recursive-struct",
        "M.commonStructs.S.B",
        USES_S,
        common='{ "name": "S", "versions": "0+", "fields": ['
        '{ "name": "B", "type": §"[]S", "versions": "0+" }] }',
    ),
    field(
        "recursive-struct",
        "M.commonStructs.T.B",
        USES_S,
        common='{ "name": "S", "versions": "0+", "fields": ['
        '{ "name": "B", "type": "T", "versions": "0+" }] },\n'
        '{ "name": "T", "versions": "0+", "fields": ['
        '{ "name": "B", "type": §"S", "versions": "0+" }] }',
    ),
]

MESSAGES = [
    head("message-name", "m", name="m", keys='"name": §"m", "type": "data", "validVersions": "0"'),
    head(
        "message-name",
        "Reader",
        name="Reader",
        keys='"name": §"Reader", "type": "data", "validVersions": "0"',
    ),
    *(
        head(
            "message-name", n, name=n, keys=f'"name": §"{n}", "type": "data", "validVersions": "0"'
        )
        for n in ("ApiKey", "APIKey", "MessageIndex", "Any", "ValueError", "FIRST", "LinkedMessage")
    ),
    head(
        "message-name",
        "L" * 129,
        name="L" * 129,
        keys=f'"name": §"{"L" * 129}", "type": "data", "validVersions": "0"',
    ),
    Fault(
        "message-suffix",
        "Request",
        {
            "Request.json": '{ "name": §"Request", "type": "request", "apiKey": 1, '
            '"validVersions": "0", ' + END,
            "Response.json": '{ "name": §"Response", "type": "response", "apiKey": 1, '
            '"validVersions": "0", ' + END,
        },
    ),
    head("message-type", "M", keys='"name": "M", "type": §"dta", "validVersions": "0"'),
    Fault(
        "message-suffix",
        "A",
        {"A.json": '{ "name": §"A", "type": "request", "apiKey": 1, "validVersions": "0", ' + END},
    ),
    head("file-name", "M", name="N", keys='"name": §"M", "type": "data", "validVersions": "0"'),
    Fault(
        "api-key-missing",
        "M",
        {"M.json": '§{ "name": "M", "type": "metadata", "validVersions": "0", ' + END},
    ),
    head("api-key-misplaced", "M", keys=f'{DATA}, "apiKey": §1, "validVersions": "0"'),
    head(
        "api-key-range",
        "M",
        keys='"name": "M", "type": "metadata", "apiKey": §-1,\n"validVersions": "0"',
    ),
    pair(
        "unknown-listener",
        "ARequest",
        request='"apiKey": 7, "validVersions": "0-1", "listeners": §["brokers"]',
    ),
    head(
        "listeners-misplaced", "M", keys=f'{DATA}, "validVersions": "0", "listeners": §["broker"]'
    ),
    head(
        "unstable-misplaced",
        "M",
        keys=f'{DATA}, "validVersions": "0", "latestVersionUnstable": §true',
    ),
    head(
        "header-versions-misplaced",
        "M",
        keys=f'{DATA}, "validVersions": "0", "headerVersions": §{{ "0+": "1" }}',
    ),
    pair(
        "header-versions-gap",
        "ARequest",
        request='"apiKey": 7, "validVersions": "0-1", "headerVersions": §{ "0": 1, "2+": 2 }',
    ),
    pair(
        "header-versions-gap",
        "ARequest",
        request='"apiKey": 7, "validVersions": "0-1", "headerVersions": §{ "0-1": 1 }',
    ),
    head("valid-versions-open", "M", keys=f'{DATA}, "validVersions": §"0+"'),
    Fault(
        "flexible-versions-missing",
        "M",
        {"M.json": f'§{{ {DATA}, "validVersions": "0", "fields": [] }}'},
    ),
    head(
        "flexible-versions-beyond",
        "M",
        keys=f'{DATA}, "validVersions": "0-3", "flexibleVersions": §"5+"',
    ),
    head(
        "flexible-versions-closed",
        "M",
        keys=f'{DATA}, "validVersions": "0-3", "flexibleVersions": §"2-3"',
    ),
    head(
        "deprecated-versions-outside",
        "M",
        keys=f'{DATA}, "validVersions": "1-3", "deprecatedVersions": §"0-1"',
    ),
]


def coordinator(rule: str, keys: str) -> Fault:
    """A coordinator key at fault, with its value."""
    text = '{ "name": "A%s", "type": "coordinator-%s", "apiKey": 1, %s, "fields": [] }'
    key, value = (
        text % ("Key", "key", keys),
        text % ("Value", "value", f'"validVersions": "0", {INFLEXIBLE}'),
    )
    return Fault(rule, "AKey", {"AKey.json": key, "AValue.json": value})


TOGETHER = [
    coordinator("coordinator-key-versions", f'"validVersions": §"0-1", {INFLEXIBLE}'),
    coordinator("coordinator-key-flexible", '"validVersions": "0", "flexibleVersions": §"0+"'),
    Fault(
        "duplicate-message",
        "Mm",
        {
            "MM.json": '{ "name": "MM", "type": "data", "validVersions": "0", ' + END,
            "Mm.json": '{ "name": §"Mm", "type": "data", "validVersions": "0", ' + END,
        },
    ),
    pair(
        "duplicate-api-key",
        "BRequest",
        more={
            "BRequest.json": '{ "name": "BRequest", "type": "request", "apiKey": §7, '
            '"validVersions": "0-1", ' + END,
            "BResponse.json": '{ "name": "BResponse", "type": "response", "apiKey": §7, '
            '"validVersions": "0-1", ' + END,
        },
    ),
    Fault(
        "unpaired",
        "ARequest",
        {
            "ARequest.json": '{ "name": §"ARequest", "type": "request", '
            '"apiKey": 1, "validVersions": "0", ' + END
        },
    ),
    Fault(
        "unpaired",
        "AKey",
        {
            "AKey.json": '{ "name": §"AKey", "type": "coordinator-key", '
            '"apiKey": 1, "validVersions": "0", ' + END
        },
    ),
    pair("pair-api-key", "AResponse", response='"apiKey": §8, "validVersions": "0-1"'),
    Fault(
        "api-key-missing",
        "ARequest",
        {
            "ARequest.json": '§{ "name": "ARequest", "type": "request", "validVersions": "0", '
            + END,
            "AResponse.json": '{ "name": "AResponse", "type": "response", "apiKey": 7, '
            '"validVersions": "0", ' + END,
        },
    ),
    pair("pair-versions", "AResponse", response='"apiKey": 7, "validVersions": §"0-2"'),
]

UNTIDY = [
    Fault("stray-bracket", "M", {"M.json": f'{{ {DATA}, "validVersions": "0", {END}\n§}}\n'}),
    head("repeated-key", "M", keys=f'{DATA}, "validVersions": "0", §"validVersions": "0"'),
]

FAULTS = [
    *FORM,
    *FIELDS,
    *TAGS,
    *DEFAULTS,
    *STRUCTS,
    *MESSAGES,
    *TOGETHER,
    *UNTIDY,
]
