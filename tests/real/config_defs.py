"""Draws the tables of configuration keys from the jars of Kafka and from a broker of it.

    python -m tests.real.config_defs          names what differs from the tables
    python -m tests.real.config_defs --write  writes kafkawire/configs/*.json

Names, types, defaults and valid values are those of the `ConfigDef`s in the jars; which of the
broker's keys a group's key has its default from, DescribeConfigs says. No documentation is kept.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import kafkawire.configs
from kafkawire.configs import ResourceType
from kafkawire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkawire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)

from .broker import running
from .compiler import compiled
from .java import Installation, install
from .wire import Wire

FOLDER: Final = Path(kafkawire.configs.__file__).parent
BROKER_TABLE: Final = FOLDER / "broker_configs.json"
RESOURCE_TABLE: Final = FOLDER / "resource_configs.json"
SOURCE: Final = Path(__file__).with_name("ConfigDefs.java")
RELEASE: Final = "4.4"
"""The release that the tables are of."""
VERSION: Final = 4
"""Of DescribeConfigs."""
RANGE: Final = re.compile(r"\[([-0-9.]+),\.\.\.(?:,([-0-9.]+))?\](?: or ([-0-9]+))?")
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "[partitionId]:[brokerId],[partitionId]:[brokerId],...": {"form": "replicas"},
    "[latest, earliest, by_duration:PnDTnHnMn.nS]": {"form": "offset reset"},
    "non-empty string": {"empty": False},
    "non-null string": {},
    "non-empty list": {},
    "": {},
}
"""What a validator is printed as -> the valid values, other than ranges and lists."""
INSENSITIVE: Final = "(case insensitive) "
Row = dict[str, Any]


def valid_values(facts: Mapping[str, Any]) -> Row:
    """Return the valid values of a key, as `Valid.of` reads them. Raises ValueError."""
    return _printed(facts["valid"]) | {
        name: False for name in ("empty", "duplicates") if facts.get(name) is False
    }


def _printed(text: str | None) -> Row:
    """Read what a validator is printed as."""
    if text is None:
        return {}
    if text in FORMS:
        return {**FORMS[text]}
    matched = RANGE.fullmatch(text)
    if matched is not None:
        least, most, also = (part and json.loads(part) for part in matched.groups())
        bounds = {"least": least, "most": most, "also": also and [also]}
        return {name: value for name, value in bounds.items() if value is not None}
    listed = text.removeprefix(INSENSITIVE)
    if not (listed.startswith("[") and listed.endswith("]")):
        raise ValueError(f"unknown validator {text!r}")
    any_case = {"any_case": True} if text.startswith(INSENSITIVE) else {}
    return {"one_of": listed[1:-1].split(", "), **any_case}


def definitions(installation: Installation) -> dict[str, dict[str, Row]]:
    """Return the keys of each `ConfigDef`: resource -> name -> facts."""
    printed: dict[str, dict[str, Row]]
    printed = json.loads(compiled(installation, SOURCE).run("ConfigDefs"))
    return printed


def described(port: int, type: int, name: str) -> dict[str, DescribeConfigsResourceResult]:
    """Return what a broker describes of a resource."""
    resource = DescribeConfigsResource(
        resource_type=type, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    with Wire(port) as wire:
        [result] = wire.exchange(request, VERSION, DescribeConfigsResponse).results
    assert (result.error_code, result.error_message) == (0, "")
    return {row.name: row for row in result.configs}


def group_synonyms(port: int) -> dict[str, str]:
    """Return key of a group -> the broker's key with its default."""
    rows = described(port, ResourceType.GROUP, "nobody")
    firsts = {name: row.synonyms[0].name for name, row in rows.items()}
    return {name: first for name, first in firsts.items() if first != name}


def resource_table(drawn: Mapping[str, Mapping[str, Row]], synonyms: Mapping[str, str]) -> Row:
    """Return the table of topics, groups and client metrics."""
    table: Row = {}
    for resource in ("topic", "group", "client-metrics"):
        table[resource] = {}
        for name, facts in drawn[resource].items():
            row = {"type": facts["type"], "default": facts["default"]}
            row["valid"] = valid_values(facts)
            row["synonyms"] = facts.get("synonyms") or [
                [synonym] for synonym in (synonyms.get(name),) if synonym is not None
            ]
            row["internal"] = facts.get("internal", False)
            table[resource][name] = {key: row[key] for key in row if row[key] or key == "default"}
    return table


def broker_table(drawn: Mapping[str, Row], table: Mapping[str, Row]) -> Row:
    """Return the table of brokers with the valid values. Raises ValueError if it lacks a row.

    The rows by release stay: the jars of one release do not have those of others.
    """
    merged = {name: {**entry} for name, entry in table.items()}
    for name, facts in drawn.items():
        newest = merged.get(name, {"from": [[]]})["from"][-1]
        if newest[1:] != [facts["type"], facts["default"], facts["update"]]:
            raise ValueError(f"{name}: {newest} in the table, {facts} in Kafka")
        valid = valid_values(facts)
        merged[name].pop("valid", None)
        if valid:
            merged[name]["valid"] = valid
    return merged


def text(table: Mapping[str, Any], indent: str = "  ") -> str:
    """Write a table with one key per line."""
    lines = [f"{indent}{json.dumps(name)}: {json.dumps(row)}" for name, row in table.items()]
    return "{\n" + ",\n".join(lines) + f"\n{indent[2:]}}}"


def drawn_tables(installation: Installation, port: int) -> Iterator[tuple[Path, str]]:
    """Return the file and the text of each table, as Kafka says it is."""
    facts = definitions(installation)
    present = json.loads(BROKER_TABLE.read_text("utf-8"))
    yield BROKER_TABLE, text(broker_table(facts["broker"], present)) + "\n"
    resources = resource_table(facts, group_synonyms(port))
    lines = [f'  "{name}": {text(rows, "    ")}' for name, rows in resources.items()]
    yield RESOURCE_TABLE, "{\n" + ",\n".join(lines) + "\n}\n"


def main(write: bool) -> None:
    """Compare the tables with a Kafka that is started, or write them."""
    with TemporaryDirectory() as folder, running(install(), Path(folder)) as broker:
        for path, content in drawn_tables(broker.installation, broker.port):
            if write:
                path.write_text(content, "utf-8")
            elif path.read_text("utf-8") != content:
                print(f"{path.name} differs: python -m tests.real.config_defs --write")


if __name__ == "__main__":
    main(sys.argv[1:] == ["--write"])
