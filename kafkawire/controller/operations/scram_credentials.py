"""AlterUserScramCredentials (KIP-554): users that authenticate with SCRAM.

A request changes a user once or not at all; the salted password itself is not in the log.

    stored key = H(HMAC(salted password, "Client Key"))   server key = HMAC(salted, "Server Key")
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from ...configs.scram import HASHES, ITERATIONS, NUMBERS
from ...messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ...messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ...messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from ...messages.user_scram_credential_record import UserScramCredentialRecord
from ...metadata.versions import SCRAM
from ...primitives import Message
from ...protocol import ErrorCode
from ..state import ControllerState
from .assignments import Refused

E = ErrorCode
HASHES_BY_NUMBER: Final = {number: HASHES[name] for name, number in NUMBERS.items()}
"""Mechanism -> its hash."""
Change = ScramCredentialDeletion | ScramCredentialUpsertion


def alter_scram_credentials(
    state: ControllerState, body: AlterUserScramCredentialsRequest, _version: int, _now: float
) -> AlterUserScramCredentialsResponse:
    """Delete and set credentials."""
    records: dict[str, Message] = {}
    errors: dict[str, Refused] = {}
    changes: list[Change] = [*body.deletions, *body.upsertions]
    for change in changes:
        if change.name in errors:
            continue
        try:
            if records.pop(change.name, None) is not None:
                message = "A user credential cannot be altered twice in the same request"
                raise Refused(E.DUPLICATE_RESOURCE, message)
            records[change.name] = _record(state, change)
        except Refused as refused:
            errors[change.name] = refused
    for record in records.values():
        state.write(record)
    done = [AlterUserScramCredentialsResult(user=name, error_message=None) for name in records]
    refusals = [
        AlterUserScramCredentialsResult(
            user=name, error_code=refused.error, error_message=refused.message
        )
        for name, refused in errors.items()
    ]
    return AlterUserScramCredentialsResponse(results=done + refusals)


def _record(state: ControllerState, change: Change) -> Message:
    """Make the record of a change; raises Refused."""
    if state.metadata_version < SCRAM:
        message = "The current metadata.version does not support SCRAM"
        raise Refused(E.UNSUPPORTED_VERSION, message)
    if not change.name:
        raise Refused(E.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if change.mechanism not in HASHES_BY_NUMBER:
        raise Refused(E.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    if isinstance(change, ScramCredentialDeletion):
        if (change.name, change.mechanism) not in state.image.scram_credentials:
            message = "Attempt to delete a user credential that does not exist"
            raise Refused(E.RESOURCE_NOT_FOUND, message)
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    if change.iterations not in ITERATIONS:
        few = change.iterations < ITERATIONS.start
        raise Refused(E.UNACCEPTABLE_CREDENTIAL, f"Too {'few' if few else 'many'} iterations")
    return credential_record(change)


def credential_record(change: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    """Return the record of a credential that is valid."""
    name, salted = HASHES_BY_NUMBER[change.mechanism], change.salted_password
    client_key = hmac.digest(salted, b"Client Key", name)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=change.salt,
        stored_key=hashlib.new(name, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", name),
        iterations=change.iterations,
    )
