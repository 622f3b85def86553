"""SCRAM credentials of users (KIP-554).

The client salts and hashes a password; the cluster never receives the password itself.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Final

from ....broker.security.scram import SALT_SIZE
from ....client.arguments import text, whole
from ....client.requests import CONTROLLER, LEAST_LOADED
from ....configs.scram import HASHES, ITERATIONS, NUMBERS
from ....errors import InvalidValue
from ....messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ....messages.alter_user_scram_credentials_response import AlterUserScramCredentialsResponse
from ....messages.api_key import ApiKey
from ....messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from ....messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from ..calls import CallRunner, check
from .values import ScramCredential

NAMES: Final = {number: name for name, number in NUMBERS.items()}


def mechanism(name: object, argument: str = "mechanism") -> str:
    """Return the name of a mechanism. Raises InvalidValue for another value."""
    if not isinstance(name, str) or name not in NUMBERS:
        raise InvalidValue(f"{name!r}: expected one of {', '.join(NUMBERS)}", argument)
    return name


def upsertion(
    name: str, credential: ScramCredential, password: str, salt_of: Callable[[int], bytes]
) -> ScramCredentialUpsertion:
    """Salt and hash the password of a user (RFC 5802: SaltedPassword)."""
    if not isinstance(credential, ScramCredential):
        raise InvalidValue(
            f"expected ScramCredential, got {type(credential).__name__}", "credential"
        )
    scram = mechanism(credential.mechanism, "credential.mechanism")
    least, most = ITERATIONS[0], ITERATIONS[-1]
    iterations = whole(credential.iterations, "credential.iterations", least, most)
    if not isinstance(password, str) or not password:
        raise InvalidValue("expected a text that is not empty", "password")
    salt = salt_of(SALT_SIZE)
    return ScramCredentialUpsertion(
        name=text(name, "name"),
        mechanism=NUMBERS[scram],
        iterations=iterations,
        salt=salt,
        salted_password=hashlib.pbkdf2_hmac(HASHES[scram], password.encode(), salt, iterations),
    )


def deletion(name: str, mechanism_name: str) -> ScramCredentialDeletion:
    """Make the deletion of a credential."""
    return ScramCredentialDeletion(
        name=text(name, "name"), mechanism=NUMBERS[mechanism(mechanism_name)]
    )


async def alter(
    calls: CallRunner,
    upsertions: Sequence[ScramCredentialUpsertion],
    deletions: Sequence[ScramCredentialDeletion],
) -> None:
    """Create, replace and delete credentials. BrokerError for the first that is refused."""
    response = await calls.call(
        CONTROLLER,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        AlterUserScramCredentialsResponse,
        lambda _: AlterUserScramCredentialsRequest(
            upsertions=[*upsertions], deletions=[*deletions]
        ),
        lambda response: [row.error_code for row in response.results],
    )
    for row in response.results:
        check(row.error_code, f"user {row.user}", row.error_message)


async def describe(
    calls: CallRunner, names: Sequence[str] | None
) -> dict[str, tuple[ScramCredential, ...]]:
    """Return the credentials of users, by name; names: None is all."""
    wanted = None if names is None else [UserName(name=name) for name in names]
    response = await calls.call(
        LEAST_LOADED,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        DescribeUserScramCredentialsResponse,
        lambda _: DescribeUserScramCredentialsRequest(users=wanted),
        lambda response: [response.error_code, *(row.error_code for row in response.results)],
    )
    check(response.error_code, "users", response.error_message)
    for row in response.results:
        check(row.error_code, f"user {row.user}", row.error_message)
    return {
        row.user: tuple(
            sorted(
                ScramCredential(NAMES.get(info.mechanism, str(info.mechanism)), info.iterations)
                for info in row.credential_infos
            )
        )
        for row in sorted(response.results, key=lambda row: row.user)
    }
