"""`kafkawire.Registry`: packages of others have all of the API."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kafkawire
from kafkawire import Embedded, Registry, UnknownApiKey, UnsupportedVersion
from kafkawire.errors import (
    DecodeError,
    EncodeError,
    InvalidTag,
    InvalidValue,
    OutOfRange,
    Truncated,
)
from tests.generated import generated, keyvalue

DOCUMENT = b"\x00\x01\x00\x01T\x00\x00\x00\x00\x00\x02Hi"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    with keyvalue(tmp_path_factory.mktemp("store")):
        yield Registry("keyvalue.messages")


def put(store: Registry, **fields: Any) -> Any:
    cls = store.load("PutRequest")
    entry = sys.modules[cls.__module__].Entry
    return cls(bucket="b", entries=[entry(**{"key": "k", **fields})])


def test_a_registry_lists_its_messages(store: Registry) -> None:
    assert store.name == "keyvalue.messages"
    assert len(store) == 7
    assert "PutRequest" in store
    assert "FetchRequest" not in store
    assert {info.name for info in store if info.type == "data"} == {"Document"}
    assert store.get("GetRequest").headers == ((0, 0), (1, 2))
    assert store.load("Document").__module__ == "keyvalue.messages.document"
    assert repr(store) == "Registry('keyvalue.messages')"
    assert pickle.loads(pickle.dumps(store)).package is store.package
    module = sys.modules["keyvalue.messages"]
    assert Registry(module).package is store.package
    with pytest.raises(UnknownApiKey):
        store.load("FetchRequest")


def test_messages_are_decoded_and_encoded(store: Registry) -> None:
    message = put(store, value=b"v", ttl_ms=5)
    data = store.encode(message, 1)
    assert store.decode("PutRequest", 1, data) == message
    made = store.to_json(message, 1)
    assert made == {"bucket": "b", "entries": [
        {"key": "k", "contentType": "", "value": "dg==", "ttlMs": 5}
    ]}  # fmt: skip
    assert store.from_json("PutRequest", 1, made) == message
    lenient = store.decode("PutRequest", 1, data + b"!", lenient=True)
    assert lenient.deviations is not None
    assert store.encode(lenient, 1, lenient=True) == data + b"!"
    with pytest.raises(UnsupportedVersion, match="PutRequest has versions 0-1, not 7"):
        store.to_json(message, 7)
    with pytest.raises(UnsupportedVersion):
        kafkawire.to_json(message, 7)
    with pytest.raises(InvalidValue, match="did you mean 'bucket'"):
        store.from_json("PutRequest", 1, {"buckets": "b"})


def test_errors_name_field_and_byte(store: Registry) -> None:
    data = put(store, value=b"abc", ttl_ms=5).encode(1)
    with pytest.raises(Truncated) as caught:
        store.decode("PutRequest", 1, data[:9])
    assert (caught.value.path, caught.value.offset) == ("PutRequest.entries[0].value", 9)
    short = b"\x02b\x02\x02k\x01\x01\x01\x00\x04" + bytes(8)
    with pytest.raises(InvalidTag) as tag:
        store.load("PutRequest").decode(short + b"\0", 1)
    assert tag.value.path == "PutRequest.entries[0].ttl_ms"
    refused: EncodeError
    with pytest.raises(InvalidValue) as wrong:
        put(store, value="text").encode(1)
    refused = wrong.value
    assert refused.path == "PutRequest.entries[0].value"
    with pytest.raises(OutOfRange) as large:
        store.load("HelloResponse")(newest=1 << 20).encode(0)
    assert large.value.path == "HelloResponse.newest"
    for error in (caught.value, refused, large.value):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again)) == (type(error), str(error))


def test_messages_explain_themselves(store: Registry) -> None:
    text = store.load("GetRequest").__doc__
    assert text is not None
    assert text.startswith("Requests the value of a key.")
    assert "revision (1): The revision to read; -1 for the newest." in text


def test_messages_can_be_pickled(store: Registry) -> None:
    message = store.decode("PutRequest", 1, put(store).encode(1) + b"!", lenient=True)
    again = pickle.loads(pickle.dumps(message))
    assert (again, again.deviations) == (message, message.deviations)


def test_headers_are_those_of_the_schemas(store: Registry) -> None:
    hello = store.load("HelloRequest")(software="s")
    frame = store.encode_frame(hello, 0, 9)
    assert frame.hex() == "0000000b" + "0000" + "0000" + "00000009" + "000173"
    assert store.decode_frame(frame).header_version == 0
    get = store.load("GetRequest")(bucket="b", key="k", revision=2)
    for version, header in ((0, 0), (1, 2)):
        request = store.load("GetRequest")(bucket="b", key="k")
        found = store.decode_frame(store.encode_frame(request, version, 3))
        assert (found.header_version, found.body, found.is_request) == (header, request, True)
    frame = store.encode_frame(get, 1, 3, client_id="me", header_tags=[(5, b"x")])
    assert (
        b"".join(store.encode_frame_buffers(get, 1, 3, client_id="me", header_tags=[(5, b"x")]))
        == frame
    )
    decoded = store.decode_frame(frame)
    assert (decoded.header.client_id, decoded.header.unknown_tags) == ("me", [(5, b"x")])  # type: ignore[union-attr]
    response = store.load("PutResponse")(error_code=35)
    frame = store.encode_frame(response, 1, 3)
    found = store.decode_frame(frame, response_to=(2, 1))
    assert (found.header_version, found.body, found.body_version) == (1, response, 1)
    with pytest.raises(DecodeError):
        store.decode_frame(frame[:-1], response_to=(2, 1))
    with pytest.raises(UnknownApiKey, match="unknown API key 3"):
        store.decode_frame(bytes.fromhex("0000000a0003000000000001ffff"))
    with pytest.raises(UnknownApiKey, match="neither a request nor a response"):
        store.encode_frame(store.load("Document")(), 0, 1)


def test_no_exception_of_kafka_applies(store: Registry) -> None:
    """API key 18 with error 35 is an ApiVersions response of version 0 for Kafka alone."""
    from kafkawire.protocol.frame import response_body_versions

    assert response_body_versions(18, 3, b"\0\x23") == (0, 3)
    assert response_body_versions(18, 3, b"\0\x23", package=store.package) == (3,)
    shown = str(store.explain("PutResponse", 0, b"\0\x23" + bytes(8)))
    assert "UNSUPPORTED_VERSION" not in shown


def test_bytes_are_explained_and_verified(store: Registry) -> None:
    get = store.load("GetRequest")(bucket="b", key="k", revision=2)
    found = store.explain_frame(store.encode_frame(get, 1, 3, client_id="me"))
    assert found.error is None
    rows = {row.field: row.value for row in found.rows}
    assert (rows["RequestHeader"], rows["GetRequest"]) == ("version 2", "version 1")
    assert (rows["api_key"] if "api_key" in rows else rows["request_api_key"]) == "1"
    assert rows["revision"] == "2"
    body = get.encode(1)
    assert b"".join(row.raw for row in store.explain("GetRequest", 1, body).rows) == body
    assert store.verify("GetRequest", 1, body)
    twice = body.replace(b"\x01\x00\x08", b"\x01\x00\x88\x00")
    verdict = store.verify("GetRequest", 1, twice)
    assert not verdict
    assert verdict.reasons[0].path == "GetRequest.revision"
    stopped = store.explain("GetRequest", 1, body[:-2])
    assert stopped.error is not None
    assert stopped.error.path == "GetRequest.revision"
    response = store.load("PutResponse")(revision=4)
    frame = store.encode_frame(response, 1, 3)
    assert store.explain_frame(frame, (2, 1)).error is None


def test_payloads_that_the_package_declares_are_decoded(store: Registry) -> None:
    message = put(store, content_type="document", value=DOCUMENT)
    (payload,) = store.embedded_payloads(message, 1)
    assert (payload.path, payload.kind, payload.version) == ("entries[0].value", "Document", 1)
    assert payload.value == store.load("Document")(title="T", text="Hi")
    assert kafkawire.embedded_payloads(message, 1) == [payload]
    made = store.to_json(message, 1, embedded=True)
    assert made["entries"][0]["valueDecoded"]["value"]["title"] == "T"
    assert store.embedded_payloads(put(store, content_type="text", value=DOCUMENT), 1) == []
    (short,) = store.embedded_payloads(put(store, content_type="document", value=b"\0"), 1)
    assert short.error == "Document: the data ends inside the version (at byte 1)"
    (later,) = store.embedded_payloads(put(store, content_type="document", value=b"\0\7"), 1)
    assert (later.version, later.error) == (7, "Document has versions 0-1, not 7")


def test_callers_may_declare_payloads(store: Registry) -> None:
    given = {"PutRequest.entries.value": Embedded("Document", version=0)}
    mine = Registry("keyvalue.messages", payloads=given)
    message = put(store, value=DOCUMENT[2:9])
    (payload,) = mine.embedded_payloads(message, 1)
    assert (payload.version, payload.value) == (0, store.load("Document")(title="T"))
    assert store.embedded_payloads(message, 1) == []
    again = pickle.loads(pickle.dumps(mine))
    assert again.embedded_payloads(message, 1) == [payload]


@pytest.mark.parametrize(
    ("path", "embedded", "reason"),
    [
        ("NoRequest.value", Embedded("Document"), "unknown message 'NoRequest'"),
        ("PutRequest.entry.value", Embedded("Document"), "PutRequest has no field 'entry'"),
        ("PutRequest.bucket", Embedded("Document"), "does not end in a bytes field"),
        ("PutRequest.entries", Embedded("Document"), "does not end in a bytes field"),
        ("PutRequest", Embedded("Document"), "does not end in a bytes field"),
        ("PutRequest.entries.value", Embedded("Doc"), "unknown message 'Doc'"),
        ("PutRequest.entries.value", Embedded({"a": "Document"}), "expected a message, or"),
        ("PutRequest.entries.value", Embedded("Document", by="key"), "expected a message, or"),
        ("PutRequest.entries.value", Embedded({"a": "Document"}, by="x"), "no struct on the path"),
        ("PutRequest.entries.value", Embedded("Document", version=2), "Document has versions 0-1"),
    ],
)
def test_payloads_that_do_not_fit_are_refused(
    store: Registry, path: str, embedded: Embedded, reason: str
) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        Registry(store.name, payloads={path: embedded})
    assert str(caught.value).startswith(f"payloads of keyvalue.messages: {path}: ")


def test_a_message_of_another_package_is_refused(store: Registry) -> None:
    fetch = kafkawire.REGISTRY.load("FetchRequest")()
    for call in (
        lambda: store.encode(fetch, 4),
        lambda: store.to_json(fetch, 4),
        lambda: store.encode_frame(fetch, 4, 1),
        lambda: store.embedded_payloads(fetch, 4),
    ):
        with pytest.raises(UnknownApiKey, match="is not a message of keyvalue"):
            call()


@pytest.mark.parametrize("name", ["kafkawire", "json", "kafkawire.messages.fetch_request"])
def test_a_package_that_was_not_generated_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is not a package that kafkawire codegen"):
        Registry(name)
    with pytest.raises(ModuleNotFoundError):
        Registry("there_is.no_such_package")


def test_kafkas_own_messages_are_a_registry_too() -> None:
    ours = Registry("kafkawire.messages")
    assert len(ours) == len(kafkawire.REGISTRY)
    body = ours.load("HeartbeatRequest")(group_id="g").encode(4)
    assert ours.decode("HeartbeatRequest", 4, body) == kafkawire.decode("HeartbeatRequest", 4, body)


# -- headers of a package's own

PREFIX = [
    {"name": "RequestApiKey", "type": "int16", "versions": "0+"},
    {"name": "RequestApiVersion", "type": "int16", "versions": "0+"},
    {"name": "CorrelationId", "type": "int32", "versions": "0+"},
]
ECHO = {
    "apiKey": 5, "type": "request", "name": "EchoRequest", "validVersions": "0-1",
    "flexibleVersions": "none", "headerVersions": {"0": 0, "1+": 1},
    "fields": [{"name": "Text", "type": "string", "versions": "0+"}],
}  # fmt: skip
ECHOED = ECHO | {"type": "response", "name": "EchoResponse", "headerVersions": {"0+": 0}}
REQUEST_HEADER = {
    "type": "header", "name": "RequestHeader", "validVersions": "0-1", "flexibleVersions": "none",
    "fields": [*PREFIX, {"name": "Tenant", "type": "string", "versions": "1+"}],
}  # fmt: skip
RESPONSE_HEADER = {
    "type": "header", "name": "ResponseHeader", "validVersions": "0", "flexibleVersions": "none",
    "fields": [PREFIX[2], {"name": "ElapsedUs", "type": "int32", "versions": "0+"}],
}  # fmt: skip


def test_a_package_may_have_headers_of_its_own(tmp_path: Path) -> None:
    with generated(tmp_path, "echo_a", ECHO, ECHOED, REQUEST_HEADER, RESPONSE_HEADER):
        echo = Registry("echo_a")
        request = echo.load("EchoRequest")(text="hi")
        frame = echo.encode_frame(request, 1, 7, header={"tenant": "t"})
        assert frame.hex() == "0000000f000500010000000700017400026869"
        found = echo.decode_frame(frame)
        assert type(found.header) is echo.load("RequestHeader")
        assert (found.header.tenant, found.correlation_id, found.is_request) == ("t", 7, True)  # type: ignore[union-attr]
        response = echo.encode_frame(
            echo.load("EchoResponse")(text="hi"), 1, 7, header={"elapsed_us": 3}
        )
        assert response.hex() == "0000000c000000070000000300026869"
        decoded = echo.decode_frame(response, response_to=(5, 1))
        assert (decoded.header.elapsed_us, decoded.is_request) == (3, False)  # type: ignore[union-attr]
        rows = [row.field for row in echo.explain_frame(frame).rows]
        assert "tenant" in rows
        with pytest.raises(InvalidValue, match="RequestHeader: has no field 'client_id'"):
            echo.encode_frame(request, 1, 7, client_id="me")
        with pytest.raises(DecodeError) as caught:
            echo.decode_frame(frame[:3] + b"\x0a" + frame[4:14])
        assert caught.value.path == "RequestHeader"


def test_a_tagged_field_of_a_header_comes_last_on_the_wire(tmp_path: Path) -> None:
    trace = {"name": "Trace", "type": "string", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    header = REQUEST_HEADER | {"flexibleVersions": "0+", "fields": [trace, *PREFIX]}
    with generated(tmp_path, "echo_e", ECHO, ECHOED, header):
        echo = Registry("echo_e")
        request = echo.load("EchoRequest")(text="hi")
        frame = echo.encode_frame(request, 1, 7, header={"trace": "t"})
        assert frame.hex() == "000000110005000100000007010002027400026869"
        assert echo.decode_frame(frame).header.trace == "t"  # type: ignore[union-attr]
        assert echo.explain_frame(frame).error is None


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (REQUEST_HEADER | {"fields": PREFIX[:2]}, "of RequestHeader does not begin with int16"),
        (REQUEST_HEADER | {"validVersions": "0"}, "header version 1, and RequestHeader versions 0"),
    ],
)
def test_headers_that_cannot_be_read_are_refused(
    header: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with (
        generated(tmp_path, "echo_b", ECHO, ECHOED, header),
        pytest.raises(ValueError, match=reason),
    ):
        Registry("echo_b")


def test_a_package_of_kafkas_schemas_has_kafkas_headers(tmp_path: Path) -> None:
    with generated(tmp_path, "echo_c", ECHO | {"headerVersions": {"0+": 1}}, ECHOED):
        echo = Registry("echo_c")
        frame = echo.encode_frame(echo.load("EchoRequest")(text="hi"), 0, 7, client_id="me")
        assert echo.decode_frame(frame).header.client_id == "me"  # type: ignore[union-attr]
        assert not echo.package.own_request_header


# -- what it costs


def test_a_registry_is_imported_when_it_is_used() -> None:
    program = """
import sys, kafkawire
assert not {"kafkawire.registry", "kafkawire.protocol"} & set(sys.modules)
kafkawire.Registry
assert not {"kafkawire.reference", "kafkawire.capture", "kafkawire_codegen"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_package_that_cannot_be_imported_is_named() -> None:
    for name, missing in (("absent.messages", "absent"), ("kafkawire.absent", "kafkawire.absent")):
        reason = f"package '{name}': no module named '{missing}' in the directories of sys.path"
        with pytest.raises(ModuleNotFoundError, match=re.escape(reason)):
            Registry(name)


def test_what_a_package_cannot_import_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "incomplete.py").write_text("import absent")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'absent'"):
        Registry("incomplete")
