"""`summary` accounts for every payload byte, whatever captures it is given.

Payload bytes of all TCP segments = bytes captured = the sum of what became of them, and no
part of it is negative. The bytes of segments are counted from packets' headers alone.
"""

from __future__ import annotations

import gzip
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkawire.capture.files.source import read_capture
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.reports.problems import Payload
from kafkawire.reports.reading import Reading
from kafkawire_cli.input.captures.progress import Progress
from kafkawire_cli.render.summary_report import Summary
from tests.capture.written import BROKER, Scenario, request
from tests.conftest import FIXTURES
from tests.fuzzing import mutate, replayable, seeds
from tests.recordings import ANY_CAPTURE, own, third_party

CAPTURES = FIXTURES / "captures"
LARGE = 1 << 20


def recordings() -> Iterator[Path]:
    paths = [*own(ANY_CAPTURE), *third_party("public", ANY_CAPTURE)]
    yield from (path for path in paths if path.stat().st_size < LARGE)


PATHS = sorted(recordings())


def segment_bytes(*paths: Path) -> int:
    """Count the payload bytes of the TCP segments in captures."""
    made = 0
    for path in paths:
        parser = PacketParser()
        made += sum(int(parser.parse(block).captured.sum()) for block in read_capture(path))
    return made


def payload(*paths: Path) -> Payload:
    """Read captures as one, and count what became of their bytes."""
    made = Payload()
    Reading(Traffic(paths), Progress(0)).read(made)
    return made


def check(*paths: Path) -> None:
    made = payload(*paths)
    kinds = made.kinds()
    assert kinds.pop("unaccounted") == 0, kinds
    assert min(kinds.values()) >= 0, kinds
    assert sum(kinds.values()) == made.captured == segment_bytes(*paths)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_bytes_of_one_capture(path: Path) -> None:
    check(path)


def test_bytes_of_captures_of_the_same_connections() -> None:
    """Recordings of one traffic: all packets but the first copies are late."""
    same = [path for path in PATHS if path.name.startswith("kcat-kf")]
    assert len(same) > 8
    check(*same)


def test_bytes_of_all_fixtures_together() -> None:
    check(*(path for path in PATHS if path.is_relative_to(CAPTURES)))


@pytest.mark.parametrize("seed", range(6))
def test_bytes_of_several_captures(seed: int) -> None:
    rng = random.Random(seed)
    with replayable(seed):
        check(*(rng.choice(PATHS) for _ in range(rng.randint(2, 5))))


def test_bytes_of_a_rotated_set() -> None:
    check(*own("mixed-a--rot?.pcap")[:4])


def test_bytes_after_the_end_of_a_connection(tmp_path: Path) -> None:
    scenario = Scenario().request("Metadata", 1).respond("Metadata", 1).close()
    scenario.segment(0, 0, 0x10, b"")  # the last acknowledgment
    scenario.send(BROKER, b"after the end").request("Metadata", 1, 1)
    first = next(packet for packet in scenario.packets if b"tester" in packet.data)
    scenario.packets.append(first)
    path = scenario.save(tmp_path / "a.pcap")
    check(path)
    kinds = payload(path).kinds()
    assert kinds["discarded"] == len(b"after the end")
    assert kinds["repeated"] == len(request("Metadata", 1, 2))


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", seeds(20))
def test_bytes_of_damaged_captures(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    with replayable(seed):
        path = rng.choice([path for path in PATHS if path.suffix != ".gz"])
        data = mutate(path.read_bytes(), rng)
        head = path.read_bytes()[:24]  # a damaged header of the file is refused
        damaged = tmp_path / path.name
        damaged.write_bytes(head + data[24:])
        if rng.random() < 0.5:
            damaged = tmp_path / f"{path.name}.gz"
            damaged.write_bytes(gzip.compress(head + data[24:]))
        check(damaged, *rng.choice([[], [path]]))


def test_a_summary_says_that_nothing_is_unaccounted_for() -> None:
    reading = Reading(
        Traffic([CAPTURES / "kcat-kf.pcap", CAPTURES / "kcat-kf--loss.pcap"]), Progress(0)
    )
    made = Summary(reading)
    made.read()
    message = made.json([], None)["payload"]
    assert message["unaccounted"] == 0 < message["discarded"]
