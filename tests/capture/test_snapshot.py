"""Compiled and interpreted builds read the state of each other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkawire.capture.engine import Engine
from kafkawire.capture.files.source import read_capture
from kafkawire.capture.packets.parser import PacketParser
from kafkawire.capture.snapshot import (
    STATE_VERSION,
    InvalidState,
    StateVersionError,
    attributes,
    dump,
    load,
)
from kafkawire.capture.snapshot_classes import STATE
from kafkawire.capture.state_format import name_of
from kafkawire.capture.tls.decryption import Decryption
from kafkawire.capture.tls.keylog import read_key_log
from kafkawire.capture.tls.layer import TlsLayer
from kafkawire.capture.tls.session import Session
from tests.conftest import FIXTURES, ROOT
from tests.recordings import recording

from . import engine_halves


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package without native modules."""
    folder = tmp_path_factory.mktemp("interpreted")
    without = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(ROOT / "kafkawire", folder / "kafkawire", ignore=without)
    return folder


def elsewhere(package: Path, *arguments: str) -> None:
    completed = subprocess.run(
        [sys.executable, str(Path(engine_halves.__file__)), *arguments],
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout == ".py\n"


def test_builds_read_each_others_state(interpreted: Path, tmp_path: Path) -> None:
    capture = str(recording("mixed-a.pcap"))
    state, rows = str(tmp_path / "state"), str(tmp_path / "rows")
    elsewhere(interpreted, "begin", capture, state, rows)
    theirs = json.loads(Path(rows).read_text())
    ours, expected = engine_halves.begin(capture)
    assert theirs == expected
    assert len(expected) > 1000
    assert engine_halves.end(capture, Path(state).read_bytes()) == expected
    assert engine_halves.end(capture, ours) == expected
    Path(state).write_bytes(ours)
    elsewhere(interpreted, "end", capture, state, rows)
    assert json.loads(Path(rows).read_text()) == expected


class Owner:
    """An object that is not in the state."""


def test_external_objects_are_named_and_not_written() -> None:
    owner = Owner()
    there = Owner()
    written = dump({"owner": owner}, owner=owner)
    made = load(written, owner=there)
    assert made["owner"] is there
    with pytest.raises(InvalidState):
        load(written)


def test_a_state_of_another_version_is_refused() -> None:
    state = Engine().snapshot()
    Engine().restore(state)
    assert state.startswith(b"%d\n" % STATE_VERSION)
    other = b"%d\n" % (STATE_VERSION + 1) + state.partition(b"\n")[2]
    for refused in (other, b"", b"garbage"):
        with pytest.raises(StateVersionError, match=f"not {STATE_VERSION}"):
            Engine().restore(refused)


LAYOUT = {
    "tcp.flow.Budget": "held holding remembered",
    "exchanges.client_detection.ClientDetection": (
        "_apis _limits _retry_at _searched _streams _walked"
    ),
    "tcp.connection.Connection": (
        "captured_bytes client closed established_ns first_ns first_packet id key last_ns "
        "last_packet out_of_window receivers repeated_bytes reset reset_ns source starts "
        "syn_ack_ns syn_ns syn_seen totals"
    ),
    "tcp.connection_table.ConnectionTable": "_max_bytes _removed budget flows limits opened",
    "exchanges.conversation.Conversation": (
        "_apis _detection _handshake _heads _inference _pairing _sasl_tokens _streams client "
        "detected limits other"
    ),
    "tcp.retransmission.DeliveredBytes": "_gaps _limit _recent position stored",
    "tcp.flow.Flow": (
        "_budget _delivered _gap_policy _limits _out_of_order _peer_ack acked connection "
        "fin_acked fin_at initial is_examined next_seq origin peer position side totals waiting"
    ),
    "tcp.gap_policy.GapPolicy": "_acks _limits _since",
    "exchanges.inference.Inference": (
        "_apis _last_key _last_version _layouts _limits _searches _seen _undecoded _undecoded_bytes"
    ),
    "frames.framing.Mark": "end packet time_ns",
    "tcp.out_of_order.OutOfOrderSegments": "_cuts _held bytes",
    "exchanges.in_flight.Entry": "answerable is_open key owner request since size",
    "exchanges.in_flight.InFlightRequests": (
        "_bytes _first _late _lost _overtaken _positions _queue _removed _responses _total "
        "connection given_up visited"
    ),
    "exchanges.in_flight.Total": "_bytes _count _order evicted",
    "exchanges.pairing.Pairing": (
        "_arrivals _completed _last_arrival _lost_before _requests _total _waiting"
    ),
    "proxy.layer.ProxyLayer": ("_client _held _messages _protocol _sides _step is_done start"),
    "proxy.layer.ProxySide": "data need taken texts",
    "tcp.reassembly.Reassembler": "_table",
    "frames.framing.RequestHeads": "_apis _client_bytes _client_id",
    "frames.framing.Stream": "_at _data _marks _more held in_sync last need position skip skipped",
    "tcp.connection.Receiver": (
        "closed_at closed_ns finished finished_ns is_closed mss zero_windows"
    ),
    "tcp.connection.Totals": "conflicting delivered discarded duplicate keep_alive missing",
    "exchanges.waiting.WaitingResponse": "arrival completed correlation_id frame is_open mark",
    "exchanges.waiting.WaitingResponses": "_all _by_id _bytes _count visited",
    "tls.decryption.Decryption": "authenticated epoch from_client generation lost sequence tries",
    "tls.handshake.Handshake": "_key_log _transcript client hello session",
    "tls.hellos.HandshakeMessages": "_held max_bytes overflow",
    "tls.records.RecordBuffer": "_chunks _need held",
    "tls.reporting.Reporting": "_handshake announced",
    "tls.session.Session": "_cache client server session_hash",
    "tls.side.Side": (
        "buffer decryption encrypted failures messages overhead position problem searching "
        "unreadable waiting waiting_bytes"
    ),
    "tls.connection.TlsConnection": "_handshake _key_log _rows _sides",
    "tls.layer.TlsLayer": "_first connection is_tls",
}
"""The classes of a state of version 13, and their attributes. Whoever changes them increases
STATE_VERSION: a watch then refuses older states instead of misreading them.
"""


def test_another_layout_needs_another_version() -> None:
    assert STATE_VERSION == 13
    found = {
        f"{cls.__module__}.{cls.__name__}".removeprefix("kafkawire.capture."): " ".join(
            sorted(attributes(cls(*made)))
        )
        for cls, made in STATE.items()
    }
    assert found == LAYOUT


def names_in(state: bytes) -> set[str]:
    """The classes that a state names."""
    return {name for name in map(name_of, STATE) if name.encode() in state}


def test_a_state_has_the_classes_of_state() -> None:
    """Others are refused when they are written (`test_state_format`)."""
    state = engine_halves.begin(str(recording("mixed-a.pcap")))[0]
    listed = {name_of(cls) for cls in STATE}
    assert len(names_in(state) & listed) > 8


def test_so_has_a_state_of_tls_connections() -> None:
    engine = Engine(key_log=read_key_log(FIXTURES / "tls" / "resumed-tls13.keys"))
    for block in read_capture(FIXTURES / "tls" / "resumed-tls13.pcap"):
        list(engine.handle(PacketParser().parse(block[:40])))
    state = engine.snapshot()
    tls = {name_of(cls) for cls in (TlsLayer, Session, Decryption)}
    assert tls <= names_in(state)
    again = Engine(key_log=engine.key_log)
    again.restore(state)
    assert len(again.connections) == len(engine.connections) > 0
