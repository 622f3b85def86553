"""Certificates of tests: those of clients that no broker trusts, or that have other subjects."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

BROKER: Final = str(Path(__file__).with_name("localhost.pem"))
"""The certificate of brokers, its key, and the authority that has signed it: itself."""
BROKER_SUBJECT: Final = "CN=kafkawire tests"
NOW: Final = datetime.now(UTC)


def write_certificate(path: Path, name: str, password: str = "", names: Sequence[str] = ()) -> str:
    """Write a certificate that signs itself, with its key, in PEM format; return the path.

    names: its alternative names.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    authority = x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(NOW - timedelta(days=1))
        .not_valid_after(NOW + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(identifier, critical=False)
        .add_extension(authority, critical=False)
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.DNSName(each) for each in names])
        builder = builder.add_extension(alternative, critical=False)
    certificate = builder.sign(key, SHA256())
    encryption = BestAvailableEncryption(password.encode()) if password else NoEncryption()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)
    path.write_bytes(certificate.public_bytes(Encoding.PEM) + text)
    return str(path)
