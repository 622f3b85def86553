"""Embedded payloads: the request and the principal inside an Envelope."""

from __future__ import annotations

import pytest

from kafkawire.messages.create_topics_request import CreateTopicsRequest
from kafkawire.messages.default_principal_data import DefaultPrincipalData
from kafkawire.messages.envelope_request import EnvelopeRequest
from kafkawire.protocol.embedded import embedded_payloads
from kafkawire.protocol.frame import Frame, encode_frame
from kafkawire.protocol.versioned import encode_versioned
from tests.protocol.embedded_vectors import only


def test_an_envelope_holds_a_request_and_a_principal() -> None:
    inner = CreateTopicsRequest(timeout_ms=5)
    principal = DefaultPrincipalData(type="User", name="alice", token_authenticated=True)
    message = EnvelopeRequest(
        request_data=encode_frame(inner, 7, 12, client_id="c")[4:],
        request_principal=encode_versioned(principal, 0),
    )
    request, who = embedded_payloads(message, 0)
    assert isinstance(request.value, Frame)
    assert (request.kind, request.version) == ("request", 7)
    assert (request.value.body, request.value.correlation_id) == (inner, 12)
    assert request.value.size == len(message.request_data)
    assert who.value == principal
    shown = request.to_json()
    assert shown["value"]["name"] == "CreateTopicsRequest"
    assert shown["value"]["header"]["clientId"] == "c"
    assert shown["value"]["body"]["timeoutMs"] == 5


def test_a_newer_principal_is_an_error_as_it_is_to_kafka() -> None:
    data = b"\0\1" + DefaultPrincipalData(type="User", name="alice").encode(0)
    payload = only(EnvelopeRequest(request_principal=data), 0)
    assert payload.error == "DefaultPrincipalData has versions 0-0, not 1"


@pytest.mark.parametrize(
    "data",
    [
        b"\x7f\x7f\0\0\0\0\0\1\xff\xff",
        b"\0\x13\0\x63\0\0\0\1\xff\xff\0",
        b"\0\x13\0\0\0\0\0\1\0\1\xff",
        encode_frame(CreateTopicsRequest(), 7, 1)[4:-1],
    ],
    ids=["unknown key", "unknown version", "bad client id", "short body"],
)
def test_a_bad_request_inside_an_envelope(data: bytes) -> None:
    payload = only(EnvelopeRequest(request_data=data), 0)
    assert payload.error
    assert payload.version == int.from_bytes(data[2:4], "big")


def test_truncated_principal_and_request() -> None:
    principal = encode_versioned(DefaultPrincipalData(type="User", name="alice"), 0)
    request = encode_frame(CreateTopicsRequest(timeout_ms=5), 7, 12, client_id="c")[4:]
    for length in range(1, len(principal)):
        assert only(EnvelopeRequest(request_principal=principal[:length]), 0).error
    for length in range(1, len(request)):
        assert only(EnvelopeRequest(request_data=request[:length]), 0).error
