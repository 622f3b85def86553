"""Golden vectors as the tests read them: rows of Apache Kafka's own making, and their values as our
JSON form.
"""

from __future__ import annotations

import base64
import gzip
import json
import math
import uuid
from collections.abc import Iterator
from typing import Any

from kafkawire.messages import REGISTRY
from kafkawire.primitives import Structure

from .conftest import FIXTURES


def rows(name: str) -> Iterator[dict[str, Any]]:
    """Read the rows of one file of vectors."""
    with gzip.open(FIXTURES / "golden" / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def kafka_json(name: str, version: int, values: dict[str, Any]) -> dict[str, Any]:
    """Re-write a vector's values (schema names, hex, 36-character uuids) in Kafka's JSON form."""
    cls = REGISTRY.load(name)
    return _object(cls, version, values)


def _object(cls: type[Structure], version: int, values: dict[str, Any]) -> dict[str, Any]:
    rows_by_name = {row.json_name: row for row in cls.__fields__}
    default = cls()
    made: dict[str, Any] = {}
    for name, value in values.items():
        if name == "_tags":
            made["_unknownTaggedFields"] = [
                {"tag": tag, "data": base64.b64encode(bytes.fromhex(data)).decode()}
                for tag, data in value
            ]
            continue
        row = rows_by_name[name[:1].lower() + name[1:]]
        made[row.json_name] = _value(cls, row.type, version, value)
    for row in cls.__fields__:
        if row.tag >= 0 and row.json_name in made:
            absent = getattr(default, row.attribute)
            if _is_default(row.type, made[row.json_name], absent, version):
                del made[row.json_name]
    return made


def _is_default(type_name: str, value: Any, default: Any, version: int) -> bool:
    from kafkawire import to_json

    if isinstance(default, Structure):
        return bool(value == to_json(default, version))
    if isinstance(default, bytes) and type_name == "uuid":
        return bool(value == "A" * 22)
    return bool(value == default)


def _value(cls: type[Structure], type_name: str, version: int, value: Any) -> Any:
    import sys

    if value is None:
        return None
    if type_name.startswith("[]"):
        return [_value(cls, type_name[2:], version, one) for one in value]
    if type_name[0].isupper():
        return _object(getattr(sys.modules[cls.__module__], type_name), version, value)
    if type_name in ("bytes", "records"):
        return base64.b64encode(bytes.fromhex(value)).decode()
    if type_name == "uuid":
        return base64.urlsafe_b64encode(uuid.UUID(value).bytes).decode()[:22]
    if type_name == "float64" and not math.isfinite(float(value)):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(float(value))]
    return value
