"""Reads client configuration under Kafka's names into checked values.

An unknown key or an invalid value is an error that names the key, the value and the valid
values; nothing is guessed or ignored.

    {"bootstrap.servers": "a:9092", "linger.ms": "5"} ─▶ read_config(KEYS, ...) ─▶ typed values
"""

# over 300 lines: the table of the keys of every client, and what parses their values

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from ..display import most_similar
from ..errors import LocalProtocolError
from ..primitives import Limits
from ..sasl.endpoints import endpoint
from ..whole_numbers import whole_number
from .failures import ConfigurationError
from .metrics import Metrics, SampleSettings
from .metrics.tables import Row
from .network.backoff import Backoff
from .network.connection_states import ConnectionSettings
from .network.oauthbearer import OAuthBearerToken, TokenProvider
from .network.sasl import MECHANISMS
from .network.settings import NetworkSettings
from .security import (
    BACKOFF,
    CLIENT_ID,
    CLIENT_SECRET,
    CONNECT_TIMEOUT,
    ENDPOINT,
    LONGEST_BACKOFF,
    PROVIDER,
    READ_TIMEOUT,
    SCOPE,
    TOKEN,
    credentials,
)


class Named(Protocol):
    """An object that the user passes in place of a name: an assignor."""

    @property
    def name(self) -> str: ...


Setting = str | int | float | bool | Named | Sequence[str | Named] | TokenProvider | None
"""A configuration value: Kafka's own text, or the equivalent Python value."""

Values = Mapping[str, object]
"""A checked value for every key, of the type that its parser returns."""

INT32: Final = 0x7FFF_FFFF
INT64: Final = 0x7FFF_FFFF_FFFF_FFFF


@dataclass(frozen=True, slots=True)
class Key:
    """A configuration key: its parser, its default, its documentation."""

    read: Callable[[Setting], object]
    default: object
    documentation: str
    required: bool = False


def integer(lowest: int, highest: int) -> Callable[[Setting], object]:
    """Make a parser of integers in a range, both ends included."""

    def read(value: Setting) -> object:
        number = value
        if isinstance(value, str):
            try:
                number = int(value)
            except ValueError:
                number = None
        if isinstance(number, bool) or not isinstance(number, int):
            raise ValueError(f"expected an integer, got {value!r}")
        if not lowest <= number <= highest:
            raise ValueError(f"{number} is not between {lowest} and {highest}")
        return number

    return read


def boolean(value: Setting) -> object:
    """Parse true or false."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return value.strip().lower() == "true"
    raise ValueError(f"expected true or false, got {value!r}")


def text(value: Setting) -> object:
    """Parse a non-empty string."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"expected a non-empty string, got {value!r}")
    return value


def one_of(*choices: str) -> Callable[[Setting], object]:
    """Make a parser of one of several strings, in any case."""

    def read(value: Setting) -> object:
        for choice in choices:
            if isinstance(value, str) and value.strip().lower() == choice.lower():
                return choice
        raise ValueError(f"expected one of {', '.join(choices)}, got {value!r}")

    return read


def addresses(value: Setting) -> object:
    """Parse `host:port,host:port`, or a list of such; an IPv6 host is in brackets.

    Without a port it is DEFAULT_PORT, as with librdkafka.
    """
    listed = value.split(",") if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        raise ValueError(f"expected host:port,host:port, got {value!r}")
    parts = [each for each in listed if isinstance(each, str)]
    if len(parts) < len(listed):
        raise ValueError(f"expected host:port,host:port, got {value!r}")
    parsed = tuple(address(part.strip(), DEFAULT_PORT) for part in parts if part.strip())
    if not parsed:
        raise ValueError("expected at least one host:port")
    return parsed


DEFAULT_PORT: Final = 9092
"""The port of brokers."""


def address(part: str, default_port: int | None = None) -> tuple[str, int]:
    """Parse `host:port`. default_port: where the port may be missing."""
    if "://" in part:
        raise ValueError(f"invalid address {part!r}: a URL, expected host:port")
    host, colon, port = part.rpartition(":")
    if not colon or part.endswith("]"):
        host, port = part, "" if default_port is None else str(default_port)
    bare = host.removeprefix("[").removesuffix("]")
    opened = host.startswith("[")
    if opened != host.endswith("]") or (":" in bare and not opened):
        raise ValueError(f"invalid address {part!r}: write IPv6 in brackets, [::1]:9092")
    if not bare:
        raise ValueError(f"invalid address {part!r}: no host, expected host:port")
    if not port:
        raise ValueError(f"invalid address {part!r}: no port, expected host:port")
    if not (port.isascii() and port.isdigit()):
        raise ValueError(f"invalid address {part!r}: port {port!r} is not a number")
    number = whole_number(port, 65_535)
    if not number:
        raise ValueError(f"invalid address {part!r}: port is not between 1 and 65535")
    return bare, number


def function(value: Setting) -> object:
    """Accept a function; the error does not show another value, which may be a token."""
    if not callable(value):
        raise ValueError(f"expected a function, got {type(value).__name__}")
    return value


def token(value: Setting) -> object:
    """Parse a token of OAUTHBEARER; the error does not show the value."""
    if not isinstance(value, str):
        raise ValueError(f"expected a token, got {type(value).__name__}")
    try:
        return OAuthBearerToken(value)
    except LocalProtocolError as error:
        raise ValueError(str(error)) from None


def url(value: Setting) -> object:
    """Parse the URL of a file or of a server."""
    return endpoint(str(text(value)))


MILLISECONDS: Final = integer(0, INT32)
SECRETS: Final = ("password", "secret")
"""Parts of the names of keys whose values no error shows."""
PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

CLIENT_KEYS: Final[Mapping[str, Key]] = {
    "bootstrap.servers": Key(addresses, (), "bootstrap servers: host:port,...", required=True),
    "client.id": Key(text, "kafkawire", "client name in the broker's logs and quotas"),
    "security.protocol": Key(
        one_of(*PROTOCOLS), "PLAINTEXT", "security protocol of connections to brokers"
    ),
    "sasl.mechanism": Key(one_of(*MECHANISMS), None, "SASL mechanism"),
    "sasl.username": Key(text, None, "SASL username"),
    "sasl.password": Key(text, None, "SASL password"),
    PROVIDER: Key(function, None, "function that returns a token for SASL OAUTHBEARER"),
    TOKEN: Key(token, None, "token for SASL OAUTHBEARER"),
    ENDPOINT: Key(url, None, "file with a token for SASL OAUTHBEARER, or server that issues one"),
    CLIENT_ID: Key(text, None, "client id at the server that issues tokens"),
    CLIENT_SECRET: Key(text, None, "secret of the client id"),
    SCOPE: Key(text, None, "scope of the tokens"),
    BACKOFF: Key(MILLISECONDS, None, "time to the next request for a token after a failure: 100"),
    LONGEST_BACKOFF: Key(MILLISECONDS, None, "for how long requests are repeated: 10000"),
    CONNECT_TIMEOUT: Key(MILLISECONDS, None, "time for a connection to that server: 10000"),
    READ_TIMEOUT: Key(MILLISECONDS, None, "time for a response of that server: 10000"),
    "ssl.ca.location": Key(text, None, "file of CA certificates (PEM); default: the system's"),
    "ssl.certificate.location": Key(text, None, "file of the client's certificate (PEM)"),
    "ssl.key.location": Key(text, None, "file of the client's private key (PEM)"),
    "ssl.key.password": Key(text, None, "the private key's password"),
    "ssl.endpoint.identification.algorithm": Key(
        one_of("https", "none"), "https", "whether the certificate must name the host"
    ),
    "request.timeout.ms": Key(MILLISECONDS, 30_000, "how long to wait for a response"),
    "socket.connection.setup.timeout.ms": Key(
        MILLISECONDS, 10_000, "how long to wait for a connection"
    ),
    "connections.max.idle.ms": Key(MILLISECONDS, 540_000, "when to close an idle connection"),
    "reconnect.backoff.ms": Key(MILLISECONDS, 50, "initial backoff before a reconnect"),
    "reconnect.backoff.max.ms": Key(MILLISECONDS, 1_000, "maximum backoff before a reconnect"),
    "retry.backoff.ms": Key(MILLISECONDS, 100, "initial backoff before a retry"),
    "retry.backoff.max.ms": Key(MILLISECONDS, 1_000, "maximum backoff before a retry"),
    "bootstrap.timeout.ms": Key(
        MILLISECONDS, 0, "how long to try the bootstrap servers before calls fail; 0: no limit"
    ),
    "bootstrap.attempts": Key(
        integer(0, INT32), 0, "how often to try each of them within that time; 0: no limit"
    ),
    "metrics.sample.window.ms": Key(
        integer(1, INT32), 30_000, "the time of one sample of a metric"
    ),
    "metrics.num.samples": Key(integer(1, INT32), 2, "the number of samples of a metric"),
    "metadata.max.age.ms": Key(MILLISECONDS, 300_000, "when to refresh metadata without errors"),
    "metadata.recovery.strategy": Key(
        one_of("none", "rebootstrap"),
        "rebootstrap",
        "what to do when no known broker is reachable, or a broker requires it",
    ),
    "max.in.flight.requests.per.connection": Key(
        integer(1, INT32), 5, "in-flight requests per connection"
    ),
    "receive.message.max.bytes": Key(
        integer(1_000, INT32), 104_857_600, "maximum size of a response"
    ),
}
"""Keys of every client."""


def read_config(
    keys: Mapping[str, Key], settings: Mapping[str, Setting], hints: Mapping[str, str] = {}
) -> dict[str, object]:
    """Check a configuration against its keys; every key gets its value or its default.

    hints: what the error says of keys that are set elsewhere. Raises ConfigurationError for the
    first key that is unknown, invalid or missing.
    """
    if not isinstance(settings, Mapping):
        kind = type(settings).__name__
        raise ConfigurationError("configuration", f"expected keys with values, got {kind}")
    values = {name: key.default for name, key in keys.items()}
    for name, value in settings.items():
        key = keys.get(name)
        if key is None:
            dotted = str(name).replace("_", ".")
            near = most_similar(dotted, keys)
            hint = hints.get(dotted, "" if near is None else f"did you mean {near}?")
            raise ConfigurationError(name, "; ".join(filter(None, ("unknown key", hint))))
        try:
            values[name] = key.read(value)
        except ValueError as error:
            is_secret = any(part in name for part in SECRETS)
            shown = "invalid value" if is_secret else str(error)
            raise ConfigurationError(name, f"{shown} ({key.documentation})") from None
    for name, key in keys.items():
        if key.required and name not in settings:
            raise ConfigurationError(name, f"required ({key.documentation})")
    return values


def whole(values: Values, name: str) -> int:
    """Return an integer from checked values."""
    value = values[name]
    assert isinstance(value, int)
    return value


def seconds(values: Values, name: str) -> float:
    """Return milliseconds as seconds."""
    return whole(values, name) / 1000


def optional_text(values: Values, name: str) -> str | None:
    """Return a text that may be absent."""
    value = values[name]
    assert value is None or isinstance(value, str)
    return value


def bootstrap(values: Values) -> tuple[tuple[str, int], ...]:
    """Return the bootstrap servers."""
    value = values["bootstrap.servers"]
    assert isinstance(value, tuple)
    return value


def network_settings(
    values: Values, software: tuple[str, str], *, auto_create_topics: bool = False
) -> NetworkSettings:
    """Make a network's settings from checked values."""
    connection = ConnectionSettings(
        client_id=optional_text(values, "client.id"),
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
        bootstrap_timeout_s=seconds(values, "bootstrap.timeout.ms") or None,
        bootstrap_attempts=whole(values, "bootstrap.attempts") or inf,
    )


def client_metrics(values: Values, prefix: str, rows: Iterable[Row]) -> Metrics:
    """Make the metrics of a client."""
    window_s = seconds(values, "metrics.sample.window.ms")
    settings = SampleSettings(window_s, whole(values, "metrics.num.samples"))
    return Metrics(prefix, rows, optional_text(values, "client.id") or "", settings)


def backoff(values: Values, prefix: str) -> Backoff:
    """Read `<prefix>.backoff.ms` and `<prefix>.backoff.max.ms`."""
    return Backoff(
        seconds(values, f"{prefix}.backoff.ms"), seconds(values, f"{prefix}.backoff.max.ms")
    )
