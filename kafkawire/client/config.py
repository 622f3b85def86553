"""Settings under Kafka's names: a mapping of texts or numbers in, checked values out.

Law: a key that is not known, and a value that it cannot have, is an error that names the key, what
came, and what may come; nothing is guessed and nothing ignored.

    {"bootstrap.servers": "a:9092", "linger.ms": "5"} ─▶ read_config(KEYS, ...) ─▶ typed values
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Protocol

from ..primitives import Limits
from .failures import ConfigurationError
from .network.backoff import Backoff
from .network.connection_states import ConnectionSettings
from .network.sasl import MECHANISMS, Credentials
from .network.settings import NetworkSettings


class Named(Protocol):
    """A thing of the user's own making, in place of a name: an assignor."""

    @property
    def name(self) -> str: ...


Setting = str | int | float | bool | Named | Sequence[str | Named] | None
"""What a user may give: Kafka's own text, or the Python value that it stands for."""

Values = Mapping[str, object]
"""A value for every key, of the type its kind makes."""

INT32: Final = 0x7FFF_FFFF
INT64: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class Key:
    """A setting: how its value is read, what it is when it is not given, what it does."""

    read: Callable[[Setting], object]
    default: object
    meaning: str
    required: bool = False


def integer(lowest: int, highest: int) -> Callable[[Setting], object]:
    """A whole number in a range, both ends included."""

    def read(value: Setting) -> object:
        made = value
        if isinstance(value, str):
            try:
                made = int(value)
            except ValueError:
                made = None
        if isinstance(made, bool) or not isinstance(made, int):
            raise ValueError(f"{value!r} is no whole number")
        if not lowest <= made <= highest:
            raise ValueError(f"{made} is not between {lowest} and {highest}")
        return made

    return read


def truth(value: Setting) -> object:
    """True or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(f"{value!r} is neither true nor false")


def text(value: Setting) -> object:
    """Any text that is not empty."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{value!r} is no text")
    return value


def one_of(*choices: str) -> Callable[[Setting], object]:
    """One of a few words, in any case."""

    def read(value: Setting) -> object:
        for choice in choices:
            if isinstance(value, str) and value.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"{value!r} is none of {', '.join(choices)}")

    return read


def addresses(value: Setting) -> object:
    """`host:port,host:port`, or a list of such; an IPv6 host in brackets."""
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        raise ValueError(f"{value!r} is no list of host:port")
    parts = [each for each in listed if isinstance(each, str)]
    if len(parts) < len(listed):
        raise ValueError(f"{value!r} is no list of host:port")
    found = tuple(address(part.strip()) for part in parts if part.strip())
    if not found:
        raise ValueError("there is no host:port in it")
    return found


def address(part: str) -> tuple[str, int]:
    """`host:port`."""
    host, colon, port = part.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]")
    if not colon or not bare or not (port.isascii() and port.isdigit()):
        raise ValueError(f"{part!r} is not host:port")
    if ":" in bare and not host.startswith("["):
        raise ValueError(f"{part!r}: an IPv6 address stands in brackets, [::1]:9092")
    if not 0 < int(port) < 65_536:
        raise ValueError(f"{part!r}: a port is between 1 and 65535")
    return bare, int(port)


MILLISECONDS: Final = integer(0, INT32)
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

CLIENT_KEYS: Final[Mapping[str, Key]] = {
    "bootstrap.servers": Key(addresses, (), "brokers to begin with: host:port,...", required=True),
    "client.id": Key(text, "kafkawire", "who asks, as the broker's logs and quotas name it"),
    "security.protocol": Key(one_of(*PROTOCOLS), "PLAINTEXT", "how to talk to brokers"),
    "sasl.mechanism": Key(one_of(*MECHANISMS), None, "how to prove who one is"),
    "sasl.username": Key(text, None, "who one is"),
    "sasl.password": Key(text, None, "the password"),
    "ssl.ca.location": Key(text, None, "file of CA certificates (PEM); else the system's"),
    "ssl.certificate.location": Key(text, None, "file of the client's certificate (PEM)"),
    "ssl.key.location": Key(text, None, "file of the client's private key (PEM)"),
    "ssl.key.password": Key(text, None, "the private key's password"),
    "ssl.endpoint.identification.algorithm": Key(
        one_of("https", "none"), "https", "whether the certificate must name the host"
    ),
    "request.timeout.ms": Key(MILLISECONDS, 30_000, "how long to wait for an answer"),
    "socket.connection.setup.timeout.ms": Key(MILLISECONDS, 10_000, "... for a connection"),
    "connections.max.idle.ms": Key(MILLISECONDS, 540_000, "when to close an unused connection"),
    "reconnect.backoff.ms": Key(MILLISECONDS, 50, "wait before connecting again, first"),
    "reconnect.backoff.max.ms": Key(MILLISECONDS, 1_000, "... and at most"),
    "retry.backoff.ms": Key(MILLISECONDS, 100, "wait before asking again, first"),
    "retry.backoff.max.ms": Key(MILLISECONDS, 1_000, "... and at most"),
    "metadata.max.age.ms": Key(MILLISECONDS, 300_000, "when to look at the cluster again anyway"),
    "metadata.recovery.strategy": Key(
        one_of("none", "rebootstrap"), "rebootstrap", "what to do when no broker can be reached"
    ),
    "max.in.flight.requests.per.connection": Key(
        integer(1, INT32), 5, "requests sent and not answered, on one connection"
    ),
    "receive.message.max.bytes": Key(
        integer(1_000, INT32), 104_857_600, "the largest response that is read"
    ),
}
"""What every client takes."""


def read_config(keys: Mapping[str, Key], given: Mapping[str, Setting]) -> dict[str, object]:
    """Check settings against the keys; every key gets its value or its default.

    Raises ConfigurationError for the first that is unknown, wrong or missing.
    """
    values = {name: key.default for name, key in keys.items()}
    for name, value in given.items():
        key = keys.get(name)
        if key is None:
            near = get_close_matches(name.replace("_", "."), keys, 1)
            hint = f"; is {near[0]} meant?" if near else ""
            raise ConfigurationError(name, f"there is no such setting{hint}")
        try:
            values[name] = key.read(value)
        except ValueError as error:
            shown = "the value is not usable" if "password" in name else str(error)
            raise ConfigurationError(name, f"{shown} ({key.meaning})") from None
    for name, key in keys.items():
        if key.required and name not in given:
            raise ConfigurationError(name, f"must be given ({key.meaning})")
    return values


def whole(values: Values, name: str) -> int:
    """Read a whole number out of checked values."""
    value = values[name]
    assert isinstance(value, int)
    return value


def seconds(values: Values, name: str) -> float:
    """Read milliseconds as seconds."""
    return whole(values, name) / 1000


def words(values: Values, name: str) -> str | None:
    """Read a text that may be absent."""
    value = values[name]
    assert value is None or isinstance(value, str)
    return value


def bootstrap(values: Values) -> tuple[tuple[str, int], ...]:
    """Read the addresses to begin with."""
    value = values["bootstrap.servers"]
    assert isinstance(value, tuple)
    return value


def secure(values: Values) -> bool:
    """Say whether connections are TLS."""
    return str(values["security.protocol"]).endswith("SSL")


def credentials(values: Values) -> Credentials | None:
    """Read who one is; None where the protocol asks for nobody."""
    if not str(values["security.protocol"]).startswith("SASL"):
        for name in ("sasl.mechanism", "sasl.username", "sasl.password"):
            if values[name] is not None:
                raise ConfigurationError(
                    name, "is of no use unless security.protocol is SASL_PLAINTEXT or SASL_SSL"
                )
        return None
    for name in ("sasl.mechanism", "sasl.username", "sasl.password"):
        if values[name] is None:
            raise ConfigurationError(name, "must be given with security.protocol SASL_...")
    return Credentials(
        str(values["sasl.mechanism"]), str(values["sasl.username"]), str(values["sasl.password"])
    )


def network_settings(
    values: Values, software: tuple[str, str], *, auto_create_topics: bool = False
) -> NetworkSettings:
    """Make what a network is told out of checked values."""
    connection = ConnectionSettings(
        client_id=words(values, "client.id"),
        software=software,
        request_timeout_s=seconds(values, "request.timeout.ms"),
        setup_timeout_s=seconds(values, "socket.connection.setup.timeout.ms"),
        max_in_flight=whole(values, "max.in.flight.requests.per.connection"),
        limits=Limits(max_frame_bytes=whole(values, "receive.message.max.bytes")),
        credentials=credentials(values),
    )
    return NetworkSettings(
        connection=connection,
        reconnect=backoff(values, "reconnect"),
        retry=backoff(values, "retry"),
        metadata_max_age_s=seconds(values, "metadata.max.age.ms"),
        idle_s=seconds(values, "connections.max.idle.ms"),
        auto_create_topics=auto_create_topics,
        rebootstrap=values["metadata.recovery.strategy"] == "rebootstrap",
    )


def backoff(values: Values, of: str) -> Backoff:
    """Read `<of>.backoff.ms` and its bound."""
    return Backoff(seconds(values, f"{of}.backoff.ms"), seconds(values, f"{of}.backoff.max.ms"))
