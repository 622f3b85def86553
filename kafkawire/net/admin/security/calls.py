"""The calls of an admin client about who may do what, and how much: ACLs, users, quotas, tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import SystemRandom
from typing import Final

from ....client.arguments import INT64, text, whole
from ..session import AdminSession
from . import acls, quotas, tokens, users
from .values import (
    AclBinding,
    AclFilter,
    DelegationToken,
    QuotaEntity,
    QuotaFilter,
    ScramCredential,
)

ANY_ACL: Final = AclFilter()
RNG: Final = SystemRandom()
ANY_QUOTA: Final = QuotaFilter()


class SecurityCalls(AdminSession):
    """Changes and describes ACLs, SCRAM credentials, client quotas and delegation tokens."""

    # ACLs.

    async def create_acls(self, bindings: Iterable[AclBinding]) -> None:
        """Create ACLs; those that exist stay. BrokerError for the first one that is refused."""
        await acls.create(self._calls, bindings)

    async def describe_acls(self, matching: AclFilter = ANY_ACL) -> list[AclBinding]:
        """Return the ACLs that a filter matches, sorted; all by default."""
        return await acls.describe(self._calls, matching)

    async def delete_acls(self, filters: Iterable[AclFilter]) -> list[AclBinding]:
        """Delete the ACLs that any of the filters matches; return them, sorted."""
        return await acls.delete(self._calls, filters)

    # Quotas.

    async def describe_client_quotas(
        self, matching: QuotaFilter = ANY_QUOTA
    ) -> dict[QuotaEntity, dict[str, float]]:
        """Return the quotas that are set, by entity and key, sorted; all by default."""
        return await quotas.describe(self._calls, matching)

    async def alter_client_quotas(
        self,
        changes: Mapping[QuotaEntity, Mapping[str, float | None]],
        *,
        validate_only: bool = False,
    ) -> None:
        """Set quotas such as `producer_byte_rate` of entities; None removes one."""
        await quotas.alter(self._calls, changes, validate_only=validate_only)

    # Users.

    async def describe_user_scram_credentials(
        self, names: Iterable[str] | None = None
    ) -> dict[str, tuple[ScramCredential, ...]]:
        """Return the SCRAM credentials of users, without the secrets; names: None is all.

        BrokerError for the first user without a credential.
        """
        wanted = None if names is None else [text(name, "names") for name in names]
        return await users.describe(self._calls, wanted)

    async def upsert_user_scram_credential(
        self,
        name: str,
        credential: ScramCredential,
        password: str,
        *,
        random_bytes: Callable[[int], bytes] = RNG.randbytes,
    ) -> None:
        """Create or replace the credential of a user for a mechanism; others of the user stay.

        The password itself is not sent. random_bytes: returns that many for the salt.
        """
        upsertion = users.upsertion(name, credential, password, random_bytes)
        await users.alter(self._calls, [upsertion], [])

    async def delete_user_scram_credential(self, name: str, mechanism: str) -> None:
        """Delete the credential of a user for a mechanism."""
        await users.alter(self._calls, [], [users.deletion(name, mechanism)])

    # Delegation tokens.

    async def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int = -1,
    ) -> DelegationToken:
        """Create a token for the user of this connection, which needs SASL or mutual TLS.

        owner: another user, such as `User:alice`, from brokers of 3.3 on. renewers: who may renew
        and expire it besides the owner. max_lifetime_ms: -1 for the broker's limit. The secret of
        the token is its `hmac`.
        """
        lifetime = whole(max_lifetime_ms, "max_lifetime_ms", -1, INT64)
        return await tokens.create(self._calls, owner, renewers, lifetime)

    async def renew_delegation_token(self, hmac: bytes, *, period_ms: int = -1) -> int:
        """Renew a token for a period, -1 for the broker's; return when it expires, since 1970."""
        return await tokens.renew(self._calls, hmac, whole(period_ms, "period_ms", -1, INT64))

    async def expire_delegation_token(self, hmac: bytes, *, period_ms: int = -1) -> int:
        """Let a token expire after a period, a negative one deletes it now; return when."""
        lowest = -INT64 - 1
        return await tokens.expire(self._calls, hmac, whole(period_ms, "period_ms", lowest, INT64))

    async def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None
    ) -> list[DelegationToken]:
        """Return the tokens that the user of this connection may see, by id; with their secrets."""
        return await tokens.describe(self._calls, owners)
