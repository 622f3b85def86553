"""Connections, fetch sessions and groups continue from batch to batch."""

from __future__ import annotations

import pickle
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.snapshot import dump
from kafkawire.capture.tables import TABLES
from kafkawire.spark.decode.groups import ITEMS
from kafkawire.spark.errors import DamagedCheckpoint
from kafkawire.spark.options import parse
from kafkawire.spark.shuffle.packets import SCHEMA, by_connection, segments_in
from kafkawire.spark.watch.checkpoint import state_rows
from kafkawire.spark.watch.connections import BatchSettings
from kafkawire.spark.watch.groups import group_states
from kafkawire.spark.watch.state import BEFORE, STATES, decode_batch
from tests.capture.dialogue import Sent, goodbye, hello
from tests.capture.dialogue import packets as dialogue_packets
from tests.capture.wire import pcap
from tests.conftest import FIXTURES

from ..conftest import counted, counted_sets, rows_of
from ..test_options import CASES, silent_capture
from .local_batches import ALL, IN_ORDER, decode_batches, packets

MIXED = "variants-mixed-a--rot"
TLS = bytes.fromhex("1603010200010001fc0303")


def cut(table: pa.Table, rng: random.Random, count: int) -> Iterator[pa.Table]:
    """Cut a set's packets, in order, into batches."""
    places = sorted(rng.sample(range(len(table) + 1), min(count, len(table))))
    for start, end in zip([0, *places], [*places, len(table)], strict=True):
        yield table.slice(start, end - start)


def test_captures_cut_anywhere(some_sets: dict[str, list[str]]) -> None:
    """Also inside messages, handshakes, rebalances and fetch sessions, and after gaps."""
    rng = random.Random(random.getrandbits(32))
    for name, files in some_sets.items():
        names, table = packets(files, parse({}))
        if name.endswith(MIXED):
            continue  # the next test has it
        seed = rng.getrandbits(32)
        made = decode_batches(
            names, cut(table, random.Random(seed), 4), size=rng.choice([7, 100, 10000])
        )
        for each in TABLES:
            assert counted(made.finished(each)) == counted_sets([files], each), (seed, name, each)


SESSIONS = "incidents/expelled-members-java.pcap.gz"
SPLIT = (
    SESSIONS,
    "captures/ck-group-range.pcap",
    "captures/ck-848.pcap",
    "captures/kjs-all.pcap",
    "captures/kcat-kf--loss.pcap",
)
"""Fetch sessions, groups of both protocols, pipelined requests, missing packets."""


@cache
def split_packets(capture: str) -> tuple[tuple[str, ...], pa.Table]:
    return packets([str(FIXTURES / capture)], parse({}))


@settings(max_examples=12)
@example(SESSIONS, {0.25, 0.5, 0.75})
@given(st.sampled_from(SPLIT), st.sets(st.floats(0, 1, exclude_max=True), max_size=12))
def test_any_split_has_the_rows_of_a_job(capture: str, cuts: set[float]) -> None:
    """The watch restarts between any two batches: each begins with a state as bytes alone."""
    names, table = split_packets(capture)
    places = sorted({int(cut * len(table)) for cut in cuts})
    batches = [
        table.slice(start, end - start)
        for start, end in zip([0, *places], [*places, len(table)], strict=True)
    ]
    made = decode_batches(names, batches)
    for each in TABLES:
        want = counted_sets([(str(FIXTURES / capture),)], each)
        assert counted(made.finished(each)) == want, each


def test_a_rotated_set_file_by_file(sets: dict[str, list[str]]) -> None:
    (files,) = [files for name, files in sets.items() if name.endswith(MIXED)]
    names, table = packets(files, parse({}))
    of = [number >> 40 for number in table.column("packet").to_pylist()]
    batches = [
        table.slice(of.index(file), of.count(file)) for file in range(len(files)) if file in of
    ]
    assert len(batches) == len(files) == 8
    made = decode_batches(names, batches)
    for each in TABLES:
        assert counted(made.finished(each)) == counted_sets([files], each), each
    # 156 connections, most of them closed: the state is small
    assert made.most < 4096 * len(made.opened)


def batch_of(folder: Path, sent: list[Sent]) -> tuple[tuple[str, ...], pa.Table, list[str]]:
    folder.mkdir(exist_ok=True)
    file = folder / "one.pcap"
    file.write_bytes(pcap(dialogue_packets(sent), magic=0xA1B23C4D))
    names, table = packets([str(file)], parse({}))
    return names, table, [str(file)]


@pytest.mark.parametrize("name", CASES)
def test_an_option_of_the_reader(name: str, tmp_path: Path) -> None:
    """Its effect is the same in a job and in a watch, also where batches cut connections."""
    case = CASES[name]
    file = str(FIXTURES / "captures" / case.capture) if case.capture else silent_capture(tmp_path)
    options = parse(case.options)
    names, table = packets([file], options)
    made = decode_batches(
        names, cut(table, random.Random(name), 3), tables=[case.table], options=options
    )
    want = case.left(rows_of([file], case.table, **case.arguments))
    assert counted(made.finished(case.table, options.topics)) == counted(want)


METADATA = bytes.fromhex("0000001f0003000c00000001000161000000000000000000")
LARGE = (1 << 20).to_bytes(4, "big") + bytes.fromhex("00000009000000010003616263") + bytes(1 << 17)


def test_too_large_a_state_is_given_up(tmp_path: Path) -> None:
    sent = [*hello(), *(Sent(0, at, LARGE[at : at + 1400]) for at in range(0, len(LARGE), 1400))]
    names, table, files = batch_of(tmp_path, sent)
    half = len(table) // 2
    made = decode_batches(names, [table.slice(0, half), table.slice(half)], state_bytes=50_000)
    assert made.given_up == 2
    problems = made.finished("problems")
    assert [row["kind"] for row in problems if "given up: " in (row["error"] or "")]
    connections = made.finished("connections")
    assert [row["connection"] for row in connections] == [0, 1]
    captured = sum(row["other_bytes"] for row in connections)
    assert captured == sum(row["other_bytes"] for row in rows_of(files, "connections"))
    whole = decode_batches(names, [table.slice(0, half), table.slice(half)])
    assert whole.given_up == 0
    assert counted(whole.finished("problems")) == counted(rows_of(files, "problems"))


def test_idle_connections_are_closed(tmp_path: Path) -> None:
    """The last packets of one connection come 20 minutes after those before them."""
    sent = [
        *hello(),
        Sent(0, 0, TLS),
        *hello(ports=(50001, 9092)),
        Sent(0, 0, TLS, after_ms=20 * 60_000, ports=(50001, 9092)),
        Sent(0, len(TLS), TLS, after_ms=1, ports=(50001, 9092)),
        *goodbye(len(TLS), 0),
    ]
    names, table, _ = batch_of(tmp_path, sent)
    count = len(table)
    batches = [table.slice(0, 8), table.slice(8, 1), table.slice(9, count - 9)]
    never = decode_batches(names, batches, tables=["connections"])
    assert [row["last_packet"] for row in never.finished("connections")] == [count, 9]
    closed = decode_batches(names, batches, tables=["connections"], idle_ns=900_000_000_000)
    connections = sorted(closed.finished("connections"), key=lambda row: row["connection"])
    assert [(row["first_packet"], row["last_packet"]) for row in connections] == [
        (1, 4),
        (5, 9),
        (10, count),
    ]


class Ran(Exception):
    """Code of a state ran."""


class Exploit:
    """Raises Ran where it is unpickled."""

    def __reduce__(self) -> tuple[type[Ran], tuple[()]]:
        return Ran, ()


@pytest.mark.parametrize("outer", [True, False])
def test_a_state_is_not_unpickled(outer: bool, tmp_path: Path) -> None:
    """A checkpoint that somebody else wrote makes an error, and runs nothing."""
    pickled = pickle.dumps(Exploit())
    state = pickled if outer else dump(([], [], pickled))
    names, table, _ = batch_of(tmp_path, hello())
    (key,) = {
        key for row in table.to_pylist() for key, _ in by_connection(segments_in(row["body"]))
    }
    states = pa.RecordBatch.from_pydict({"key": [key], "last_ns": [0], "state": [state]}, STATES)
    rows = pa.Table.from_batches([*state_rows(ALL, states)], SCHEMA)
    of_batch = BatchSettings(("exchanges",), parse({}), names, NO_TIME, 1 << 24)
    batches = pa.concat_tables([rows, table]).sort_by(IN_ORDER).to_batches()
    with pytest.raises(DamagedCheckpoint):
        list(decode_batch(batches, of_batch))


def test_an_item_in_a_checkpoint_is_not_unpickled() -> None:
    """Only the job itself makes items: a checkpoint has the states of groups."""
    values = {"group_id": ["g"], "at": [BEFORE + 1], "n": [0], "item": [pickle.dumps(Exploit())]}
    rows = pa.RecordBatch.from_pydict(values, ITEMS)
    with pytest.raises(DamagedCheckpoint, match="not the state of a group"):
        list(group_states(rows))
