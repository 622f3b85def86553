"""Our own client, kafkajs and the Java tools, on the footing of `tests.net.server.clients`.

Law: each is used as its users use it: ours from asyncio, kafkajs from a script, Java's as commands.
"""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
from collections.abc import Sequence
from typing import IO, Final

from kafkawire.client.config import Setting
from kafkawire.net.consumer import Consumer
from kafkawire.net.producer import Producer
from tests.net.server.clients import PATIENCE_SECONDS, Make, Member, Sasl, Seen
from tests.real.java import Installation

from .node import Node

JAAS: Final = "org.apache.kafka.common.security"


def sasl_settings(sasl: Sasl | None) -> dict[str, Setting]:
    """Kafka's settings for who to be."""
    if sasl is None:
        return {}
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": sasl.mechanism,
        "sasl.username": sasl.user,
        "sasl.password": sasl.password,
    }


# -- ours


class _OurMember(Member):
    def __init__(self, config: dict[str, Setting], topic: str) -> None:
        self._config = config
        self._topic = topic
        super().__init__()

    def run(self, leave: threading.Event) -> None:
        asyncio.run(self._poll(leave))

    async def _poll(self, leave: threading.Event) -> None:
        async with Consumer(self._config) as consumer:
            consumer.subscribe([self._topic])
            while not leave.is_set():
                for record in await consumer.poll(0.05):
                    self.seen.append(Seen(*record[:3], record.key, record.value))


class Ours(Make):
    name = "kafkawire"
    strategies = ("range", "roundrobin", "sticky", "cooperative-sticky")

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        config: dict[str, Setting] = {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": idempotent,
            **sasl_settings(sasl),
        }

        async def run() -> list[tuple[int, int]]:
            async with Producer(config) as producer:
                sent = [
                    await producer.send(topic, value, key=f"k{at}".encode())
                    for at, value in enumerate(values)
                ]
                went = await asyncio.gather(*sent)
            return [(-1, -1) if acks == "0" else (each.partition, each.offset) for each in went]

        return asyncio.run(run())

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        config: dict[str, Setting] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": reset,
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 100,
            "session.timeout.ms": 6000,
            **sasl_settings(sasl),
        }
        if instance is not None:
            config["group.instance.id"] = instance
        return _OurMember(config, topic)


# -- kafkajs


class _NodeMember(Member):
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        super().__init__()

    def run(self, leave: threading.Event) -> None:
        def end() -> None:
            leave.wait()
            ended(self._process.stdin)

        threading.Thread(target=end, daemon=True).start()
        assert self._process.stdout is not None
        with self._process:
            for line in self._process.stdout:
                topic, partition, offset, key, value = json.loads(line)["seen"]
                self.seen.append(Seen(topic, partition, offset, key.encode(), value.encode()))
            assert self._process.stderr is not None
            said = self._process.stderr.read()
        assert self._process.returncode == 0, said


def ended(pipe: IO[str] | None) -> None:
    """Let a process find the end of its input."""
    assert pipe is not None
    pipe.close()


class KafkaJs(Make):
    """Snappy, LZ4 and Zstandard are no part of it, but plug-ins by others; nor are static members,
    and its only assignor has a name of its own.
    """

    name = "kafkajs"
    codecs = ("none", "gzip")
    strategies = ("RoundRobinAssigner",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        asked = self._asked(bootstrap, topic, sasl) | {
            "values": [value.decode() for value in values],
            "acks": -1 if acks == "all" else int(acks),
            "codec": codec,
            "idempotent": idempotent,
        }
        process = self.node.popen("produce", json.dumps(asked))
        said, wrong = process.communicate(timeout=PATIENCE_SECONDS)
        if process.returncode:
            raise RuntimeError(wrong)
        return [(partition, offset) for partition, offset in json.loads(said)["places"]]

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "RoundRobinAssigner",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        assert (strategy, instance) == ("RoundRobinAssigner", None)
        asked = self._asked(bootstrap, topic, sasl) | {"group": group, "reset": reset}
        return _NodeMember(self.node.popen("member", json.dumps(asked)))

    def _asked(self, bootstrap: str, topic: str, sasl: Sasl | None) -> dict[str, object]:
        who = None
        if sasl is not None:
            who = {
                "mechanism": sasl.mechanism.lower(),
                "username": sasl.user,
                "password": sasl.password,
            }
        return {"brokers": bootstrap.split(","), "topic": topic, "sasl": who}


# -- Java's command line tools

TOOLS: Final = "org.apache.kafka.tools"
READ: Final = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(.*?)\t(.*)")


class _JavaMember(Member):
    def __init__(self, process: subprocess.Popen[str], topic: str) -> None:
        self._process = process
        self._topic = topic
        super().__init__()

    def run(self, leave: threading.Event) -> None:
        def end() -> None:
            leave.wait()
            self._process.terminate()  # its hook commits and leaves

        threading.Thread(target=end, daemon=True).start()
        assert self._process.stdout is not None
        with self._process:
            for line in self._process.stdout:
                found = READ.fullmatch(line.rstrip("\n"))
                if found is not None:
                    partition, offset, key, value = found.groups()
                    where = self._topic, int(partition), int(offset)
                    self.seen.append(Seen(*where, key.encode(), value.encode()))


class Java(Make):
    """kafka-console-producer, kafka-console-consumer; they say no offsets of what they send."""

    name = "java"
    strategies = ("range", "roundrobin", "cooperative-sticky")
    ASSIGNORS: Final = {
        "range": "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    }

    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def produce(
        self,
        bootstrap: str,
        topic: str,
        values: Sequence[bytes],
        *,
        acks: str = "all",
        codec: str = "none",
        idempotent: bool = False,
        sasl: Sasl | None = None,
    ) -> list[tuple[int, int]]:
        properties = {
            "acks": acks,
            "compression.type": codec,
            "enable.idempotence": str(idempotent).lower(),
            "max.block.ms": "15000",
            **self._who(sasl),
        }
        lines = b"".join(b"k%d:%s\n" % each for each in enumerate(values))
        done = subprocess.run(
            self.installation.command(
                f"{TOOLS}.ConsoleProducer",
                *("--bootstrap-server", bootstrap, "--topic", topic),
                *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
                *options("--command-property", properties),
            ),
            input=lines,
            capture_output=True,
            timeout=2 * PATIENCE_SECONDS,
            check=False,
        )
        said = (done.stdout + done.stderr).decode()
        if done.returncode or "ERROR" in said:
            raise RuntimeError(said)
        return []

    def member(
        self,
        bootstrap: str,
        topic: str,
        group: str,
        *,
        reset: str = "earliest",
        strategy: str = "range",
        instance: str | None = None,
        sasl: Sasl | None = None,
    ) -> Member:
        properties = {
            "partition.assignment.strategy": self.ASSIGNORS[strategy],
            "auto.offset.reset": reset,
            "heartbeat.interval.ms": "100",
            "session.timeout.ms": "6000",
            **({} if instance is None else {"group.instance.id": instance}),
            **self._who(sasl),
        }
        shown = {f"print.{what}": "true" for what in ("partition", "offset", "key", "value")}
        command = self.installation.command(
            f"{TOOLS}.consumer.ConsoleConsumer",
            *("--bootstrap-server", bootstrap, "--topic", topic, "--group", group),
            *options("--command-property", properties),
            *options("--formatter-property", shown),
        )
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command, stdout=pipe, stderr=subprocess.DEVNULL, encoding="utf-8", bufsize=1
        )
        return _JavaMember(process, topic)

    def _who(self, sasl: Sasl | None) -> dict[str, str]:
        if sasl is None:
            return {}
        module = "plain.Plain" if sasl.mechanism == "PLAIN" else "scram.Scram"
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": sasl.mechanism,
            "sasl.jaas.config": f"{JAAS}.{module}LoginModule required "
            f'username="{sasl.user}" password="{sasl.password}";',
        }


def options(name: str, values: dict[str, str]) -> list[str]:
    """Give an option for each."""
    return [word for key, value in values.items() for word in (name, f"{key}={value}")]
