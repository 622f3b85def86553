"""Reassembly: out-of-order segments, retransmissions, loss, keep-alives, port reuse, limits."""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from kafkawire.capture.files.blocks import NO_TIME
from kafkawire.capture.files.source import Capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.tcp.connection import Run
from kafkawire.capture.tcp.events import Closed, CloseReason, DiscardReason, Gap, GapReason
from kafkawire.capture.tcp.flow import Flow
from kafkawire.capture.tcp.limits import DEFAULT_REASSEMBLY
from kafkawire.capture.tcp.reassembly import Reassembler
from tests.capture.dialogue import (
    ISNS,
    ReassembledEvents,
    Sent,
    goodbye,
    hello,
    packets,
    reassemble,
)
from tests.capture.wire import (
    FIN,
    PSH,
    RST,
    SYN,
    Packet,
    ethernet,
    interface,
    ipv4,
    section,
    simple,
    tcp,
)

A, B, C, D = (bytes([letter]) * 100 for letter in b"abcd")

STEPS = pytest.mark.parametrize("step", [1 << 15, 1, 3])
"""Blocks: all in one, a packet each, a few."""


@STEPS
def test_in_order(step: int) -> None:
    scenario = [
        *hello(),
        Sent(0, 0, A),
        Sent(1, 0, B, acked=100),
        Sent(0, 100, C, acked=100),
        Sent(1, 100, D, acked=200),
        *goodbye(200, 200),
    ]
    result = reassemble(packets(scenario), step=step)
    assert (result.joined(0), result.joined(1)) == (A + C, B + D)
    assert set(result.arrivals(0).items()) == {(at, 4 if at < 100 else 6) for at in range(200)}
    assert result.closed == [(0, CloseReason.FINISHED)]
    (connection,) = result.connections
    assert connection.client == 0
    assert [str(end) for end in connection.endpoints] == ["10.0.0.1:50000", "10.0.0.2:9092"]
    assert (connection.first_packet, connection.last_packet) == (1, 10)
    assert connection.totals[0].captured == 200


@STEPS
def test_out_of_order_bytes_get_the_packet_that_fills_the_gap(step: int) -> None:
    scenario = [*hello(), Sent(0, 200, C), Sent(0, 100, B), Sent(0, 0, A), Sent(0, 300, D)]
    result = reassemble(packets(scenario), step=step)
    assert result.joined(0) == A + B + C + D
    assert set(list(result.arrivals(0).values())[:300]) == {6}
    assert result.arrivals(0)[300] == 7
    assert result.missing(0) == set()


@STEPS
def test_duplicate_packets(step: int) -> None:
    scenario = [*hello(), Sent(0, 0, A), Sent(1, 0, B, acked=100), *goodbye(100, 100)]
    twice = [packet for packet in packets(scenario) for _ in range(2)]
    result = reassemble(twice, step=step)
    assert (result.joined(0), result.joined(1)) == (A, B)
    assert result.connections[0].totals[0].duplicate == 100
    assert result.closed == [(0, CloseReason.FINISHED)]
    assert result.conflicts == []


def test_overlap_first_byte_wins_and_conflicts_are_reported() -> None:
    scenario = [*hello(), Sent(0, 0, A), Sent(0, 50, b"a" * 50 + C), Sent(0, 120, D)]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A + C + D[80:]
    ((position, length),) = {(c.position, c.length) for c in result.conflicts}
    assert (position, length) == (120, 80)
    totals = result.connections[0].totals[0]
    assert (totals.duplicate, totals.conflicting) == (50, 80)


def test_overlap_behind_a_gap() -> None:
    scenario = [
        *hello(),
        Sent(0, 200, C),
        Sent(0, 150, B + D),
        Sent(0, 400, D),
        Sent(0, 0, A),
        Sent(0, 100, A),
    ]
    result = reassemble(packets(scenario))
    # 150..200 came with the second packet, 200..300 with the first, 300..350 with the second.
    assert result.joined(0) == A + A[:50] + B[:50] + C + D[50:] + D
    assert result.missing(0) == set(range(350, 400))
    assert [(c.position, c.length) for c in result.conflicts] == [(200, 100), (150, 50)]


def test_keep_alive_probes_are_not_data() -> None:
    scenario = [
        *hello(),
        Sent(0, 0, A),
        Sent(1, 0, acked=100),
        Sent(0, 99, b"\0"),
        Sent(1, 0, acked=100),
        Sent(0, 99),
        Sent(1, 0, acked=100),
        Sent(0, 100, B),
    ]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A + B
    assert result.connections[0].totals[0].keep_alive == 1
    assert result.conflicts == []


def test_a_keep_alive_probe_behind_lost_data_is_not_data() -> None:
    probe = Sent(0, 199, b"\0", flags=0)
    scenario = [
        *hello(),
        Sent(0, 0, A),
        Sent(1, 0, acked=200),
        probe,
        Sent(0, 200, C, after_ms=100),
    ]
    altered = packets(scenario)
    flags_at = 14 + 20 + 13
    data = bytearray(altered[5].data)
    data[flags_at] &= ~PSH
    altered[5] = altered[5]._replace(data=bytes(data))
    result = reassemble(altered)
    assert result.joined(0) == A + C
    assert result.missing(0) == set(range(100, 200))


@STEPS
def test_sequence_numbers_wrap(step: int) -> None:
    scenario = [*hello(), *(Sent(1, at, bytes([at // 100]) * 100) for at in range(0, 1000, 100))]
    assert (ISNS[1] + 1000) >> 32 == 1
    result = reassemble(packets(scenario), step=step)
    assert result.joined(1) == b"".join(bytes([i]) * 100 for i in range(10))
    assert result.missing(1) == set()


def test_acknowledged_missing_bytes_are_a_gap_after_the_reorder_time() -> None:
    scenario = [
        *hello(),
        Sent(0, 0, A),
        Sent(0, 200, C),
        Sent(1, 0, acked=300),
        Sent(1, 0, acked=300, after_ms=30),
        Sent(1, 0, acked=300, after_ms=30),
        Sent(0, 300, D),
    ]
    result = reassemble(packets(scenario))
    assert [(g.position, g.length, g.reason, g.packet) for g in result.gaps(0)] == [
        (100, 100, GapReason.LOST, 8)
    ]
    assert result.joined(0) == A + C + D
    run = result.runs(0)[1]
    assert (run.data, run.packet, run.known) == (C, 5, 8)


def test_without_times_acknowledged_missing_bytes_are_a_gap_at_once() -> None:
    scenario = [*hello(), Sent(0, 0, A), Sent(0, 200, C), Sent(1, 0, acked=300), Sent(0, 300, D)]
    blocks = [simple(packet) for packet in packets(scenario)]
    result, reassembler = ReassembledEvents(), Reassembler()
    for block in Capture([b"".join([section(), interface(), *blocks])]):
        result.add(reassembler.handle(PacketParser().parse(block)))
    result.add(reassembler.handle(None))
    assert result.joined(0) == A + C + D
    assert [(g.position, g.reason, g.packet) for g in result.gaps(0)] == [(100, GapReason.LOST, 6)]
    assert result.connections[0].first_ns == result.connections[0].last_ns == NO_TIME


def test_a_packet_captured_after_its_acknowledgment_is_not_lost() -> None:
    scenario = [*hello(), Sent(0, 100, B), Sent(1, 0, acked=200), Sent(0, 0, A, after_ms=20)]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A + B
    assert result.missing(0) == set()


def test_an_unacknowledged_gap_times_out() -> None:
    limits = replace(DEFAULT_REASSEMBLY, gap_timeout_ns=10**9)
    scenario = [*hello(), Sent(0, 100, B), Sent(0, 200, C), Sent(0, 300, D, after_ms=1500)]
    (gap,) = reassemble(packets(scenario), limits).gaps(0)
    assert (gap.position, gap.length, gap.reason) == (0, 100, GapReason.TIMEOUT)


def test_a_gap_with_too_much_data_behind_it_is_given_up() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_held_bytes=1000)
    scenario = [*hello(), *(Sent(0, at, A) for at in range(100, 2000, 100))]
    result = reassemble(packets(scenario), limits)
    (gap,) = result.gaps(0)
    assert (gap.position, gap.length, gap.reason) == (0, 100, GapReason.LIMIT)
    assert len(result.joined(0)) == 1900


def test_all_connections_together_are_bounded() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_total_bytes=5000)
    scenario = []
    for port in range(50000, 50020):
        scenario += hello(ports=(port, 9092))
        scenario += [Sent(0, 100 + at, A, ports=(port, 9092)) for at in range(0, 1000, 100)]
    result = reassemble(packets(scenario), limits)
    assert sum(len(result.joined(0, number)) for number in range(20)) == 20 * 1000
    reasons = [gap.reason for number in range(20) for gap in result.gaps(0, number)]
    assert reasons.count(GapReason.LIMIT) == 15
    assert reasons.count(GapReason.END) == 5


def test_late_bytes_are_discarded_and_reported() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_held_bytes=150)
    scenario = [*hello(), Sent(0, 100, B), Sent(0, 200, C), Sent(0, 50, A), Sent(0, 0, D)]
    result = reassemble(packets(scenario), limits)
    assert result.joined(0) == B + C
    late = [(d.position, d.length, d.reason) for d in result.discarded]
    assert late == [(50, 50, DiscardReason.LATE), (0, 100, DiscardReason.LATE)]
    assert result.connections[0].totals[0].captured == 400


def test_bytes_cut_by_the_snaplen_are_a_gap_at_once() -> None:
    scenario = [*hello(), Sent(0, 0, A, captured=40), Sent(0, 100, B), Sent(0, 200, C, captured=0)]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A[:40] + B
    assert [(g.position, g.length, g.reason, g.packet) for g in result.gaps(0)] == [
        (40, 60, GapReason.CUT, 4),
        (200, 100, GapReason.CUT, 6),
    ]


def test_a_cut_segment_behind_a_gap() -> None:
    scenario = [*hello(), Sent(0, 100, B, captured=40), Sent(0, 200, C), Sent(0, 0, A)]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A + B[:40] + C
    assert result.missing(0) == set(range(140, 200))


def test_headers_only_and_a_lost_packet() -> None:
    scenario = [
        *hello(),
        Sent(0, 0, A, captured=0),
        Sent(0, 200, C, captured=0),
        Sent(0, 300, D, captured=0, after_ms=40_000),
    ]
    result = reassemble(packets(scenario))
    assert result.missing(0) == set(range(400))
    assert [gap.reason for gap in result.gaps(0)][:2] == [GapReason.CUT, GapReason.TIMEOUT]


def test_a_capture_that_begins_in_the_middle() -> None:
    scenario = [
        Sent(0, 5000, A, acked=700),
        Sent(1, 700, B, acked=5100),
        Sent(0, 5100, C, acked=800),
    ]
    result = reassemble(packets(scenario))
    assert (result.joined(0), result.joined(1)) == (A + C, B)
    (connection,) = result.connections
    assert connection.client is None
    assert (result.missing(0), result.missing(1)) == (set(), set())


def test_a_capture_that_begins_between_two_reordered_segments() -> None:
    scenario = [Sent(1, 0, acked=5000), Sent(0, 5100, B), Sent(0, 5000, A)]
    result = reassemble(packets(scenario))
    assert result.joined(1) == A + B


def test_bytes_before_the_first_captured_one_are_reported() -> None:
    result = reassemble(packets([Sent(0, 5000, A), Sent(0, 4900, B)]))
    assert result.joined(0) == A
    assert [(d.length, d.reason) for d in result.discarded] == [(100, DiscardReason.BEFORE)]


def test_a_capture_that_begins_at_an_empty_keep_alive_probe() -> None:
    result = reassemble(packets([Sent(0, 4999), Sent(1, 0, acked=5000), Sent(0, 5000, A)]))
    assert result.joined(0) == A
    assert result.missing(0) == set()


def test_one_side_only() -> None:
    result = reassemble(packets([*hello(False), Sent(0, 0, A), Sent(0, 100, B), Sent(0, 200, C)]))
    assert result.joined(0) == A + B + C


def test_acknowledged_bytes_never_captured_are_a_gap_at_the_end() -> None:
    result = reassemble(packets([*hello(), Sent(0, 0, A), Sent(1, 0, acked=300)]))
    assert [(g.position, g.length, g.reason) for g in result.gaps(0)] == [
        (100, 200, GapReason.LOST)
    ]


def test_a_fin_that_was_not_captured_is_not_a_lost_byte() -> None:
    result = reassemble(packets([*hello(), Sent(0, 0, A), Sent(1, 0, acked=101)]))
    assert result.missing(0) == set()


def test_lost_before_the_fin() -> None:
    scenario = [*hello(), Sent(0, 0, A), Sent(0, 200, flags=FIN), Sent(1, 0, acked=201)]
    result = reassemble(packets(scenario))
    assert result.missing(0) == set(range(100, 200))


# -- port reuse


@STEPS
def test_a_new_syn_begins_a_new_connection(step: int) -> None:
    again = (77_000_000, 88_000_000)
    scenario = [
        *hello(),
        Sent(0, 0, A),
        Sent(0, 200, C),
        *hello(isns=again),
        Sent(0, 0, B, isns=again),
        Sent(1, 0, D, acked=100, isns=again),
    ]
    result = reassemble(packets(scenario), step=step)
    assert (result.joined(0), result.missing(0)) == (A + C, set(range(100, 200)))
    assert (result.joined(0, 1), result.joined(1, 1)) == (B, D)
    assert result.closed == [(0, CloseReason.REPLACED), (1, CloseReason.END)]


def test_a_repeated_syn_does_not() -> None:
    scenario = [Sent(0, -1, flags=SYN, acked=None), *hello(), Sent(0, 0, A), hello()[0], hello()[1]]
    result = reassemble(packets(scenario))
    assert len(result.connections) == 1
    assert result.joined(0) == A


def test_a_syn_captured_after_the_syn_ack_and_its_data() -> None:
    first, second, third = hello()
    result = reassemble(packets([second, Sent(0, 0, A), first, third, Sent(1, 0, B, acked=100)]))
    (connection,) = result.connections
    assert (connection.client, connection.endpoints[0].port) == (0, 50000)
    assert (result.joined(0), result.joined(1)) == (A, B)


def test_a_syn_on_a_connection_captured_from_its_middle() -> None:
    again = (77_000_000, 88_000_000)
    scenario = [Sent(1, 700, A, acked=5000), *hello(isns=again), Sent(1, 0, B, isns=again)]
    result = reassemble(packets(scenario))
    assert [connection.id for connection in result.connections] == [0, 1]
    assert (result.joined(0), result.joined(1, 1)) == (A, B)


def test_a_long_silence_begins_a_new_connection_unless_it_continues() -> None:
    hour = 3_600_000
    scenario = [*hello(), Sent(0, 0, A), Sent(0, 100, B, after_ms=hour)]
    assert len(reassemble(packets(scenario)).connections) == 1
    far = (ISNS[0] + (1 << 25), ISNS[1])
    scenario = [*hello(), Sent(0, 0, A), Sent(0, 100, B, after_ms=hour, isns=far)]
    result = reassemble(packets(scenario))
    assert (result.joined(0), result.joined(0, 1)) == (A, B)


def test_out_of_window_segments_are_discarded_and_many_begin_a_new_connection() -> None:
    far = (ISNS[0] + (1 << 31), ISNS[1])
    strays = [Sent(0, 100 * i, D, isns=far) for i in range(12)]
    result = reassemble(packets([*hello(), Sent(0, 0, A), strays[0], Sent(0, 100, B)]))
    assert result.joined(0) == A + B
    assert [d.reason for d in result.discarded] == [DiscardReason.OUTSIDE]
    result = reassemble(packets([*hello(), Sent(0, 0, A), *strays]))
    assert len(result.discarded) == 8
    assert result.joined(0, 1) == D * 4


def test_after_both_fins_a_far_segment_is_another_connection() -> None:
    far = (ISNS[0] + (1 << 31), ISNS[1])
    scenario = [*hello(), Sent(0, 0, A), *goodbye(100, 0), Sent(0, 0, B, isns=far)]
    result = reassemble(packets(scenario))
    assert (result.joined(0), result.joined(0, 1)) == (A, B)
    assert result.closed[0] == (0, CloseReason.FINISHED)


def test_a_reset_closes_after_what_was_out_of_order() -> None:
    scenario = [
        *hello(),
        Sent(0, 100, B),
        Sent(1, 0, acked=0, flags=RST),
        Sent(0, 0, A),
        Sent(0, 0, ports=(1, 2), after_ms=1500),
        Sent(0, 1, ports=(1, 2)),
    ]
    result = reassemble(packets(scenario), step=1)
    assert result.joined(0) == A + B
    assert (0, CloseReason.RESET) in result.closed


def test_data_after_the_end_is_discarded() -> None:
    scenario = [*hello(), Sent(0, 0, A), *goodbye(100, 0), Sent(0, 100, B), Sent(0, 0, A)]
    result = reassemble(packets(scenario))
    assert result.joined(0) == A
    # the totals that were reported when it closed stand, also if bytes are sent again
    assert [d.reason for d in result.discarded] == [DiscardReason.AFTER, DiscardReason.REPEATED]
    assert result.connections[0].totals[0].captured == 300
    assert result.connections[0].captured_bytes == 100


def test_what_comes_after_the_end_and_was_missing_repeats_nothing() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_held_bytes=50)
    scenario = [*hello(), Sent(0, 100, B), *goodbye(200, 0), Sent(0, 0, A), Sent(0, 100, B)]
    result = reassemble(packets(scenario), limits)
    assert result.joined(0) == B
    assert [d.reason for d in result.discarded] == [DiscardReason.AFTER, DiscardReason.REPEATED]


def test_too_many_connections_evict_the_finished_and_the_idle() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_connections=8)
    scenario = []
    for port in range(1000, 1020):
        scenario += [*hello(ports=(port, 9092)), Sent(0, 0, A, ports=(port, 9092))]
    result = reassemble(packets(scenario), limits, step=4)
    assert [result.joined(0, number) for number in range(20)] == [A] * 20
    reasons = [reason for _, reason in result.closed]
    assert reasons.count(CloseReason.FORGOTTEN) >= 12
    assert result.closed[0] == (0, CloseReason.FORGOTTEN)


def test_data_on_a_syn() -> None:
    opening = Sent(0, -1, A, flags=SYN, acked=None)
    result = reassemble(packets([opening, Sent(1, -1, flags=SYN, acked=100), Sent(0, 100, B)]))
    assert result.joined(0) == A + B


# -- order


def test_both_sides_interleaved_within_a_block() -> None:
    scenario = hello()
    for i in range(20):
        scenario += [Sent(0, i * 100, A, acked=i * 100), Sent(1, i * 100, B, acked=i * 100 + 100)]
    result = reassemble(packets(scenario))
    runs = [event for event in result.events if isinstance(event, Run)]
    assert [run.packet for run in runs] == list(range(4, 44))
    assert [run.side for run in runs] == [0, 1] * 20
    assert all(run.data == (A, B)[run.side] for run in runs)


def test_runs_behind_a_gap_are_reported_after_it() -> None:
    limits = replace(DEFAULT_REASSEMBLY, max_held_bytes=250)
    scenario = [*hello(), Sent(0, 100, A), Sent(1, 0, D), Sent(0, 200, B), Sent(0, 300, C)]
    result = reassemble(packets(scenario), limits)
    found = [event for event in result.events if isinstance(event, Run | Gap)]
    assert [(event.side, type(event).__name__) for event in found] == [
        (1, "Run"),
        (0, "Gap"),
        (0, "Run"),
        (0, "Run"),
        (0, "Run"),
    ]
    assert [event.packet for event in found] == [5, 7, 4, 6, 7]


def test_connections_are_numbered_by_their_first_packet() -> None:
    scenario = []
    for port in (3000, 1000, 2000):
        scenario.append(Sent(0, -1, flags=SYN, acked=None, ports=(port, 9092)))
    result = reassemble(packets(scenario))
    numbered = sorted(result.connections, key=lambda connection: connection.id)
    assert [connection.endpoints[0].port for connection in numbered] == [3000, 1000, 2000]


def test_connections_between_the_same_ports_of_other_addresses() -> None:
    data = [
        Packet(ethernet(ipv4(tcp(1000, 9092, 5, A), source=f"10.0.{i // 250}.{i % 250 + 1}")))
        for i in range(2000)
    ]
    result = reassemble(data)
    assert len({connection.id for connection in result.connections}) == 2000
    assert len(result.connections) == 2000


def test_flows_of_evicted_connections_are_freed_without_cyclic_gc() -> None:
    scenario: list[Sent] = []
    for port in range(1000, 1100):
        scenario += [*hello(ports=(port, 9092)), Sent(0, 0, A, ports=(port, 9092))]
    gc.collect()
    gc.disable()
    try:
        result = reassemble(
            packets(scenario), replace(DEFAULT_REASSEMBLY, max_connections=4), step=1
        )
        alive = sum(isinstance(each, Flow) for each in gc.get_objects())
    finally:
        gc.enable()
    assert alive <= 16
    forgotten = [
        event.connection
        for event in result.events
        if isinstance(event, Closed) and event.reason is CloseReason.FORGOTTEN
    ]
    assert len(forgotten) > 50
    assert all(connection.totals[0].delivered == 100 for connection in forgotten)
