"""Traffic with which nothing is wrong."""

from __future__ import annotations

import time

from tests.real.broker import Broker

from .recording import consumer, create_topic, producer, recorded


def healthy(broker: Broker) -> None:
    """Produce, consume in a group whose members are deployed anew, and commit transactions."""
    topic = create_topic(broker, "sales")
    with recorded("healthy", broker):
        plain = producer(broker, "shop", linger_ms=5)
        exact = producer(broker, "ledger", transactional_id="ledger-1", linger_ms=5)
        exact.init_transactions(30)
        for _ in range(2):
            members = [
                consumer(broker, f"reports-{number}", group_id="reports") for number in range(2)
            ]
            members.append(consumer(broker, "stock", group_id="stock", group_protocol="consumer"))
            for member in members:
                member.subscribe([topic])
            deadline = time.monotonic() + 12
            while time.monotonic() < deadline:
                exact.begin_transaction()
                for sender in (plain, exact):
                    for number in range(10):
                        sender.produce(topic, f"sale {number}".encode() * 20)
                exact.commit_transaction(30)
                for member in members:
                    member.poll(0.1)
                plain.poll(0.2)
            for member in members:
                member.close()
        plain.flush()
