"""Reads `--add-scram`: the SCRAM credentials of a new cluster, as of `kafka-storage.sh format`.

They are among the first records of the metadata log, so that nodes can authenticate (KIP-900).
No value is in an error: it may be a password.

    SCRAM-SHA-256=[name=alice,password=alice-secret]
    SCRAM-SHA-512=[name=alice,iterations=8192,salt=c2FsdA==,saltedpassword=...]
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from typing import Final

from ...configs.features import controller_features
from ...configs.scram import HASHES, ITERATIONS, NUMBERS
from ...controller.operations.scram_credentials import credential_record
from ...controller.state import bootstrap_features
from ...messages.alter_user_scram_credentials_request import ScramCredentialUpsertion
from ...messages.user_scram_credential_record import UserScramCredentialRecord
from ...metadata import METADATA_VERSION
from ...metadata.versions import SCRAM
from ...whole_numbers import whole_number

VALUE: Final = re.compile(r"([^=\[\]]+)=\[(.*)\]", re.DOTALL)
FORM: Final = "MECHANISM=[name=NAME,password=PASSWORD]"
FIELDS: Final = ("name", "password", "salt", "saltedpassword", "iterations")


def scram_credentials(
    values: Iterable[str], release: str, new_salt: Callable[[], bytes]
) -> tuple[UserScramCredentialRecord, ...]:
    """Return the records of credentials.

    new_salt: returns the salt of a password. Raises ValueError for a value that is not valid, a
    user twice, and a release whose metadata has no SCRAM credentials.
    """
    records: dict[tuple[str, int], UserScramCredentialRecord] = {}
    for value in values:
        record = _record(value, new_salt)
        if (record.name, record.mechanism) in records:
            raise ValueError(f"user {record.name!r} twice with the same mechanism")
        records[record.name, record.mechanism] = record
    level = bootstrap_features(controller_features(release))[METADATA_VERSION]
    if records and level < SCRAM:
        raise ValueError(f"release {release} has no SCRAM credentials in its metadata")
    return tuple(records.values())


def _record(value: str, new_salt: Callable[[], bytes]) -> UserScramCredentialRecord:
    match = VALUE.fullmatch(value)
    if match is None:
        raise ValueError(f"expected {FORM}")
    mechanism, fields = match[1], _fields(match[2])
    if mechanism not in HASHES:
        raise ValueError(f"unknown mechanism: expected one of {', '.join(HASHES)}")
    if not fields.get("name"):
        raise ValueError("expected a name")
    if bool(fields.get("password")) == bool(fields.get("saltedpassword")):
        raise ValueError("expected one of password and saltedpassword")
    if "saltedpassword" in fields and "salt" not in fields:
        raise ValueError("saltedpassword needs its salt")
    iterations = _iterations(fields.get("iterations", str(ITERATIONS.start)))
    salt = _base64(fields, "salt") if "salt" in fields else new_salt()
    if "saltedpassword" in fields:
        salted = _base64(fields, "saltedpassword")
    else:
        password = fields["password"].encode()
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password, salt, iterations)
    return credential_record(
        ScramCredentialUpsertion(
            name=fields["name"],
            mechanism=NUMBERS[mechanism],
            iterations=iterations,
            salt=salt,
            salted_password=salted,
        )
    )


def _fields(text: str) -> dict[str, str]:
    """Split `name=value,...`; a value may be in double quotes, and has no comma."""
    fields: dict[str, str] = {}
    for number, part in enumerate(text.split(","), 1):
        name, equals, value = part.partition("=")
        if not equals or name not in FIELDS or name in fields:
            raise ValueError(f"part {number}: expected one of {', '.join(FIELDS)}, once")
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        fields[name] = value[1:-1] if is_quoted else value
    return fields


def _iterations(text: str) -> int:
    iterations = whole_number(text, ITERATIONS.stop - 1)
    if iterations is None or iterations < ITERATIONS.start:
        raise ValueError(f"iterations: expected {ITERATIONS.start} to {ITERATIONS.stop - 1}")
    return iterations


def _base64(fields: dict[str, str], name: str) -> bytes:
    try:
        return b64decode(fields[name], validate=True)
    except ValueError:
        raise ValueError(f"{name}: expected base64") from None
