"""Schemas that are legal and hostile: names, texts, defaults and versions that break generators.

`documents` is a Hypothesis strategy of messages, `COLLECTED` a directory of all that is known to
have gone wrong, one message for each kind of trouble.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from kafkawire_codegen import naming
from kafkawire_codegen.rules.names import wrong_class_name, wrong_message_name
from kafkawire_codegen.wire_types import WIRE_TYPES

Document = dict[str, Any]

LONG: Final = "Abcdefg" * 14
"""A name of 98 letters."""
FIELD_NAMES: Final = (
    *("Bytes", "Int", "Str", "List", "Float", "Bool", "Tuple", "Len", "Range", "Isinstance"),
    *("R", "W", "M", "N", "Version", "Flexible", "Tag", "Size", "Start", "End", "Tags", "Self"),
    *("UnknownTags", "AddTag", "NotInVersion", "NullNotAllowed", "Decode", "Encode", "DecodeFrom"),
    *(
        "EncodeTo",
        "Deviations",
        "Final",
        "Reader",
        "Writer",
        "Limits",
        "Data",
        "Lenient",
        "Error",
        "I64",
    ),
    *("Message", "FieldRows", "Unsupported", "Type", "Object", "Dict", "Item", "None", "True"),
    *("class", "from", "Import", "lambda", "Is", "async", "match", "case", "with", "Init", "Del"),
    *("A", "AW", "AItem", "ClassW", "IntItem", "BytesW", LONG, f"{LONG}Item", f"{LONG}W"),
)
STRUCT_NAMES: Final = (
    *("Bytes", "Int", "Str", "List", "Float", "Bool", "Exception", "KeyError", "Any"),
    *("Optional", "Object", "Dict", "Field", "Decode", "Encode", "NoX", "X", "IsDefaultX", "Self"),
    *("I64", "Type", "Super", "Property", "Registry", "ApiKey", "Enum", "Literal", "Import", LONG),
)
MESSAGE_NAMES: Final = (
    *("Import", "Class", "Bytes", "Int", "List", "Exception", "Typing", "Kafkawire", "Enum", "M"),
    *("Object", "Init", "Registries", LONG),
)
TEXTS: Final = (
    *("", "plain", '"', "'''", '"""', "\\", "\\" * 300, 'ends with "', "ends with \\", "\n\r\t\f"),
    *("\x00", "a\x00b", "\x7f\x1b[0m", "{{ x }} {% if %}", "%s {0}", "a  # b = c if d else e or f"),
    *("m.x != 1 is not None", "żółć", "\U0001f600", "\u2028\u2029\x85", "\ufeff", "\\N{DASH}"),
    *("long " * 40, "l" * 500, "é" * 120, "'\"\\" * 60, "None", "null ", "0", "\\x00"),
)
FLOATS: Final = ("NaN", "Infinity", "-Infinity", "1e308", "-0.0", "5e-324", "1.5", 2, -1e22, "007")
UUIDS: Final = ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ", "_____________________w")


def unlike(names: Iterable[str], folded: set[str]) -> list[str]:
    """Keep the names that fold to none of `folded`."""
    return [name for name in names if not folds(name) & folded]


def folds(name: str) -> set[str]:
    return {name.lower(), naming.snake(name)}


words = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
texts = st.sampled_from(TEXTS) | st.text(max_size=20)


@st.composite
def names(draw: st.DrawFn, pool: tuple[str, ...], taken: set[str], *, capital: bool) -> str:
    """Draw a name that is none of those taken, in any spelling that Python folds together."""
    free = unlike(pool, taken)
    if capital:
        free = [name for name in free if wrong_class_name(name, "struct") is None]
    from_pool = draw(st.integers(0, 3)) > 0
    if free and from_pool:
        name = draw(st.sampled_from(free))
    else:
        name = draw(words)
        name = name[:1].upper() + name[1:] if capital else name
        while folds(name) & taken or (capital and wrong_class_name(name, "struct")):
            name += "x"
    taken |= folds(name)
    return name


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """Draw one message of any type, as its file says it."""
    return draw(_Drawing(draw).message())


class _Drawing:
    """Draws one message; knows its versions and which struct names are taken."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.low = draw(st.integers(0, 2))
        self.high = self.low + draw(st.integers(0, 3))
        self.flexible = draw(st.none() | st.integers(self.low, self.high))
        self.structs: set[str] = set()

    def message(self) -> st.SearchStrategy[Document]:
        kind = self.draw(st.sampled_from(["data", "request", "response"]))
        free = tuple(n for n in MESSAGE_NAMES if wrong_message_name(n) is None)
        name = self.draw(names(free, {"api_key", "any"} | self.structs, capital=True))
        name += {"request": "Request", "response": "Response"}.get(kind, "")
        self.structs |= folds(name)
        common = [
            self.draw(names(STRUCT_NAMES, self.structs, capital=True))
            for _ in range(self.draw(st.integers(0, 2)))
        ]
        made = {
            "name": name,
            "type": kind,
            "validVersions": f"{self.low}-{self.high}",
            "flexibleVersions": "none" if self.flexible is None else f"{self.flexible}+",
            "about": self.draw(texts),
            "fields": self.fields(0, common),
            "commonStructs": [
                {"name": each, "versions": "0+", "fields": self.fields(2, common[number + 1 :], 1)}
                for number, each in enumerate(common)
            ],
        }
        return st.just(made | ({} if kind == "data" else {"apiKey": 7000}))

    def fields(self, depth: int, common: list[str], least: int = 0) -> list[Document]:
        taken: set[str] = set()
        made: list[Document] = []
        tags = 0
        for _ in range(self.draw(st.integers(max(least, depth and 1), 5 - depth))):
            field = self.field(self.draw(names(FIELD_NAMES, taken, capital=False)), depth, common)
            if self.flexible is not None and self.draw(st.integers(0, 2)) == 0:
                first = int(str(field["versions"]).rstrip("+").partition("-")[0])
                tagged = max(first, self.draw(st.integers(self.flexible, self.high)))
                field |= {"versions": f"{first}+", "taggedVersions": f"{tagged}+", "tag": tags}
                tags += 1
                if "nullableVersions" in field:
                    field["nullableVersions"] = "0+"
            made.append(field)
        return made

    def field(self, name: str, depth: int, common: list[str]) -> Document:
        draw = self.draw
        low = draw(st.integers(0, self.high))
        ends = draw(st.none() | st.integers(low, self.high + 1))
        field: Document = {
            "name": name,
            "versions": f"{low}+" if ends is None else f"{low}-{ends}",
            "ignorable": draw(st.booleans()),
            "about": draw(texts),
        }
        kinds = [*WIRE_TYPES, *(["struct"] if depth < 3 else []), *common]
        element = draw(st.sampled_from(kinds))
        is_array = draw(st.integers(0, 2)) == 0 and element != "records"
        if element == "struct":
            element = draw(names(STRUCT_NAMES, self.structs, capital=True))
            field["fields"] = self.fields(depth + 1, common, 1)
        field["type"] = "[]" * is_array + element
        nullable = is_array or element in ("string", "bytes", "records") or element[0].isupper()
        if nullable and draw(st.booleans()):
            field["nullableVersions"] = draw(st.sampled_from(["0+", field["versions"]]))
            if draw(st.booleans()):
                field |= {"nullableVersions": "0+", "default": "null"}
        if "default" not in field and not is_array and draw(st.booleans()):
            field |= self.default(element)
        return field

    def default(self, element: str) -> Document:
        wire = WIRE_TYPES.get(element)
        if wire is not None and wire.low is not None and wire.high is not None:
            value = self.draw(st.integers(wire.low, wire.high) | st.sampled_from([wire.low, -1, 0]))
            value = max(value, wire.low)
            return {"default": self.draw(st.sampled_from([value, str(value), hex(value)]))}
        pools: Mapping[str, st.SearchStrategy[Any]] = {
            "bool": st.sampled_from(["true", "false", True, False]),
            "string": texts.filter(lambda text: text != "null"),
            "float64": st.sampled_from(FLOATS) | st.floats(-1e9, 1e9),
            "uuid": st.sampled_from(UUIDS),
        }
        return {"default": self.draw(pools[element])} if element in pools else {}


def write(directory: Path, documents: Iterable[Document]) -> Path:
    """Write messages to their files in a directory, made if missing."""
    directory.mkdir(parents=True, exist_ok=True)
    for document in documents:
        text = json.dumps(document, ensure_ascii=bool(len(document["name"]) % 2))
        (directory / f"{document['name']}.json").write_text(text, "utf-8")
    return directory


def field(name: str, type_: str, versions: str = "0+", **more: Any) -> Document:
    return {"name": name, "type": type_, "versions": versions, **more}


def message(name: str, *fields: Document, **more: Any) -> Document:
    head = {"name": name, "type": "data", "validVersions": "0-2", "flexibleVersions": "1+"}
    return {**head, "fields": list(fields), **more}


def _tagged(number: int, name: str, type_: str, **more: Any) -> Document:
    return field(name, type_, taggedVersions="1+", tag=number, ignorable=True, **more)


COLLECTED: Final[tuple[Document, ...]] = (
    message(
        "EveryName",
        *(field(name, "string", nullableVersions="1+") for name in FIELD_NAMES if name != "Start"),
        field("Start", "int64"),
        _tagged(0, "Rack", "[]int32"),
    ),
    message(
        "EveryArray",
        *(field(name, "[]int32", "1+", nullableVersions="2+") for name in FIELD_NAMES[::2]),
        *(_tagged(n, name, "[]uuid") for n, name in enumerate(FIELD_NAMES[1::2])),
    ),
    message(
        "EveryStruct",
        *(
            field(f"F{n}", "[]" * (n % 2) + name, fields=[field("X", "int8", default=n)])
            for n, name in enumerate(STRUCT_NAMES)
        ),
    ),
    message(
        "EveryTaggedStruct",
        *(
            _tagged(n, f"F{n}", name, fields=[field("List", "[]string"), field("Int", "float64")])
            for n, name in enumerate(STRUCT_NAMES)
        ),
    ),
    message("EveryType", *(field(f"{t}Field", t) for t in WIRE_TYPES)),
    message(
        "EveryArrayType", *(field(f"{t}Field", f"[]{t}") for t in WIRE_TYPES if t != "records")
    ),
    message(
        "EveryDefault",
        *(field(f"S{n}", "string", "1+", default=t) for n, t in enumerate(TEXTS)),
        *(field(f"F{n}", "float64", "2+", default=f) for n, f in enumerate(FLOATS)),
        *(field(f"U{n}", "uuid", "1+", default=u) for n, u in enumerate(UUIDS)),
    ),
    message(
        "EveryTaggedDefault",
        *(
            _tagged(n, f"S{n}", kind, default=default)
            for n, (kind, default) in enumerate(
                [
                    *(("string", text) for text in TEXTS),
                    *(("float64", text) for text in FLOATS),
                    *(("uuid", text) for text in UUIDS),
                ]
            )
        ),
        about="\\" * 200 + '"""\x00',
    ),
    message(
        LONG,
        field(LONG, "string", "1+", default="x" * 200),
        field(f"{LONG}2", f"[]{LONG}3", "2+", nullableVersions="2+", default="null"),
        _tagged(0, f"{LONG}4", f"{LONG}5", fields=[field(LONG, "int8"), field("B", "bytes")]),
        commonStructs=[
            {"name": f"{LONG}3", "versions": "0+", "fields": [field(LONG, "uuid", "0-1")]}
        ],
    ),
    message(
        "Apart",
        field("Old", "Shared", "0"),
        field("New", "[]Shared", "2+"),
        commonStructs=[
            {
                "name": "Shared",
                "versions": "0+",
                "fields": [field("A", "int8"), field("B", "string")],
            }
        ],
    ),
    message("Import", field("Import", "bool", default="true"), about='Ends with "\\'),
    message("ManyTags", *(_tagged(n, f"T{n}", "int8", default=-1) for n in range(300))),
)
"""Messages that were, or could be, generated wrong."""

RISKY: Final = (
    *("Bytes", "Int", "Str", "List", "Float", "Bool", "R", "W", "M", "Version", "Tag", "Start"),
    *("AddTag", "None", "class"),
)
COMPILED: Final[tuple[Document, ...]] = (
    message(
        "FewNames",
        *(field(name, "int32") for name in RISKY),
        field("AW", "[]string", nullableVersions="2+"),
        _tagged(0, "A", "string", default=TEXTS[13]),
        _tagged(1, LONG, "[]uuid"),
    ),
    message(
        "FewStructs",
        *(
            field(f"F{n}", "[]" * (n % 2) + name, fields=[field("X", "int8", default=n)])
            for n, name in enumerate(("Bytes", "Int", "List", "Exception"))
        ),
    ),
    message(
        "FewDefaults",
        *(field(f"S{n}", "string", "1+", default=TEXTS[n]) for n in (5, 11, 17, 19, 21)),
        *(_tagged(n, f"F{n}", "float64", default=text) for n, text in enumerate(FLOATS[:3])),
        _tagged(3, "U", "uuid", default=UUIDS[1]),
        about=TEXTS[6] + TEXTS[5] + TEXTS[11],
    ),
    *(d for d in COLLECTED if d["name"] in ("EveryType", "Apart", "Import")),
)
"""Some of them that a C compiler is quick with: hundreds of fields take minutes."""
