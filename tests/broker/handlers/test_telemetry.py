"""Telemetry of clients (KIP-714): no metrics are subscribed, and those that come are dropped."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kafkawire import ApiKey, ErrorCode
from kafkawire.broker.apis import METRIC_REPORTERS
from kafkawire.broker.telemetry import subscription_id
from kafkawire.configs import ResourceType
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse
from kafkawire.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from kafkawire.messages.get_telemetry_subscriptions_response import (
    GetTelemetrySubscriptionsResponse,
)
from kafkawire.messages.push_telemetry_request import PushTelemetryRequest
from kafkawire.messages.push_telemetry_response import PushTelemetryResponse
from tests.broker.harness import Client, Harness

E = ErrorCode
TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
JMX = "org.apache.kafka.common.metrics.JmxReporter"
OURS = bytes(range(16))


def listed(client: Client) -> set[int]:
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    return {each.api_key for each in client.exchange(request, 3, ApiVersionsResponse).api_keys}


def subscriptions(client: Client, instance: bytes = bytes(16)) -> GetTelemetrySubscriptionsResponse:
    request = GetTelemetrySubscriptionsRequest(client_instance_id=instance)
    return client.exchange(request, 0, GetTelemetrySubscriptionsResponse)


@pytest.mark.parametrize(
    ("settings", "release", "expected"),
    [
        ({}, "4.4", set()),
        ({METRIC_REPORTERS: ""}, "4.4", set()),
        ({METRIC_REPORTERS: JMX}, "4.4", set()),
        ({METRIC_REPORTERS: "com.example.Reporter"}, "4.4", TELEMETRY),
        ({METRIC_REPORTERS: f"{JMX}, com.example.Reporter"}, "3.7", TELEMETRY),
        ({METRIC_REPORTERS: "com.example.Reporter"}, "3.6", set()),
    ],
)
def test_it_is_listed_where_a_reporter_may_receive_it(
    settings: Mapping[str, str], release: str, expected: set[ApiKey]
) -> None:
    client = Harness(settings=settings, release=release).client()
    assert listed(client) & TELEMETRY == expected


def test_a_reporter_may_come_and_go() -> None:
    harness = Harness()
    client = harness.client()
    for reporter, expected in (("com.example.Reporter", TELEMETRY), (None, set())):
        harness.alter_configs(ResourceType.BROKER, "", {METRIC_REPORTERS: reporter})
        harness.advance(1.0)
        assert listed(client) & TELEMETRY == expected


def test_no_metrics_are_requested() -> None:
    assert subscriptions(Harness().client(), OURS) == GetTelemetrySubscriptionsResponse(
        client_instance_id=OURS,
        subscription_id=subscription_id(OURS),
        accepted_compression_types=[4, 3, 1, 2],
        push_interval_ms=300_000,
        telemetry_max_bytes=1_048_576,
        delta_temporality=True,
        requested_metrics=[],
    )


def test_a_client_gets_an_id_of_its_own_and_keeps_it() -> None:
    harness = Harness(brokers=2)
    client = harness.client()
    first, second = subscriptions(client), subscriptions(client)
    ids = {first.client_instance_id, second.client_instance_id, bytes(16)}
    assert len(ids) == 3
    assert subscriptions(harness.client(2), first.client_instance_id) == first


def test_a_subscription_id_is_that_of_kafka() -> None:
    """CRC-32C of "[]300000", and the 32-bit words of the id, combined by XOR."""
    assert subscription_id(bytes(16)) == -725_132_322
    assert subscription_id(bytes(15) + b"\1") == -725_132_321
    assert subscription_id(b"\x80" + bytes(15)) == -725_132_322 + (1 << 31)
    assert subscription_id(bytes.fromhex("00000001 00000010 00000100 00001000")) == (
        -725_132_322 ^ 0x1111
    )


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({}, E.NONE),
        ({"compression_type": 0}, E.NONE),
        ({"terminating": True}, E.NONE),
        ({"metrics": b"x" * 101}, E.TELEMETRY_TOO_LARGE),
        ({"compression_type": 5}, E.UNSUPPORTED_COMPRESSION_TYPE),
        ({"compression_type": -1}, E.UNSUPPORTED_COMPRESSION_TYPE),
        ({"subscription_id": 1}, E.UNKNOWN_SUBSCRIPTION_ID),
        ({"client_instance_id": bytes(16)}, E.INVALID_REQUEST),
        ({"client_instance_id": bytes(15) + b"\1"}, E.INVALID_REQUEST),
    ],
)
def test_a_push_is_accepted_or_refused(changed: Mapping[str, object], error: ErrorCode) -> None:
    client = Harness(settings={"telemetry.max.bytes": "100"}).client()
    assert subscriptions(client).telemetry_max_bytes == 100
    request = PushTelemetryRequest(
        client_instance_id=OURS,
        subscription_id=subscription_id(OURS),
        compression_type=4,
        metrics=b"x" * 100,
    )
    for name, value in changed.items():
        setattr(request, name, value)
    assert client.exchange(request, 0, PushTelemetryResponse).error_code == error
