"""kafkajs, in a process of node's."""

from __future__ import annotations

import json

from ..node import Node
from .footing import TIMEOUT_SECONDS, Make, Order, Part, Reader, Sasl
from .talking import TalkingReader


class KafkaJs(Make):
    """Snappy, LZ4 and Zstandard are no part of it, but plug-ins by others; nor are static members,
    and its only assignor has a name of its own.
    """

    name = "kafkajs"
    codecs = ("none", "gzip")
    strategies = ("RoundRobinAssigner",)
    resets = ("earliest", "latest")

    def __init__(self, node: Node) -> None:
        self.node = node

    def send(self, order: Order) -> list[tuple[int, int]]:
        asked = asked_of(order.bootstrap, order.topic, order.sasl) | {
            "values": [value.decode() for value in order.values],
            "acks": -1 if order.acks == "all" else int(order.acks),
            "codec": order.codec,
            "idempotent": order.idempotent,
        }
        process = self.node.popen("produce", json.dumps(asked))
        said, wrong = process.communicate(timeout=TIMEOUT_SECONDS)
        if process.returncode:
            raise RuntimeError(wrong)
        return [(partition, offset) for partition, offset in json.loads(said)["places"]]

    def reader(self, part: Part) -> Reader:
        assert part.strategy in (None, *self.strategies)
        assert part.instance is None
        asked = asked_of(part.bootstrap, part.topic, part.sasl) | {
            "group": part.group,
            "reset": part.reset,
            "autoCommitMs": part.auto_commit_ms,
        }
        return TalkingReader(self.node.popen("read", json.dumps(asked)))


def asked_of(bootstrap: str, topic: str, sasl: Sasl | None) -> dict[str, object]:
    """Where to go, as whom."""
    who = None
    if sasl is not None:
        who = {
            "mechanism": sasl.mechanism.lower(),
            "username": sasl.user,
            "password": sasl.password,
        }
    return {"brokers": bootstrap.split(","), "topic": topic, "sasl": who}
