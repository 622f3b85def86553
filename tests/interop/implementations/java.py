"""Apache Kafka's clients, in one JVM, and its command line tools."""

from __future__ import annotations

import json
import queue
import re
import socket
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

from tests.real.compiler import compiled
from tests.real.java import Installation

from .interface import (
    CLASSIC,
    RESETS,
    TIMEOUT_SECONDS,
    Consume,
    Implementation,
    Produce,
    Reader,
    Sasl,
    SeenRecord,
)
from .process_reader import POLL_SECONDS, Input, Lines, ProcessReader

SOURCE: Final = Path(__file__).with_name("JavaClient.java")
JAAS: Final = "org.apache.kafka.common.security"
CONSUMER: Final = "org.apache.kafka.clients.consumer"
ASSIGNORS: Final = {
    "range": f"{CONSUMER}.RangeAssignor",
    "roundrobin": f"{CONSUMER}.RoundRobinAssignor",
    "sticky": f"{CONSUMER}.StickyAssignor",
    "cooperative-sticky": f"{CONSUMER}.CooperativeStickyAssignor",
}
TOOLS: Final = "org.apache.kafka.tools"
READ: Final = re.compile(r"Partition:(\d+)\tOffset:(\d+)\t(.*?)\t(.*)")


def producing(args: Produce) -> dict[str, str]:
    """Return the settings of a producer."""
    return {
        "bootstrap.servers": args.bootstrap,
        "acks": args.acks,
        "compression.type": args.codec,
        "enable.idempotence": str(args.idempotent).lower(),
        "max.block.ms": "60000",
        **_who(args.sasl),
    }


def reading(args: Consume) -> dict[str, str]:
    """Return the settings of a consumer."""
    interval = args.auto_commit_ms
    membership = {name: str(value) for name, value in args.membership.items()}
    if args.protocol == CLASSIC:
        membership["partition.assignment.strategy"] = ASSIGNORS[args.strategy or "range"]
    return {
        "bootstrap.servers": args.bootstrap,
        "group.id": args.group,
        "auto.offset.reset": args.reset,
        "enable.auto.commit": str(interval is not None).lower(),
        **({} if interval is None else {"auto.commit.interval.ms": str(interval)}),
        **({} if args.instance is None else {"group.instance.id": args.instance}),
        **membership,
        **_who(args.sasl),
    }


def _who(sasl: Sasl | None) -> dict[str, str]:
    if sasl is None:
        return {}
    if sasl.mechanism == "OAUTHBEARER":  # a token without a signature, which has no password
        module = f"{JAAS}.oauthbearer.OAuthBearerLoginModule"
        return {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": sasl.mechanism,
            "sasl.jaas.config": f'{module} required unsecuredLoginStringClaim_sub="{sasl.user}";',
        }
    module = "plain.Plain" if sasl.mechanism == "PLAIN" else "scram.Scram"
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": sasl.mechanism,
        "sasl.jaas.config": f"{JAAS}.{module}LoginModule required "
        f'username="{sasl.user}" password="{sasl.password}";',
    }


class _ConnectionInput:
    """The writing half of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.closed = False

    def write(self, text: str) -> None:
        self._connection.sendall(text.encode())

    def flush(self) -> None:
        """Do nothing: all is sent."""

    def close(self) -> None:
        self.closed = True
        with suppress(OSError):  # the other end has closed
            self._connection.shutdown(socket.SHUT_WR)


class _Client:
    """A client in the JVM, with what a process has."""

    stderr = None
    returncode = 0

    def __init__(self, port: int, request: dict[str, Any]) -> None:
        self._connection = socket.create_connection(("127.0.0.1", port), TIMEOUT_SECONDS)
        self._connection.settimeout(None)
        self.stdin: Input = _ConnectionInput(self._connection)
        self.stdout: IO[str] = self._connection.makefile("r", encoding="utf-8")
        self.stdin.write(json.dumps(request) + "\n")

    def wait(self, timeout: float | None = None) -> int:
        """Close the connection, whose output has ended."""
        del timeout
        self._connection.close()
        return self.returncode


class Jvm:
    """A process in which Java's clients run."""

    def __init__(self, installation: Installation) -> None:
        self._process = subprocess.Popen(
            compiled(installation, SOURCE).command("JavaClient"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "Java's clients did not start"
        self._port = int(line)

    def client(self, verb: str, **request: Any) -> _Client:
        """Start a client."""
        return _Client(self._port, {"verb": verb, **request})

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=TIMEOUT_SECONDS)


class Java(Implementation):
    """KafkaProducer and KafkaConsumer."""

    name = "java"
    strategies = tuple(ASSIGNORS)
    resets = (*RESETS, "by_duration:PT1H")

    def __init__(self, jvm: Jvm) -> None:
        self._jvm = jvm

    def send(self, args: Produce) -> list[tuple[int, int]]:
        values = [each.decode() for each in args.values]
        client = self._jvm.client(
            "produce", settings=producing(args), topic=args.topic, values=values
        )
        with client.stdout:
            result = json.loads(client.stdout.readline())
        client.wait()
        if "error" in result:
            raise RuntimeError(result["error"])
        return [(partition, offset) for partition, offset in result["places"]]

    def reader(self, args: Consume) -> Reader:
        return ProcessReader(self._jvm.client("read", settings=reading(args), topic=args.topic))


class _ConsoleReader(Reader):
    def __init__(self, process: subprocess.Popen[str], topic: str) -> None:
        super().__init__()
        self._process = process
        self._lines = Lines(process)
        self._topic = topic

    def _seen(self, line: str) -> list[SeenRecord]:
        found = READ.fullmatch(line.rstrip("\n"))
        if found is None:
            return []
        partition, offset, key, value = found.groups()
        return [SeenRecord(self._topic, int(partition), int(offset), key.encode(), value.encode())]

    def poll(self) -> list[SeenRecord]:
        try:
            line = self._lines.next(POLL_SECONDS)
        except queue.Empty:
            return []
        if line is None:
            raise self._lines.failure()
        return self._seen(line)

    def close(self) -> list[SeenRecord]:
        self._process.terminate()  # the shutdown hook commits and leaves
        return [each for line in self._lines.end() for each in self._seen(line)]


class JavaTools(Implementation):
    """kafka-console-producer and -consumer; they say no offsets of mode they send, and have the
    assignors that `Java` has.
    """

    name = "java's tools"
    strategies = ("range",)
    resets = (*RESETS, "by_duration:PT1H")

    def __init__(self, installation: Installation) -> None:
        self.installation = installation

    def send(self, args: Produce) -> list[tuple[int, int]]:
        lines = b"".join(b"k%d:%s\n" % each for each in enumerate(args.values))
        done = subprocess.run(
            self.installation.command(
                f"{TOOLS}.ConsoleProducer",
                *("--bootstrap-server", args.bootstrap, "--topic", args.topic),
                *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
                *options("--command-property", producing(args)),
            ),
            input=lines,
            capture_output=True,
            timeout=2 * TIMEOUT_SECONDS,
            check=False,
        )
        output = (done.stdout + done.stderr).decode()
        if done.returncode or "ERROR" in output:
            raise RuntimeError(output)
        return []

    def reader(self, args: Consume) -> Reader:
        shown = {f"print.{mode}": "true" for mode in ("partition", "offset", "key", "value")}
        command = self.installation.command(
            f"{TOOLS}.consumer.ConsoleConsumer",
            *(
                "--bootstrap-server",
                args.bootstrap,
                "--topic",
                args.topic,
                "--group",
                args.group,
            ),
            *options("--command-property", reading(args)),
            *options("--formatter-property", shown),
        )
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdout=pipe, stderr=pipe, encoding="utf-8", bufsize=1)
        return _ConsoleReader(process, args.topic)


def options(name: str, values: dict[str, str]) -> list[str]:
    """Return an option per setting."""
    return [word for key, value in values.items() for word in (name, f"{key}={value}")]
