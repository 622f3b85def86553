"""Legal schemas that are hostile to TypeScript: names that it has, text that ends comments."""

from __future__ import annotations

from typing import Final

from ..hostile import COLLECTED, Document, field, message

NAMES: Final = (
    *("Constructor", "ToString", "HasOwnProperty", "ValueOf", "IsPrototypeOf", "Prototype", "Then"),
    *("ToLocaleString", "PropertyIsEnumerable", "UnknownTags", "Arguments", "Eval", "Await"),
    *("Static", "Implements", "Function", "Typeof", "Undefined", "Debugger", "Delete", "Let"),
    *("At", "Block", "Failed", "Failure", "I", "Init", "Known", "M", "N", "Place", "R", "W", "Tag"),
    *("Tags", "Size", "Start", "Version", "Flexible", "Create", "Read", "Write", "Name", "Type"),
    *("DecodeNumber", "EncodeNumber", "CreateNumber", "IsDefaultNumber", "Data", "Message"),
    *(
        "CheckVersion",
        "OpenWriter",
        "FirstVersion",
        "Declare",
        "Namespace",
        "Abstract",
        "Satisfies",
    ),
)
"""Names of fields: reserved words, inherited properties, variables of generated code."""
STRUCTS: Final = (
    *("Number", "Array", "Object", "Uint8Array", "Promise", "Partial", "Error", "Record", "BigInt"),
    *(
        "Map",
        "String",
        "Boolean",
        "Function",
        "Symbol",
        "Codec",
        "UnknownTag",
        "Failure",
        "Request",
    ),
    *("Response", "MessageName", "Modules", "DecodeError", "DataView", "Infinity", "NaN", "Date"),
)
MESSAGES: Final = ("Promise", "Codec", "Modules", "Uint8Array", "FrameSplitter", "Object", "Index")
TEXTS: Final = (
    "*/ throw 1; /*", "*/", "// */ \n */ import 'x'", "`${process.exit()}`", "{{ 7 }} {% if %} {#",
    "\u2028*/\u2029", "a\u202eb */", "@deprecated {@link x", "<script>", "\\", "\x00\x1b[31m",
    "'\"", "\ud7ff\ufeff", "*" * 300 + "/", "wide " * 100, "\r*/\r",
)  # fmt: skip


def _tagged(number: int, name: str, type_: str) -> Document:
    more = {"taggedVersions": "1+", "tag": number, "about": TEXTS[number % len(TEXTS)]}
    return field(name, type_, "1+", ignorable=bool(number % 2), **more)


HOSTILE: Final[tuple[Document, ...]] = (
    *COLLECTED,
    message("EveryPlainName", *(field(name, "string", nullableVersions="1+") for name in NAMES)),
    message("EveryArrayName", *(field(name, "[]int64", "1+", default="") for name in NAMES)),
    message("EveryTaggedName", *(_tagged(n, name, "[]string") for n, name in enumerate(NAMES))),
    message(
        "EveryStructName",
        *(
            field(name, "[]" * (n % 2) + name, fields=[field(name, "int64", default=-n)])
            for n, name in enumerate(STRUCTS)
        ),
    ),
    message(
        "EveryText",
        *(
            field(f"S{n}", "string", f"{n % 3}+", about=text, default=text)
            for n, text in enumerate(TEXTS)
        ),
        about=TEXTS[0],
    ),
    *(message(name, field("F", "int64", default=-1), about=TEXTS[1]) for name in MESSAGES),
    message("NothingAtAll", flexibleVersions="none"),
    message("OnlyTags"),
)
"""A directory of messages, one for each kind of trouble."""
