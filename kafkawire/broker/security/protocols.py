"""The security protocols of listeners, by Kafka's names and numbers.

As in Kafka's default `listener.security.protocol.map`, a listener that has the name of a
protocol has that protocol.
"""

from __future__ import annotations

from enum import IntEnum


class SecurityProtocol(IntEnum):
    """How the clients of a listener authenticate, and whether they use TLS."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3

    @classmethod
    def with_(cls, *, sasl: bool, tls: bool) -> SecurityProtocol:
        """Return the protocol with SASL, with TLS, with both or neither."""
        return cls(2 * sasl + tls)

    @classmethod
    def of_listener(cls, name: str) -> SecurityProtocol:
        """Return the protocol of a listener that no map names; PLAINTEXT for another name."""
        return cls.__members__.get(name, cls.PLAINTEXT)

    @property
    def has_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)
