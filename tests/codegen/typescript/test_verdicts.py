"""Mutated bytes: the package of Node accepts and refuses what that of Python does."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.errors import DecodeError, EncodeError
from kafkawire.messages import REGISTRY
from tests import vectors
from tests.fuzzing import mutate, replayable, seeds

from .node import HERE, run


def rows(rng: random.Random) -> Iterator[str]:
    """Mutate one vector of each message, and give what Python says to it."""
    with vectors.fast_alone():
        for name, golden in vectors.by_message("messages").items():
            row = rng.choice(golden)
            for _ in range(8):
                data = mutate(bytes.fromhex(row["hex"])[:2000], rng, 2)
                made = {"message": name, "version": row["version"], "hex": data.hex()}
                yield json.dumps(made | {"again": encoded_again(name, data, row["version"])})


def encoded_again(name: str, data: bytes, version: int) -> str | None:
    """Decode and encode; "" if it cannot be encoded, None if it cannot be decoded."""
    try:
        message = REGISTRY.load(name).decode(data, version)
    except DecodeError:
        return None
    try:
        return str(message.encode(version).hex())
    except EncodeError:
        return ""


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(1))
def test_mutated_messages(sources: Path, seed: int) -> None:
    with replayable(seed):
        given = "\n".join(rows(random.Random(seed)))
        result = json.loads(run(HERE / "verdicts.mjs", sources, given=given))
        assert result["wrong"] == []
        assert result["accepted"] > 100
        assert result["refused"] > 1000
