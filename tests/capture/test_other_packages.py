"""Captures of protocols that are not Kafka's: the package says how their bytes are read."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkawire import Registry
from kafkawire.capture import decode_capture, decode_frames
from kafkawire.capture.engine import Engine
from kafkawire.capture.exchanges.conversation import Conversation
from kafkawire.capture.filters import parse
from kafkawire.capture.frames.apis import KAFKA_APIS, Apis, apis_of
from kafkawire.capture.frames.bare import decode_body
from kafkawire.capture.frames.decoding import LocatedItem, RawFrame, located
from kafkawire.capture.frames.detection import find_request
from kafkawire.capture.frames.serialised import pack, unpack
from kafkawire.capture.multifile import Traffic
from kafkawire.capture.packet_messages import Known, Search
from kafkawire.capture.rows import Located, Row
from kafkawire.errors import FilterError, UnknownApiKey
from tests.conftest import FIXTURES
from tests.generated import generated, keyvalue, write_capture
from tests.test_registry import ECHO, ECHOED, REQUEST_HEADER, RESPONSE_HEADER

from .machine import feed, finish, gap
from .written import BROKER, CLIENT, Scenario

LIMIT = 1 << 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("store")
    with keyvalue(folder):
        write_capture(folder)
        yield folder


@pytest.fixture
def store(folder: Path) -> Registry:  # noqa: ARG001 - makes the package importable
    return Registry("keyvalue.messages")


@pytest.fixture
def apis(store: Registry) -> Apis:
    return apis_of(store.name)


def frames(store: Registry) -> list[tuple[int, bytes]]:
    """Frames of a conversation, with the side that sends them."""
    hello = store.load("HelloRequest")(software="kv 1.2")
    get = store.load("GetRequest")(bucket="notes", key="k", revision=3)
    made = []
    for id, (name, request, version) in enumerate([("Hello", hello, 0), ("Get", get, 1)]):
        response = store.load(f"{name}Response")()
        client_id = "me" if version else None
        made.append((CLIENT, store.encode_frame(request, version, id, client_id=client_id)))
        made.append((BROKER, store.encode_frame(response, version, id)))
    return made


def summary(rows: Iterable[Row]) -> list[tuple[str, str | None, str]]:
    return [(row.direction, row.api_name, row.status.value) for row in rows]


BOTH = [
    ("request", "Hello", "ok"),
    ("response", "Hello", "ok"),
    ("request", "Get", "ok"),
    ("response", "Get", "ok"),
]


def run(conversation: Conversation, pieces: Iterable[tuple[int, bytes]]) -> list[Row]:
    rows: list[Row] = []
    for packet, (side, data) in enumerate(pieces, 1):
        rows += feed(conversation, side, data, packet, packet * 1000)
    return rows + finish(conversation)


def test_a_capture_is_decoded_with_its_package(folder: Path, store: Registry) -> None:
    found = list(decode_capture(folder / "keyvalue.pcap", registry=store))
    names = ["Hello", "Hello", "Put", "Put", "Get", "Get", "Get", "Get"]
    assert [one.row.api_name for one in found] == names
    assert {one.row.status.value for one in found} == {"ok"}
    assert [one.row.client_id for one in found if one.row.direction == "request"] == [
        "", "demo", "demo", "",
    ]  # fmt: skip
    assert type(found[2].row.message) is store.load("PutRequest")
    assert not any(one.row.status == "ok" for one in decode_capture(folder / "keyvalue.pcap"))


def test_pieces_of_any_size_are_the_same(store: Registry, apis: Apis) -> None:
    whole = run(Conversation(apis=apis), frames(store))
    assert summary(whole) == BOTH
    pieces = [(side, data[at : at + 1]) for side, data in frames(store) for at in range(len(data))]
    cut = run(Conversation(client=CLIENT, in_sync=(True, True), apis=apis), pieces)
    assert [row.message for row in cut] == [row.message for row in whole]
    assert summary(cut) == BOTH


def test_a_stream_is_found_in_its_middle(store: Registry, apis: Apis) -> None:
    (_, hello), (_, greeted), (_, get), (_, got) = frames(store)
    rows = run(Conversation(apis=apis), [(CLIENT, hello[9:] + get), (BROKER, greeted[5:] + got)])
    assert [row.status.value for row in rows] == ["unparsed", "ok", "unparsed", "ok"]
    assert summary(rows[1::2]) == [("request", "Get", "ok"), ("response", "Get", "ok")]


def test_a_gap_costs_only_its_frame(store: Registry, apis: Apis) -> None:
    conversation = Conversation(client=CLIENT, in_sync=(True, True), apis=apis)
    (_, hello), (_, greeted), (_, get), (_, got) = frames(store)
    rows = feed(conversation, CLIENT, hello[:14], 1, 1)
    rows += gap(conversation, CLIENT, 2, 1, 1)
    rows += feed(conversation, CLIENT, hello[16:] + get, 2, 2)
    rows += feed(conversation, BROKER, greeted + got, 3, 3)
    assert ("request", "Get", "ok") in summary(rows)
    assert summary(rows)[-2:] == [("response", "Hello", "ok"), ("response", "Get", "ok")]


def test_the_smallest_request_is_detected(tmp_path: Path) -> None:
    """Eight bytes of header, no body: less than the first check of Kafka's requests looks at."""
    ping = {
        "apiKey": 300, "type": "request", "name": "PingRequest", "validVersions": "0-300",
        "flexibleVersions": "none", "headerVersions": {"0+": 0}, "fields": [],
    }  # fmt: skip
    pong = ping | {"type": "response", "name": "PingResponse"}
    with generated(tmp_path, "ping_a", ping, pong):
        registry, apis = Registry("ping_a"), apis_of("ping_a")
        frame = registry.encode_frame(registry.load("PingRequest")(), 300, 5)
        assert len(frame) == 12
        found = find_request(b"\xff\xff" + frame + frame, LIMIT, apis)
        assert found is not None
        assert (found.at, found.proven) == (2, True)
        pieces = [
            (CLIENT, frame),
            (BROKER, registry.encode_frame(registry.load("PingResponse")(), 0, 5)),
        ]
        rows = run(Conversation(apis=apis), pieces)
        assert summary(rows) == [("request", "Ping", "ok"), ("response", "Ping", "ok")]
        assert find_request(frame[:7] + b"\x2d" + frame[8:], LIMIT, apis) is None, "version 301"
        assert find_request(frame, LIMIT) is None


def test_bytes_of_kafka_are_no_messages_of_another_package(store: Registry) -> None:
    capture = FIXTURES / "captures" / "kcat-kf.pcap"
    rows = [one.row for one in decode_capture(capture, registry=store)]
    assert not any(row.is_message for row in rows)


# -- what only Kafka does

LOCK = {
    "apiKey": 17, "type": "request", "name": "LockRequest", "validVersions": "0",
    "flexibleVersions": "none", "fields": [{"name": "Key", "type": "string", "versions": "0+"}],
}  # fmt: skip
ERROR_CODE = {"name": "ErrorCode", "type": "int16", "versions": "0+"}
LOCKED = LOCK | {"type": "response", "name": "LockResponse", "fields": [ERROR_CODE]}  # fmt: skip
FREE = LOCK | {"apiKey": 18, "name": "FreeRequest", "validVersions": "0-1"}
FREED = LOCKED | {
    "apiKey": 18, "name": "FreeResponse", "validVersions": "0-1",
    "fields": [ERROR_CODE, {"name": "Key", "type": "string", "versions": "1+"}],
}  # fmt: skip


def test_no_exception_of_kafka_applies(tmp_path: Path) -> None:
    """API 17 is not SaslHandshake, so no tokens follow; 35 from API 18 is not an older version."""
    with generated(tmp_path, "locks_a", LOCK, LOCKED, FREE, FREED):
        locks, apis = Registry("locks_a"), apis_of("locks_a")
        free = locks.load("FreeRequest")(key="k")
        freed = locks.load("FreeResponse")(error_code=35, key="k")
        pieces = [
            (CLIENT, locks.encode_frame(locks.load("LockRequest")(key="k"), 0, 1, client_id="a")),
            (BROKER, locks.encode_frame(locks.load("LockResponse")(), 0, 1)),
            (CLIENT, locks.encode_frame(free, 1, 2, client_id="a")),
            (BROKER, locks.encode_frame(freed, 1, 2)),
        ]
        rows = run(Conversation(client=CLIENT, in_sync=(True, True), apis=apis), pieces)
        assert summary(rows) == [
            ("request", "Lock", "ok"),
            ("response", "Lock", "ok"),
            ("request", "Free", "ok"),
            ("response", "Free", "ok"),
        ]
        assert (rows[-1].message, rows[-1].body_version) == (freed, 1)


def test_headers_of_a_packages_own(tmp_path: Path) -> None:
    with generated(tmp_path, "echo_d", ECHO, ECHOED, REQUEST_HEADER, RESPONSE_HEADER):
        echo, apis = Registry("echo_d"), apis_of("echo_d")
        response = echo.load("EchoResponse")(text="pong pong")
        pieces = []
        for id, version in enumerate((1, 0, 1)):
            header = {"tenant": "t"} if version else None
            request = echo.load("EchoRequest")(text="ping")
            pieces.append((CLIENT, echo.encode_frame(request, version, id, header=header)))
            pieces.append(
                (BROKER, echo.encode_frame(response, version, id, header={"elapsed_us": 9}))
            )
        rows = run(Conversation(apis=apis), pieces)
        assert summary(rows) == [("request", "Echo", "ok"), ("response", "Echo", "ok")] * 3
        assert [row.client_id for row in rows] == [None] * 6
        known = Conversation(client=CLIENT, in_sync=(True, True), known_kafka=True, apis=apis)
        (lost,) = run(known, pieces[1:2])
        assert (lost.status, lost.api_name, lost.message) == ("inferred", "Echo", response)


# -- elsewhere


def test_raw_frames_carry_their_package(folder: Path, store: Registry) -> None:
    items = [
        i for b in Traffic([folder / "keyvalue.pcap"], package=store.name).item_batches() for i in b
    ]
    rows = [located(one) for one in items]
    assert [located(one) for one in unpack(pickle.loads(pickle.dumps(pack(items))))] == rows
    assert [located(one) for one in pickle.loads(pickle.dumps(items))] == rows
    first = items[0].item
    assert isinstance(first, RawFrame)
    assert first.request is not None
    assert first.request.apis is apis_of(store.name)
    assert pickle.loads(pickle.dumps(apis_of(store.name))) is apis_of(store.name)
    assert pack([LocatedItem(0, "", "", first)]).package == store.name


def test_a_snapshot_continues_with_the_package(folder: Path, store: Registry) -> None:
    from kafkawire.capture.files.source import read_capture
    from kafkawire.capture.packets.parser import PacketParser

    blocks = [*read_capture(folder / "keyvalue.pcap")]
    whole = [one.row for one in decode_capture(folder / "keyvalue.pcap", registry=store)]
    first, second = Engine(package=store.name), Engine(package=store.name)
    parser, (block,) = PacketParser(), blocks
    items = [one for batch in first.handle(parser.parse(block[:5])) for one in batch]
    second.restore(first.snapshot())
    for segments in (parser.parse(block[5:]), None):
        items += [one for batch in second.handle(segments) for one in batch]
    assert [located(one).row for one in items] == whole


def test_bare_frames_and_bodies(store: Registry) -> None:
    data = b"".join(frame for _, frame in frames(store))
    assert summary(decode_frames(data, registry=store)) == BOTH
    row = decode_body(1, 1, "request", b"\x02b\x02k\x00", registry=store)
    assert (row.api_name, row.message) == ("Get", store.load("GetRequest")(bucket="b", key="k"))
    with pytest.raises(UnknownApiKey):
        decode_body(3, 0, "request", b"", registry=store)


def test_filters_know_the_package(folder: Path, store: Registry) -> None:
    path = folder / "keyvalue.pcap"
    where = "api in (Get, put_request) and direction == request and latency < 1s"
    found = [one.row.api_name for one in decode_capture(path, registry=store, where=where)]
    assert found == ["Put", "Get", "Get"]
    with pytest.raises(FilterError, match="unknown API 'Fetch'"):
        parse("api == Fetch", store.name)
    with pytest.raises(FilterError, match="unknown field 'topic'"):
        parse("topic == x", store.name)
    assert pickle.loads(pickle.dumps(parse("api == 2", store.name))).package == store.name
    with pytest.raises(FilterError, match="unknown API 'Put'"):
        parse("api == Put")


def test_messages_of_a_packet(folder: Path, store: Registry) -> None:
    search = Search(str(folder / "keyvalue.pcap"), Known(package=store.name))
    (message,) = search.packet(5)
    assert store.decode_frame(message.data).api_key == 2
    assert len(search.exchange(6)) == 2


def test_apis_know_where_headers_are_ordinary(apis: Apis) -> None:
    """RequestHeads reads those of Kafka's layout; the law: with the result of raw_request."""
    get, hello = apis.api(1), apis.api(0)
    assert (get.ordinary, get.tagged) == (1, 1)
    assert hello.ordinary > 1000
    assert (get.ordinary_response, get.tagged_response) == (True, 1)
    fetch, shutdown = KAFKA_APIS.api(1), KAFKA_APIS.api(7)
    assert (fetch.ordinary, fetch.tagged, fetch.tagged_response) == (0, 12, 12)
    assert (shutdown.ordinary, shutdown.tagged) == (1, 3)
    assert KAFKA_APIS.api(18).tagged_response > 1000


def test_located_rows_of_scenarios(folder: Path, store: Registry, tmp_path: Path) -> None:  # noqa: ARG001
    """Many connections, and a port that is given."""
    scenario = Scenario(opened=False)
    for connection in range(3):
        for side, data in frames(store):
            scenario.send(side, data, connection)
    path = scenario.save(tmp_path / "many.pcap")
    found: list[Located] = list(decode_capture(path, registry=store, ports=[9092]))
    by_connection: dict[Any, list[Row]] = {}
    for one in found:
        by_connection.setdefault(one.connection, []).append(one.row)
    assert [summary(rows) for rows in by_connection.values()] == [BOTH] * 3


def test_a_search_does_not_depend_on_the_number_of_apis(tmp_path: Path) -> None:
    """Requests are looked for by sets of bytes, one for each first byte of their keys."""
    many = [
        ECHO | {"apiKey": key, "name": f"Echo{key}Request", "headerVersions": {"0+": 1}}
        for key in (0, 1, 2, 34, 255, 256, 32767)
    ]
    with generated(tmp_path, "many_a", *many):
        registry, apis = Registry("many_a"), apis_of("many_a")
        assert apis.ahead.pattern.count(b"[\\x") == 3 + 4, "sets of keys; size, version, id"
        for key in (0, 255, 256, 32767):
            message = registry.load(f"Echo{key}Request")(text="hello")
            frame = registry.encode_frame(message, 1, 7, client_id="me")
            found = find_request(b"\0" * 5 + frame, LIMIT, apis)
            assert found is not None
            assert (found.at, found.proven) == (5, True), key
        wrong = frame[:4] + b"\x7f\xfe" + frame[6:]
        assert find_request(wrong, LIMIT, apis) is None
