"""Results and arguments of the admin client about security, under Kafka's names."""

from __future__ import annotations

from typing import Final, NamedTuple

from ....configs.scram import ITERATIONS

DEFAULT_ENTITY: Final = ""
"""In `QuotaEntity`: the default of all users, client ids or addresses."""


class AclBinding(NamedTuple):
    """An ACL, in the names of Kafka's tools: who may, or may not, do what with which resource.

    resource_type: TOPIC, GROUP, CLUSTER (named kafka-cluster), TRANSACTIONAL_ID, DELEGATION_TOKEN,
    USER. principal: such as User:alice, User:* for all. operation: ALL, READ, WRITE ...
    permission_type: ALLOW, DENY. host: an address, or *. pattern_type: LITERAL (the name * is any),
    PREFIXED.
    """

    resource_type: str
    resource_name: str
    principal: str
    operation: str
    permission_type: str = "ALLOW"
    host: str = "*"
    pattern_type: str = "LITERAL"


class AclFilter(NamedTuple):
    """Which ACLs: None is any. pattern_type: also MATCH, for all about a resource of that name."""

    resource_type: str | None = None
    resource_name: str | None = None
    principal: str | None = None
    operation: str | None = None
    permission_type: str | None = None
    host: str | None = None
    pattern_type: str | None = None


class QuotaEntity(NamedTuple):
    """What a quota limits: a user, a client id, both, or an address.

    None: the entity has no such part. DEFAULT_ENTITY: those without a quota of their own.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None


class QuotaFilter(NamedTuple):
    """Which quotas: of entities with these parts, as of `QuotaEntity`; None for any.

    any_of: user, client_id, ip: entities that have these parts, whatever their names.
    strict: only entities without other parts.
    """

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None
    any_of: tuple[str, ...] = ()
    strict: bool = False


class ScramCredential(NamedTuple):
    """A credential of a user, without its secrets. mechanism: SCRAM-SHA-256, SCRAM-SHA-512."""

    mechanism: str
    iterations: int = ITERATIONS.start


class DelegationToken(NamedTuple):
    """A delegation token; times in milliseconds since 1970.

    owner, requester, renewers: principals such as User:alice; requester: "" from brokers before
    3.3. expires_ms: unless it is renewed, max_ms: at last. hmac: the secret, which its repr hides.
    """

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int
    hmac: bytes

    def __repr__(self) -> str:
        shown = (
            f"{name}={'(hidden)' if name == 'hmac' else repr(value)}"
            for name, value in self._asdict().items()
        )
        return f"DelegationToken({', '.join(shown)})"
