"""The generator of varied captures (`benchmarks.varied`)."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from benchmarks.codec import varied as varied_codec
from benchmarks.codec.bodies import Body, bodies
from benchmarks.codec.varied import variants
from benchmarks.varied import capture
from benchmarks.varied.network import Damage
from tests.cli.reports import report, run

SIZE = 3_000_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("varied") / "varied.pcap"
    out.write_bytes(b"".join(capture(SIZE)))
    return out


@pytest.fixture(scope="module")
def rows(path: Path) -> list[dict[str, Any]]:
    result = run("decode", path, "--format", "jsonl")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_same_seed_gives_the_same_bytes(path: Path) -> None:
    assert b"".join(capture(SIZE)) == path.read_bytes()
    assert b"".join(capture(SIZE // 10, seed=2))[:5000] != path.read_bytes()[:5000]


def test_everything_decodes(rows: list[dict[str, Any]]) -> None:
    assert {row["status"] for row in rows} == {"ok"}
    assert len({row["api_name"] for row in rows}) >= 14
    assert len({(row["api_name"], row["api_version"]) for row in rows}) >= 30


def test_hardly_a_message_comes_twice(rows: list[dict[str, Any]]) -> None:
    bodies = Counter(
        json.dumps(row["body"])
        for row in rows
        if row["api_name"] in ("Produce", "Fetch", "Metadata")
    )
    assert len(bodies) > 0.9 * sum(bodies.values())


def test_every_byte_is_of_a_message(path: Path) -> None:
    found = report("summary", path)
    assert found["payload"]["captured"] == found["payload"]["messages"]


def test_lost_and_reordered_packets(tmp_path: Path) -> None:
    out = tmp_path / "damaged.pcap"
    out.write_bytes(b"".join(capture(SIZE // 3, damage=Damage(loss=0.01, reordering=0.05))))
    result = run("decode", out, "--format", "jsonl")
    statuses = Counter(json.loads(line)["status"] for line in result.stdout.splitlines())
    assert statuses["ok"] > 0.8 * statuses.total()
    assert len(statuses) > 1


# -- messages


@pytest.mark.parametrize("body", bodies(), ids=lambda body: body.name)
def test_variants_of_a_message_differ(body: Body) -> None:
    made = {each.data for each in variants(body, 60, random.Random(1))}
    assert len(made) > 57
    sizes = sorted(map(len, made))
    assert 0.3 * len(body.data) < sizes[30] < 3 * len(body.data)


def test_codecs_meet_the_same_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.LOOP_SECONDS", 0.001)
    figures = varied_codec.run(1, ["kafkawire"], number=20)
    assert len(figures) == 2 * len(bodies())
    assert all(0 < each.median < 10_000 for each in figures)
