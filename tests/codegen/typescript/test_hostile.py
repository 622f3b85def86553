"""Schemas that are legal, whatever they hold, become packages that Node runs.

A package of Python, generated from the same schemas, writes random messages; the package of Node
reads and writes the same bytes.
"""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafkawire_codegen import model, naming
from tests.codegen.exercise import fill
from tests.codegen.hostile import Document, documents
from tests.codegen.test_hostile_schemas import PACKAGE, generated
from tests.fuzzing import examples

from .hostile import HOSTILE
from .node import HERE, package, run


def rows(schemas: Path, rounds: int) -> list[dict[str, Any]]:
    """Encode messages: with every field at its default, and random ones."""
    made = []
    for message in model.load(schemas):
        cls = importlib.import_module(PACKAGE).REGISTRY.load(message.name)
        module = importlib.import_module(cls.__module__)
        rng = random.Random(message.name)
        for version in range(message.versions.low, message.versions.high + 1):
            for number in range(rounds + 1):
                values = fill(module, message.root, version, rng) if number else {}
                row = {"message": message.name, "version": version, "is_default": not number}
                made.append(row | {"hex": cls(**values).encode(version).hex()})
    return made


def check(documents: Iterable[Document], rounds: int) -> None:
    with generated(documents) as root:
        made = rows(root / "schemas", rounds)
        sources = package(root / "node", root / "schemas")
        given = "".join(f"{json.dumps(row)}\n" for row in made)
        assert run(HERE / "echo.mjs", sources, given=given) == f"{len(made)} messages\n"


def test_collected_schemas() -> None:
    check(HOSTILE, rounds=3)


def test_a_directory_of_no_messages() -> None:
    check([], rounds=0)


@pytest.mark.fuzz
@settings(
    max_examples=examples(2),
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    st.lists(
        documents(), min_size=6, max_size=12, unique_by=lambda d: naming.api_name(d["name"]).lower()
    )
)
def test_drawn_schemas(drawn: list[Document]) -> None:
    keyed = [d | {"apiKey": 7000 + n} if "apiKey" in d else d for n, d in enumerate(drawn)]
    check(keyed, rounds=1)
