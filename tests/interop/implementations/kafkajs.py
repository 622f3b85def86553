"""kafkajs, in a Node.js process."""

from __future__ import annotations

import json

from ..node import Node
from .interface import TIMEOUT_SECONDS, Consume, Implementation, Produce, Reader, Sasl
from .process_reader import ProcessReader


class KafkaJs(Implementation):
    """It has no Snappy, LZ4 and Zstandard without plug-ins, and no static members; its only
    assignor has a name of its own.
    """

    name = "kafkajs"
    codecs = ("none", "gzip")
    strategies = ("RoundRobinAssigner",)
    resets = ("earliest", "latest")

    def __init__(self, node: Node) -> None:
        self.node = node

    def send(self, args: Produce) -> list[tuple[int, int]]:
        request = request_of(args.bootstrap, args.topic, args.sasl) | {
            "values": [value.decode() for value in args.values],
            "acks": -1 if args.acks == "all" else int(args.acks),
            "codec": args.codec,
            "idempotent": args.idempotent,
        }
        process = self.node.popen("produce", json.dumps(request))
        output, stderr = process.communicate(timeout=TIMEOUT_SECONDS)
        if process.returncode:
            raise RuntimeError(stderr)
        return [(partition, offset) for partition, offset in json.loads(output)["places"]]

    def reader(self, args: Consume) -> Reader:
        assert args.strategy in (None, *self.strategies)
        assert args.instance is None
        request = request_of(args.bootstrap, args.topic, args.sasl) | {
            "group": args.group,
            "reset": args.reset,
            "autoCommitMs": args.auto_commit_ms,
        }
        return ProcessReader(self.node.popen("read", json.dumps(request)))


def request_of(bootstrap: str, topic: str, sasl: Sasl | None) -> dict[str, object]:
    """Return the brokers, topic and credentials of a request."""
    credentials = None
    if sasl is not None:
        credentials = {
            "mechanism": sasl.mechanism.lower(),
            "username": sasl.user,
            "password": sasl.password,
        }
    return {"brokers": bootstrap.split(","), "topic": topic, "sasl": credentials}
