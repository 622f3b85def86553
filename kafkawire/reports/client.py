"""The counts of one client: its requests, their versions, brokers and groups."""

from __future__ import annotations

from typing import Any, NamedTuple

from kafkawire.capture.files.blocks import NO_TIME

from ..display import time_text


class Software(NamedTuple):
    """The client software in ApiVersions v3+ (KIP-511)."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}".strip()


def software_of(message: Any) -> Software | None:
    """Return the software in an ApiVersions request; None if it does not say."""
    if not message.client_software_name:
        return None
    return Software(message.client_software_name, message.client_software_version)


class Call(NamedTuple):
    """An API at a version."""

    api_key: int
    api_name: str | None
    api_version: int


class Client:
    """The counts of one client."""

    __slots__ = (
        "address", "brokers", "calls", "client_id", "connections", "errors", "expected_errors",
        "first_ns", "groups", "last_ns", "mechanisms", "request_bytes", "requests",
        "response_bytes", "responses", "software",
    )  # fmt: skip

    def __init__(self, client_id: str | None, address: str, software: Software | None) -> None:
        self.client_id = client_id
        self.address = address
        self.software = software
        self.connections = 0
        self.requests = self.responses = self.errors = self.expected_errors = 0
        self.request_bytes = self.response_bytes = 0
        self.calls: dict[Call, int] = {}
        self.brokers: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.mechanisms: dict[str, None] = {}
        self.first_ns = self.last_ns = NO_TIME

    def add(self, other: Client) -> None:
        """Add the counts of the same client."""
        self.connections += other.connections
        self.requests += other.requests
        self.responses += other.responses
        self.errors += other.errors
        self.expected_errors += other.expected_errors
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        for call, requests in other.calls.items():
            self.calls[call] = self.calls.get(call, 0) + requests
        self.brokers |= other.brokers
        self.groups |= other.groups
        self.mechanisms |= other.mechanisms
        self.last_ns = max(self.last_ns, other.last_ns)
        times = [ns for ns in (self.first_ns, other.first_ns) if ns != NO_TIME]
        self.first_ns = min(times, default=NO_TIME)

    @property
    def failures(self) -> int:
        """Responses with errors that are not normal in the protocol."""
        return self.errors - self.expected_errors

    def apis(self) -> dict[str, list[int]]:
        """Return the versions used of each API, by key."""
        versions: dict[str, list[int]] = {}
        for call in sorted(self.calls, key=lambda call: (call.api_key, call.api_version)):
            versions.setdefault(call.api_name or f"key {call.api_key}", []).append(call.api_version)
        return versions

    def who(self) -> dict[str, Any]:
        """Return the identity of the client, in the JSON form."""
        return {
            "client_id": self.client_id,
            "software_name": None if self.software is None else self.software.name,
            "software_version": None if self.software is None else self.software.version,
            "address": self.address,
        }

    def json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            **self.who(),
            "connections": self.connections,
            "brokers": list(self.brokers),
            "sasl_mechanisms": list(self.mechanisms),
            "group_ids": list(self.groups),
            "requests": self.requests,
            "responses": self.responses,
            "errors": self.errors,
            "expected_errors": self.expected_errors,
            "request_bytes": self.request_bytes,
            "response_bytes": self.response_bytes,
            "first_time": time_text(self.first_ns),
            "last_time": time_text(self.last_ns),
            "calls": [
                {**call._asdict(), "requests": self.calls[call]} for call in sorted(self.calls)
            ],
        }
