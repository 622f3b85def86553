"""The messages with which Kafka tests its own generator: the bytes are those of Kafka's classes.

fixtures/generator has the five schemas, in our words, and 100 vectors: values in the JSON that
Kafka's converters read, and the bytes that the classes in kafka-clients-4.3.1-test.jar wrote.
"""

from __future__ import annotations

import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kafkawire.protocol.json_form import to_json
from kafkawire_codegen import generate
from kafkawire_codegen.lint import lint
from tests.conftest import FIXTURES

from .exercise import exercise

EXAMPLES: Final = FIXTURES / "generator"
PACKAGE: Final = "kafkas_examples"


def vectors() -> list[dict[str, Any]]:
    with gzip.open(EXAMPLES / "vectors.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Generate the package and import its registry."""
    folder = tmp_path_factory.mktemp("examples")
    generate(EXAMPLES, folder / PACKAGE, PACKAGE)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    yield importlib.import_module(PACKAGE).REGISTRY
    sys.path.remove(str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]


def test_the_schemas_break_no_rule_and_have_vectors() -> None:
    report = lint(EXAMPLES)
    assert (report.messages, report.errors, report.advice) == (5, (), ())
    found = {(row["message"], row["version"]) for row in vectors()}
    assert len(found) == 13
    assert {name for name, _ in found} == {path.stem for path in EXAMPLES.glob("*.json")}


def test_the_bytes_are_those_of_kafkas_classes(registry: Any) -> None:
    for row in vectors():
        cls, version = registry.load(row["message"]), row["version"]
        message = cls.decode(bytes.fromhex(row["hex"]), version)
        assert message.encode(version).hex() == row["hex"], row
        assert to_json(message, version) == row["json"], row


def test_every_version_is_read_and_written(registry: Any) -> None:
    assert registry is not None
    assert exercise(PACKAGE, EXAMPLES) == 39


def test_a_default_is_written_as_kafka_does(registry: Any) -> None:
    """The first vector of each version has every field at its default."""
    seen: set[tuple[str, int]] = set()
    for row in vectors():
        key = row["message"], row["version"]
        if key not in seen:
            seen.add(key)
            assert registry.load(key[0])().encode(key[1]).hex() == row["hex"], key
    assert len(seen) == 13
