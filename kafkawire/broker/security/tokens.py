"""The credentials of clients that authenticate with a delegation token (KIP-48)."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

from ...configs.scram import ITERATIONS
from ...controller.operations.delegation_tokens import (
    Principal,
    is_expired,
    secret_key,
    secret_of,
)
from .scram import TokenCredential, credential

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...metadata import MetadataImage


def token_credential(
    image: MetadataImage,
    static: Mapping[str, str],
    token: tuple[str, str],
    wall_ms: int,
    new_salt: Callable[[], bytes],
) -> TokenCredential | None:
    """Return the credential of a token; None if it does not exist or has ended.

    token: the mechanism and the id. The password is the secret in base64.
    """
    mechanism, token_id = token
    record, key = image.delegation_tokens.get(token_id), secret_key(static)
    if record is None or key is None or is_expired(record, wall_ms):
        return None
    password = b64encode(secret_of(token_id, key)).decode()
    owner = Principal.parse(record.owner).name
    derived = credential(mechanism, password, new_salt(), ITERATIONS.start)
    return TokenCredential(owner, derived, record.expiration_timestamp)
