"""Decides by ACLs who may do what, with the rules of Kafka's StandardAuthorizer.

Deny comes before allow; what no ACL allows is denied, also where no ACL is about the resource,
unless `allow.everyone.if.no.acl.found`; super users may do everything.

    ACLs of the image ─▶ pattern ─▶ (principal, host) ─▶ bits of operations, allowed and denied
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...controller.operations.acls import ALLOW, AUTHORIZER, LITERAL, PREFIXED, WILDCARD, Acl
from ...messages.access_control_entry_record import AccessControlEntryRecord
from .operations import AclResource, Operation, bits

O = Operation  # noqa: E741
SUPER_USERS: Final = "super.users"
ALLOW_EVERYONE: Final = "allow.everyone.if.no.acl.found"
EVERYONE: Final = "User:*"
ALL: Final = 2
"""The operation of an ACL that is about all of them."""
ALL_OPERATIONS: Final = bits(*Operation)
IMPLIED: Final[Mapping[int, int]] = {
    ALL: ALL_OPERATIONS,
    **dict.fromkeys((O.READ, O.WRITE, O.DELETE, O.ALTER), bits(O.DESCRIBE)),
    O.ALTER_CONFIGS: bits(O.DESCRIBE_CONFIGS),
}
"""Operation -> those that who is allowed it is allowed besides; to deny one denies no other."""
CLASSES: Final = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
    "kafka.security.auth.SimpleAclAuthorizer",
)
"""The authorizers of Kafka: that of KRaft, and those of releases with ZooKeeper. All have the same
rules.
"""
UNNAMED: Final = "hardcode"
"""The resource by which Kafka knows who may do everything whatever it is called."""


class Caller(NamedTuple):
    """Who sends a request. principal: type and name, such as "User:alice"; host: its address."""

    principal: str
    host: str


class Pattern(NamedTuple):
    """Which resources an ACL is about."""

    resource_type: int
    pattern_type: int
    name: str


class Rights(NamedTuple):
    """Operations as bits (KIP-430), of which `denied` come first."""

    allowed: int = 0
    denied: int = 0

    def with_(self, other: Rights) -> Rights:
        """Return both together."""
        return Rights(self.allowed | other.allowed, self.denied | other.denied)


NO_RIGHTS: Final = Rights()


@dataclass(slots=True)
class Entries:
    """The ACLs with one pattern for one principal on one host: (operation, permission)."""

    acls: Counter[tuple[int, int]] = field(default_factory=Counter)
    rights: Rights = NO_RIGHTS

    def change(self, acl: Acl, by: int) -> None:
        """Add or remove an ACL."""
        self.acls[acl.operation, acl.permission_type] += by
        self.acls += Counter()  # without those that are removed
        self.rights = NO_RIGHTS
        for operation, permission in self.acls:
            self.rights = self.rights.with_(_rights_of(operation, permission))


def _rights_of(operation: int, permission: int) -> Rights:
    if permission == ALLOW:
        return Rights(allowed=1 << operation | IMPLIED.get(operation, 0))
    return Rights(denied=ALL_OPERATIONS if operation == ALL else 1 << operation)


class StandardAuthorizer:
    """The ACLs of a cluster, indexed: a decision visits those of the resource and the caller only.

    super_users: principals. allows_everyone: whether a resource without ACLs is open to all.
    """

    def __init__(self, super_users: frozenset[str], allows_everyone: bool) -> None:
        self.super_users = super_users
        self._default = ALL_OPERATIONS if allows_everyone else 0
        self._acls: dict[bytes, Acl] = {}
        self._entries: dict[Pattern, dict[Caller, Entries]] = {}
        self._lengths: dict[int, Counter[int]] = {}
        """Resource type -> the lengths of its prefixes, with how many patterns have each."""
        self._patterns: dict[tuple[int, Caller], dict[Pattern, None]] = {}
        """The patterns of a resource type with ACLs for a principal on a host."""
        self.is_loaded = False

    # -- the ACLs

    def publish(
        self, acls: Mapping[bytes, AccessControlEntryRecord], changed: Iterable[bytes]
    ) -> None:
        """Follow the metadata. acls: of the image; changed: the ids of those that may differ."""
        self.is_loaded = True
        for acl_id in changed:
            former = self._acls.pop(acl_id, None)
            if former is not None:
                self._change(former, -1)
            record = acls.get(acl_id)
            if record is not None:
                acl = self._acls[acl_id] = Acl.of(record)
                self._change(acl, 1)

    def _change(self, acl: Acl, by: int) -> None:
        pattern = Pattern(acl.resource_type, acl.pattern_type, acl.resource_name)
        caller = Caller(acl.principal, acl.host)
        callers = self._entries.get(pattern)
        if callers is None:
            callers = self._entries[pattern] = {}
            self._count(pattern, 1)
        entries = callers.setdefault(caller, Entries())
        patterns = self._patterns.setdefault((pattern.resource_type, caller), {})
        patterns[pattern] = None
        entries.change(acl, by)
        if entries.acls:
            return
        del callers[caller], patterns[pattern]
        if not patterns:
            del self._patterns[pattern.resource_type, caller]
        if not callers:
            del self._entries[pattern]
            self._count(pattern, -1)

    def _count(self, pattern: Pattern, by: int) -> None:
        """Note the length of a prefix."""
        if pattern.pattern_type == PREFIXED:
            lengths = self._lengths.setdefault(pattern.resource_type, Counter())
            lengths[len(pattern.name)] += by
            if not lengths[len(pattern.name)]:
                del lengths[len(pattern.name)]

    # -- decisions

    def operations(self, caller: Caller, resource: AclResource, name: str) -> int:
        """Return the operations that a caller may perform on a resource, as bits."""
        if caller.principal in self.super_users:
            return ALL_OPERATIONS
        rights, has_acls = NO_RIGHTS, False
        for pattern in self._matching(resource, name):
            callers = self._entries.get(pattern)
            if callers is None:
                continue
            has_acls = True
            for each in _matched_by(caller):
                entries = callers.get(each)
                if entries is not None:
                    rights = rights.with_(entries.rights)
        return rights.allowed & ~rights.denied if has_acls else self._default

    def may(self, caller: Caller, operation: Operation, resource: AclResource, name: str) -> bool:
        """Return whether a caller may perform an operation on a resource."""
        return bool(self.operations(caller, resource, name) >> operation & 1)

    def may_on_any(self, caller: Caller, operation: Operation, resource: AclResource) -> bool:
        """Return whether a caller may perform an operation on a resource of any name.

        As in Kafka's `authorizeByResourceType`: it visits the ACLs of the caller.
        """
        if self.may(caller, operation, resource, UNNAMED):
            return True
        bit = 1 << operation
        denied: set[Pattern] = set()
        allowed: set[Pattern] = set()
        for each in _matched_by(caller):
            for pattern in self._patterns.get((resource, each), ()):
                rights = self._entries[pattern][each].rights
                if rights.denied & bit:
                    denied.add(pattern)
                if rights.allowed & bit:
                    allowed.add(pattern)
        every = Pattern(resource, LITERAL, WILDCARD)
        if every in denied or every in allowed:
            return every not in denied
        return any(not self._is_dominated(pattern, denied) for pattern in allowed)

    def _is_dominated(self, pattern: Pattern, denied: set[Pattern]) -> bool:
        """Return whether all that a pattern matches is denied."""
        if pattern in denied:
            return True
        return any(
            Pattern(pattern.resource_type, PREFIXED, pattern.name[:length]) in denied
            for length in self._lengths.get(pattern.resource_type, ())
            if length <= len(pattern.name)
        )

    def _matching(self, resource: AclResource, name: str) -> Iterator[Pattern]:
        """Return the patterns that match a resource, if there are ACLs with them."""
        yield Pattern(resource, LITERAL, name)
        if name != WILDCARD:
            yield Pattern(resource, LITERAL, WILDCARD)
        for length in self._lengths.get(resource, ()):
            if length <= len(name):
                yield Pattern(resource, PREFIXED, name[:length])


def _matched_by(caller: Caller) -> Iterator[Caller]:
    """Return the principals and hosts of ACLs that are about a caller."""
    for principal in dict.fromkeys((caller.principal, EVERYONE)):
        for host in dict.fromkeys((caller.host, WILDCARD)):
            yield Caller(principal, host)


def authorizer_of(static: Mapping[str, str]) -> StandardAuthorizer | None:
    """Return the authorizer of a node; None if `authorizer.class.name` is not set.

    static: values of the broker's keys. ValueError for the class of another authorizer.
    """
    name = static.get(AUTHORIZER)
    if not name:
        return None
    if name not in CLASSES:
        raise ValueError(f"{AUTHORIZER}={name!r}: expected {CLASSES[0]}")
    users = (each.strip() for each in static.get(SUPER_USERS, "").split(";"))
    everyone = static.get(ALLOW_EVERYONE, "").strip().lower() == "true"
    return StandardAuthorizer(frozenset(filter(None, users)), everyone)
