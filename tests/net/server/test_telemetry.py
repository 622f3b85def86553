"""Clients that would push metrics of their own (KIP-714): they are asked for none."""

from __future__ import annotations

import logging

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from kafkawire import ApiKey
from kafkawire.broker.apis import METRIC_REPORTERS
from kafkawire.messages.get_telemetry_subscriptions_response import (
    GetTelemetrySubscriptionsResponse,
)
from kafkawire.net.server_config import ServerConfig
from kafkawire.net.server_thread import ServerThread
from tests.interop.implementations import until

from .test_produce_and_consume import values

COUNT = 20


@pytest.mark.parametrize("reporter", ["", "com.example.Reporter"])
def test_librdkafka_produces_and_consumes_and_logs_no_error(
    reporter: str, caplog: pytest.LogCaptureFixture
) -> None:
    errors: list[KafkaError] = []
    settings = {METRIC_REPORTERS: reporter, "group.initial.rebalance.delay.ms": "0"}
    with ServerThread(ServerConfig(settings=settings)) as cluster:

        def asked() -> list[GetTelemetrySubscriptionsResponse]:
            return [
                each.response
                for each in cluster.requests
                if isinstance(each.response, GetTelemetrySubscriptionsResponse)
            ]

        config = {"bootstrap.servers": cluster.bootstrap, "error_cb": errors.append}
        logger = logging.getLogger("librdkafka")
        producer = confluent_kafka.Producer(config, logger=logger)
        consumer = confluent_kafka.Consumer(
            config | {"group.id": "g", "auto.offset.reset": "earliest"}, logger=logger
        )
        for value in values(COUNT):
            producer.produce("t", value)
        assert producer.flush(30) == 0
        consumer.subscribe(["t"])
        found = consumer.consume(COUNT, 30)
        assert [each.value() for each in found] == values(COUNT)
        if reporter:
            until(lambda: len(asked()) == 2)
            assert len({each.client_instance_id for each in asked()}) == 2
        else:
            assert asked() == []
        consumer.close()
        producer.poll(0)
        names = {each.request.api_key for each in cluster.requests}
        assert ApiKey.PUSH_TELEMETRY not in names
    assert errors == []
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
