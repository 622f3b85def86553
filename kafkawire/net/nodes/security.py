"""How the clients of nodes authenticate, and with which certificate their listener uses TLS.

Law: brokers and controllers reach each other on listeners of their own, which have neither.

    with users or a certificate   PLAINTEXT (brokers), SASL_SSL (clients), CONTROLLER
    with none                     PLAINTEXT (brokers and clients), CONTROLLER
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...broker.security.protocols import SecurityProtocol

if TYPE_CHECKING:
    import ssl

MECHANISMS: Final = "sasl.enabled.mechanisms"


@dataclass(frozen=True, slots=True)
class Security:
    """passwords: user -> password, where `sasl.enabled.mechanisms` is set. tls: for clients."""

    passwords: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None

    def client_listener(self, settings: Mapping[str, str]) -> str:
        """Return the name of the listener of clients. settings: Kafka's keys."""
        sasl = bool(settings.get(MECHANISMS))
        return SecurityProtocol.with_(sasl=sasl, tls=self.tls is not None).name

    def tls_of(self, listener: str) -> ssl.SSLContext | None:
        """Return what a listener uses TLS with; None for one without."""
        return self.tls if SecurityProtocol.of_listener(listener).has_tls else None


NO_SECURITY: Final = Security()
