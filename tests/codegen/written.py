"""Messages written in the fewest words, read by the reader itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

from kafkawire_codegen.schema import MessageSchema, load_file


def message(
    *fields: str,
    name: str = "M",
    valid: str = "0-1",
    flexible: str = "1+",
    head: str = '"type": "data"',
    structs: str = "",
) -> MessageSchema:
    """Read a message of these fields, one a line from line 2 on; `structs` are its common ones."""
    ranges = f'"validVersions": "{valid}", "flexibleVersions": "{flexible}"'
    lines = ",\n".join(fields)
    keys = f'"name": "{name}", {ranges}, {head}, "commonStructs": [{structs}]'
    text = f'{{ {keys}, "fields": [\n{lines}\n] }}'
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / f"{name}.json"
        file.write_text(text, "utf-8")
        return load_file(file)


def field(name: str, type_: str = "int32", versions: str = "0+", more: str = "") -> str:
    """Write one field."""
    more = f", {more}" if more else ""
    return f'{{ "name": "{name}", "type": "{type_}", "versions": "{versions}"{more} }}'


def tagged(name: str, tag: int, type_: str = "int32", versions: str = "1+", more: str = "") -> str:
    """Write one field that is tagged in all its versions."""
    return field(name, type_, versions, f'"taggedVersions": "{versions}", "tag": {tag}{more}')


def struct(name: str, type_: str, *fields: str, versions: str = "0+", more: str = "") -> str:
    """Write one field that holds a struct, or an array of them."""
    return field(name, type_, versions, f'"fields": [{", ".join(fields)}]{more}')
