"""TLS as Kafka's settings say it.

Law: without a word about it, certificates are verified and must name the host.
"""

from __future__ import annotations

import ssl

from ..client.config import Values, secure, words
from ..client.failures import ConfigurationError


def tls_context(values: Values) -> ssl.SSLContext | None:
    """Make the context for a client's connections; None where they are not TLS.

    Raises ConfigurationError for a file that is not what it should be.
    """
    if not secure(values):
        return None
    context = _trusting(words(values, "ssl.ca.location"))
    if values["ssl.endpoint.identification.algorithm"] == "none":
        context.check_hostname = False
    certificate = words(values, "ssl.certificate.location")
    key = words(values, "ssl.key.location")
    if certificate is None:
        if key is not None:
            raise ConfigurationError("ssl.key.location", "needs ssl.certificate.location")
        return context
    try:
        context.load_cert_chain(certificate, key, words(values, "ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError("ssl.certificate.location", f"{certificate}: {error}") from None
    return context


def _trusting(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError("ssl.ca.location", f"{authorities}: {error}") from None
