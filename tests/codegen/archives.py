"""Archives of schemas, as Kafka's jars are and as no archive should be."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

CLIENTS = "common/message/"
"""The folder of schemas in kafka-clients."""


def schema(name: str, *fields: str, valid: str = "0-1", more: str = "") -> str:
    """Write a message with fields of type int32."""
    rows = ", ".join(f'{{ "name": "{f}", "type": "int32", "versions": "0+" }}' for f in fields)
    head = f'"name": "{name}", "type": "data", "validVersions": "{valid}"'
    return f'{{ {head}, "flexibleVersions": "none"{more},\n"fields": [{rows}] }}'


def pack(path: Path, entries: Iterable[tuple[str | zipfile.ZipInfo, str | bytes]]) -> Path:
    """Write an archive; entries may have any name, also twice."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, data in entries:
            archive.writestr(entry, data)
    return path


def jar(path: Path, *names: str, folder: str = CLIENTS) -> Path:
    """Write an archive as Kafka's jars are, with classes beside the schemas."""
    entries: list[tuple[str, str | bytes]] = [
        ("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\n"),
        ("org/K.class", b"\xca\xfe"),
    ]
    entries += [(f"{folder}{name}.json", schema(name, "A")) for name in names]
    return pack(path, entries)
