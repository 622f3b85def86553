"""Makes the TLS contexts of listeners from Kafka's keys: files in PEM format.

ssl.keystore.location      the certificate with its chain, and the private key
ssl.truststore.location    the authorities of clients' certificates
ssl.client.auth            none, requested, required
"""

from __future__ import annotations

import ssl
from typing import Final

from ...broker.configs import Settings

PEM: Final = "PEM"
KEYSTORE: Final = "ssl.keystore.location"
KEYSTORE_TYPE: Final = "ssl.keystore.type"
PASSWORDS: Final = ("ssl.keystore.password", "ssl.truststore.password")
KEY_PASSWORD: Final = "ssl.key.password"
TRUSTSTORE: Final = "ssl.truststore.location"
TRUSTSTORE_TYPE: Final = "ssl.truststore.type"
CLIENT_AUTH: Final = "ssl.client.auth"
IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
VERIFY: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
"""Value of `ssl.client.auth` -> whether clients need a certificate."""
NOT_SUPPORTED: Final = (
    "ssl.keystore.certificate.chain",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
)
"""Keys that have certificates themselves, instead of the name of a file."""


def listener_tls(
    settings: Settings, listener: str, default: ssl.SSLContext | None
) -> ssl.SSLContext:
    """Make the context of a listener. default: where no key names a certificate.

    Raises ValueError, which names the key, without a certificate and for files that are invalid.
    """
    for name in NOT_SUPPORTED:
        if settings.of_listener(listener, name):
            raise ValueError(f"{name}: not supported, name a file in PEM format")
    for name in PASSWORDS:
        if name in settings.effective or settings.own_of_listener(listener, name) is not None:
            raise ValueError(f"{name}: a file in PEM format has none; {KEY_PASSWORD} is the key's")
    if certificate_file(settings, listener) is not None:
        return _from_files(settings, listener)
    if default is None:
        raise ValueError(f"{KEYSTORE}: listener {listener} has TLS, and needs a certificate")
    auth = settings.of_listener(listener, CLIENT_AUTH)
    is_set = CLIENT_AUTH in settings.effective or settings.own_of_listener(listener, CLIENT_AUTH)
    if is_set and VERIFY[auth] is not default.verify_mode:
        reason = f"the verify_mode of the SSLContext is {default.verify_mode.name}"
        raise ValueError(f"{CLIENT_AUTH}: {auth} for listener {listener}, but {reason}")
    return default


def load_certificate(path: str, password: str, context: ssl.SSLContext | None = None) -> None:
    """Load a certificate and its key into a context; None to check them.

    Raises ValueError, which names the file.
    """
    context = context or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    passwords = [password]
    try:
        # a password, if an empty one: without it OpenSSL would ask for one on the terminal
        context.load_cert_chain(path, password=lambda: passwords.pop() if passwords else "")
    except ssl.SSLError:
        reason = "not a certificate and its private key in PEM format"
        hint = f", or {KEY_PASSWORD} is another" if password else ""
        raise ValueError(f"{path}: {reason}{hint}") from None
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    if password and passwords:
        raise ValueError(f"{path}: the private key has no password, but {KEY_PASSWORD} is set")


def _from_files(settings: Settings, listener: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = VERIFY[settings.of_listener(listener, CLIENT_AUTH)]
    _load_keystore(settings, listener, context)
    _load_authorities(settings, listener, context, ssl.Purpose.CLIENT_AUTH)
    return context


def peer_tls(settings: Settings, listener: str) -> ssl.SSLContext:
    """Make the context with which a node connects to a listener of others.

    Raises ValueError, which names the key, for files that are invalid.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    own = settings.own_of_listener(listener, IDENTIFICATION)
    context.check_hostname = bool(settings.text(IDENTIFICATION) if own is None else own)
    _load_keystore(settings, listener, context)
    _load_authorities(settings, listener, context, ssl.Purpose.SERVER_AUTH)
    return context


def certificate_file(settings: Settings, listener: str) -> tuple[str, str] | None:
    """Return the file with a listener's certificate and the password of its key; None without one.

    Raises ValueError, which names the key, for a format that is not supported.
    """
    path = _pem(settings, listener, KEYSTORE, KEYSTORE_TYPE)
    return (path, settings.of_listener(listener, KEY_PASSWORD)) if path else None


def _load_keystore(settings: Settings, listener: str, context: ssl.SSLContext) -> None:
    file = certificate_file(settings, listener)
    if file is None:
        return
    try:
        load_certificate(*file, context)
    except ValueError as error:
        raise ValueError(f"{KEYSTORE}: {error}") from None


def _load_authorities(
    settings: Settings, listener: str, context: ssl.SSLContext, purpose: ssl.Purpose
) -> None:
    """Load those of the truststore; without one, those of the system."""
    authorities = _pem(settings, listener, TRUSTSTORE, TRUSTSTORE_TYPE)
    if not authorities:
        context.load_default_certs(purpose)
        return
    try:
        context.load_verify_locations(authorities)
    except ssl.SSLError:
        raise ValueError(f"{TRUSTSTORE}: {authorities}: no certificate in PEM format") from None
    except OSError as error:
        raise ValueError(f"{TRUSTSTORE}: {authorities}: {error.strerror}") from None


def _pem(settings: Settings, listener: str, name: str, type_name: str) -> str:
    """Return a file in PEM format, "" for none. Raises ValueError for another format."""
    type = settings.effective.get(type_name, PEM)
    type = settings.own_of_listener(listener, type_name) or type
    if type.upper() != PEM:
        raise ValueError(f"{type_name}: {type} is not supported: expected {PEM}")
    if settings.own_of_listener(listener, name) == "":
        raise ValueError(f"{name}: listener {listener} has no name of a file")
    return settings.of_listener(listener, name)
