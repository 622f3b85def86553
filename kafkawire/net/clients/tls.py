"""Makes TLS contexts from Kafka's configuration.

By default certificates are verified and must match the host name.
"""

from __future__ import annotations

import ssl

from ...client.config import Values, optional_text
from ...client.failures import ConfigurationError
from ...client.security import secure


def tls_context(values: Values) -> ssl.SSLContext | None:
    """Make the context of a client's connections; None without TLS.

    Raises ConfigurationError for a file that is missing or invalid.
    """
    if not secure(values):
        return None
    context = _with_authorities(optional_text(values, "ssl.ca.location"))
    if values["ssl.endpoint.identification.algorithm"] == "none":
        context.check_hostname = False
    certificate = optional_text(values, "ssl.certificate.location")
    key = optional_text(values, "ssl.key.location")
    if certificate is None:
        if key is not None:
            raise ConfigurationError("ssl.key.location", "requires ssl.certificate.location")
        return context
    try:
        context.load_cert_chain(certificate, key, optional_text(values, "ssl.key.password"))
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError("ssl.certificate.location", f"{certificate}: {error}") from None
    return context


def _with_authorities(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError("ssl.ca.location", f"{authorities}: {error}") from None
