"""Schemas that are legal, whatever they hold, become packages that do what the schemas say."""

from __future__ import annotations

import importlib
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kafkawire import DecodeError, Registry
from kafkawire.primitives import MessageInfo
from kafkawire_codegen import generate
from tests.fuzzing import examples

from . import hostile
from .exercise import exercise

PACKAGE = "hostile_messages"


@contextmanager
def generated(documents: Iterable[hostile.Document]) -> Iterator[Path]:
    """Generate a package of some messages and make it importable; give the folder with both."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        generate(hostile.write(root / "schemas", documents), root / PACKAGE, PACKAGE)
        sys.path.insert(0, folder)
        try:
            yield root
        finally:
            sys.path.remove(folder)
            sys.path_importer_cache.pop(folder, None)
            for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
                del sys.modules[name]


@pytest.mark.fuzz
@settings(
    max_examples=examples(60),
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(hostile.documents())
def test_a_package_follows_its_schema(document: hostile.Document) -> None:
    with generated([document]) as root:
        for file in (root / PACKAGE).glob("*.py"):
            compile(file.read_text("utf-8"), str(file), "exec")
        assert exercise(PACKAGE, root / "schemas") > 0


@pytest.mark.parametrize("document", hostile.COLLECTED, ids=lambda d: d["name"][:20])
def test_what_once_went_wrong_is_right(document: hostile.Document) -> None:
    with generated([document]) as root:
        exercise(PACKAGE, root / "schemas", rounds=4)


def test_a_directory_of_no_messages_becomes_a_package_of_none() -> None:
    with generated([]):
        assert list(importlib.import_module(PACKAGE).REGISTRY) == []


@pytest.mark.parametrize("document", hostile.COLLECTED, ids=lambda d: d["name"][:20])
def test_a_registry_has_all_of_the_api_of_any_package(document: hostile.Document) -> None:
    with generated([document]):
        registry = Registry(PACKAGE)
        for info in registry:
            for version in range(info.first, info.last + 1):
                exercise_registry(registry, info, version)


def exercise_registry(registry: Registry, info: MessageInfo, version: int) -> None:
    message = registry.load(info.name)()
    data = message.encode(version)
    assert registry.explain(info.name, version, data).error is None
    assert registry.verify(info.name, version, data)
    for cut in range(min(len(data), 50)):
        with pytest.raises(DecodeError) as caught:
            registry.decode(info.name, version, data[:cut])
        assert caught.value.path.startswith(info.name)
    made = registry.from_json(info.name, version, registry.to_json(message, version))
    assert made.encode(version) == data
    if info.type in ("request", "response") and info.api_key is not None:
        frame = registry.encode_frame(message, version, 1)
        responded = (info.api_key, version) if info.type == "response" else None
        found = registry.decode_frame(frame, response_to=responded)
        assert found.body.encode(version) == data
        assert registry.explain_frame(frame, responded).error is None
