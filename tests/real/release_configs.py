"""Draws how the configuration keys of earlier releases of Kafka differ, from their jars.

    python -m tests.real.release_configs          names what differs from the table
    python -m tests.real.release_configs --write  writes kafkawire/configs/release_configs.json

Keys of topics: each that differs from the newest release, null where the release lacks it. Keys of
brokers: the valid values of those where these differ; `broker_configs.json` has the rest.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from . import zookeeper
from .compiler import compiled
from .config_defs import BROKER_TABLE, FOLDER, RESOURCE_TABLE, Row, text, valid_values
from .java import Installation, find_java

TABLE: Final = FOLDER / "release_configs.json"
SOURCE: Final = Path(__file__).with_name("ReleaseConfigDefs.java")
VERSIONS: Final = {"2.8": "2.8.2", "3.9": "3.9.1"}
"""Release -> the version that is read."""
OF_RELEASES: Final = frozenset(
    {"inter.broker.protocol.version", "log.message.format.version", "message.format.version"}
)
"""Their validators print the releases with `-IV`, and accept these without, too: any text."""
PROSE: Final = "The default value of -1 means"
"""With it begins what validators print that also accept that value."""


def drawn(version: str) -> dict[str, dict[str, Any]]:
    """Return the keys of brokers and topics of a version, and the synonyms of topics."""
    with TemporaryDirectory() as name:
        installation = Installation(find_java(), zookeeper.fetch(version, Path(name)))
        printed: dict[str, dict[str, Any]]
        printed = json.loads(compiled(installation, SOURCE).run("ReleaseConfigDefs"))
        return printed


def _valid(name: str, facts: Mapping[str, Any]) -> Row:
    if name in OF_RELEASES:
        return {}
    if (facts["valid"] or "").startswith(PROSE):
        return {"least": 1, "also": [-1]}
    return valid_values(facts)


def topic_rows(
    facts: Mapping[str, Row], synonyms: Mapping[str, str], newest: Mapping[str, Row]
) -> Row:
    """Return the keys of topics that differ from those of the newest release."""
    absent = newest.keys() - facts.keys()
    rows: Row = {name: None for name in absent if "internal" not in newest[name]}
    for name, row in facts.items():
        if row.get("internal"):
            continue
        first = [[synonyms[name]]] if name in synonyms else []
        here = {"type": row["type"], "default": row["default"], "valid": _valid(name, row)}
        here["synonyms"] = newest.get(name, {}).get("synonyms", first)
        here = {key: value for key, value in here.items() if value or key == "default"}
        if here != newest.get(name):
            rows[name] = here
    return dict(sorted(rows.items()))


def broker_rows(facts: Mapping[str, Row], newest: Mapping[str, Row]) -> Row:
    """Return the valid values of the keys of brokers where these differ."""
    rows = {name: _valid(name, row) for name, row in facts.items() if name in newest}
    return {name: row for name, row in sorted(rows.items()) if row != newest[name].get("valid", {})}


def content() -> str:
    """Return the table, as the jars say it is."""
    topics = json.loads(RESOURCE_TABLE.read_text("utf-8"))["topic"]
    brokers = json.loads(BROKER_TABLE.read_text("utf-8"))
    parts = []
    for release, version in VERSIONS.items():
        facts = drawn(version)
        tables = {
            "topic": topic_rows(facts["topic"], facts["synonyms"], topics),
            "broker": broker_rows(facts["broker"], brokers),
        }
        rows = [f'    "{kind}": {text(table, "      ")}' for kind, table in tables.items()]
        parts.append(f'  "{release}": {{\n' + ",\n".join(rows) + "\n  }")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(write: bool) -> None:
    """Compare the table with the jars, or write it."""
    if write:
        TABLE.write_text(content(), "utf-8")
    elif TABLE.read_text("utf-8") != content():
        print(f"{TABLE.name} differs: python -m tests.real.release_configs --write")


if __name__ == "__main__":
    main(sys.argv[1:] == ["--write"])
