"""Runs a real Apache Kafka broker: one node, KRaft, combined with its controller, on loopback.

Only the process started here is stopped here; every wait has a timeout; its log is in its
directory, and shown on failure.

    format (StorageTool) ─▶ start (kafka.Kafka) ─▶ ready (answers ApiVersions) ─▶ stop (SIGTERM)
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from types import MappingProxyType
from typing import Final

from kafkawire import ErrorCode
from kafkawire.messages.api_versions_request import ApiVersionsRequest
from kafkawire.messages.api_versions_response import ApiVersionsResponse

from .java import Installation
from .wire import HOST, Wire

READY_SECONDS: Final = 240.0
STOP_SECONDS: Final = 120.0
NODE_ID: Final = 1
CLUSTER_ID: Final = "a2Fma2F3aXJlLXRlc3RzLQ"
USER: Final = "alice"
GUEST: Final = "guest"
"""Has the same password, and no permissions."""
PASSWORD: Final = "alice-secret"
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
JAAS: Final = "org.apache.kafka.common.security"
AS_LONG_AS_IT_TAKES_MS: Final = "1800000"
PORTS: Final = range(15_000, 32_768)
RNG: Final = SystemRandom()
"""Not the global one, which every worker seeds alike."""

PROPERTIES: Final = {
    "process.roles": "broker,controller",
    "node.id": str(NODE_ID),
    "listener.security.protocol.map": "CLIENTS:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "controller.listener.names": "CONTROLLER",
    # authorisation: everybody may do everything, but there is a user, and ACLs can be stored
    "sasl.enabled.mechanisms": ",".join((*MECHANISMS, "OAUTHBEARER")),
    "listener.name.sasl.plain.sasl.jaas.config": (
        f'{JAAS}.plain.PlainLoginModule required user_{USER}="{PASSWORD}" '
        f'user_{GUEST}="{PASSWORD}";'
    ),
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
    "listener.name.sasl.scram-sha-512.sasl.jaas.config": f"{JAAS}.scram.ScramLoginModule required;",
    # tokens without a signature: Kafka's default for OAUTHBEARER
    "listener.name.sasl.oauthbearer.sasl.jaas.config": (
        f"{JAAS}.oauthbearer.OAuthBearerLoginModule required;"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "delegation.token.secret.key": "delegation-secret",
    # internal topics: one partition, one replica
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # quick
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "500",
    "group.share.min.record.lock.duration.ms": "1000",
    # long sessions, for slow machines
    "group.consumer.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "group.consumer.max.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "group.share.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "group.share.max.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "group.streams.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "group.streams.max.session.timeout.ms": AS_LONG_AS_IT_TAKES_MS,
    "log.cleaner.backoff.ms": "200",
    # small
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "65536",
    "num.network.threads": "2",
    "num.io.threads": "4",
    "background.threads": "2",
}


NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass
class Broker:
    """A broker that runs, or ran, in a directory.

    port: of the listener without authentication; sasl_port: of the one with it, see `MECHANISMS`,
    `USER`, `PASSWORD`, 0 if there is none; controller_port: of the controller.
    """

    installation: Installation
    directory: Path
    port: int
    sasl_port: int
    controller_port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers."""
        return f"{HOST}:{self.port}"

    @property
    def sasl_bootstrap(self) -> str:
        """The bootstrap servers of the listener with authentication."""
        return f"{HOST}:{self.sasl_port}"

    @property
    def data(self) -> Path:
        """The log directory."""
        return self.directory / "data"

    @property
    def log(self) -> Path:
        """The file of the broker's output."""
        return self.directory / "broker.log"

    @property
    def _configuration(self) -> Path:
        return self.directory / "server.properties"

    def configure(self, more: Mapping[str, str]) -> None:
        """Write the configuration. more: further properties."""
        listeners = f"CLIENTS://{self.bootstrap},SASL://{self.sasl_bootstrap}"
        properties = PROPERTIES | {
            "listeners": f"{listeners},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": listeners,
            "log.dirs": str(self.data),
        }
        self._configuration.write_text(
            "".join(f"{key}={value}\n" for key, value in {**properties, **more}.items())
        )

    def format(self, more: Mapping[str, str] = NOTHING) -> None:
        """Write the configuration and format the storage, with a SCRAM user.

        more: further properties.
        """
        quorum = {"controller.quorum.bootstrap.servers": f"{HOST}:{self.controller_port}"}
        self.configure({**quorum, **more})
        users = [
            f"--add-scram={mechanism}=[name={USER},password={PASSWORD}]"
            for mechanism in MECHANISMS
            if mechanism.startswith("SCRAM")
        ]
        self.format_storage("--standalone", *users)

    def format_storage(self, *options: str) -> None:
        """Format the storage, as its configuration says."""
        self.installation.run(
            "kafka.tools.StorageTool",
            *("format", f"--cluster-id={CLUSTER_ID}"),
            *(f"--config={self._configuration}", *options),
        )

    def start(self) -> None:
        """Start the process and wait until it responds."""
        command = self.installation.command("kafka.Kafka", str(self._configuration))
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.directory)
        deadline = time.monotonic() + READY_SECONDS
        while not self._responds():
            stopped = self.process.poll() is not None
            assert not stopped, f"the broker stopped:\n{self.log.read_text()}"
            assert time.monotonic() < deadline, f"no response:\n{self.log.read_text()}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Shut it down in order, so that its files are complete."""
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        finally:
            self.process.kill()
            self.process = None

    def kill(self) -> None:
        """End it at once: a node of a quorum without majority cannot shut down in order."""
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_SECONDS)
            self.process = None

    def _responds(self) -> bool:
        """Return whether its listeners are open, and the newest version of ApiVersions works."""
        try:
            if self.sasl_port:
                with Wire(self.sasl_port, seconds=5.0):
                    pass
            with Wire(self.port, seconds=5.0) as wire:
                request = ApiVersionsRequest(
                    client_software_name="kafkawire", client_software_version="tests"
                )
                versions = wire.exchange(request, 3, ApiVersionsResponse)
        except OSError:
            return False
        assert versions.error_code == ErrorCode.NONE
        return True


@contextmanager
def running(
    installation: Installation, directory: Path, more: Mapping[str, str] = NOTHING
) -> Iterator[Broker]:
    """Run a new broker in an empty directory. more: further properties."""
    port, sasl_port, controller_port = free_ports(3)
    broker = Broker(installation, directory, port, sasl_port, controller_port)
    broker.format(more)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()


def free_ports(count: int) -> list[int]:
    """Find free ports on loopback; all are open at once, so they differ.

    Below the ephemeral ports, so that no other process gets one by chance before it is used.
    """
    sockets: list[socket.socket] = []
    try:
        while len(sockets) < count:
            one = socket.socket()
            sockets.append(one)
            try:
                one.bind((HOST, RNG.choice(PORTS)))
            except OSError:
                sockets.pop().close()
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()
