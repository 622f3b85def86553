"""Rules of the authorizer are removed one by one: the plain reading of the rules finds each."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from kafkawire.broker.security import authorizer as module
from kafkawire.broker.security.authorizer import Caller, Pattern, Rights, StandardAuthorizer
from kafkawire.broker.security.operations import AclResource, Operation
from tests.broker.security.acls import ALL, ALLOW, DENY, LITERAL, PREFIXED, acl
from tests.broker.security.test_authorizer import HOSTS, NAMES, PRINCIPALS, expected, on_any

CASES: Final = 2000
Patch = Callable[[pytest.MonkeyPatch], None]
_rights_of = module._rights_of


def rights(change: Callable[[Rights, int, int], Rights]) -> Patch:
    """Change what an ACL allows and denies."""

    def changed(operation: int, permission: int) -> Rights:
        return change(_rights_of(operation, permission), operation, permission)

    return lambda patch: patch.setattr(module, "_rights_of", changed)


def matching(change: Callable[[Iterator[Pattern]], Any]) -> Patch:
    """Change which patterns match a resource."""
    original = StandardAuthorizer._matching

    def changed(self: StandardAuthorizer, resource: AclResource, name: str) -> Any:
        return change(original(self, resource, name))

    return lambda patch: patch.setattr(StandardAuthorizer, "_matching", changed)


def callers(change: Callable[[Caller], list[Caller]]) -> Patch:
    """Change which ACLs are about a caller."""
    return lambda patch: patch.setattr(module, "_matched_by", change)


def attribute(name: str, value: object) -> Patch:
    return lambda patch: patch.setattr(module, name, value)


def undecided(patch: pytest.MonkeyPatch) -> None:
    """Let a resource be open to all although ACLs are about it."""
    original = StandardAuthorizer.operations

    def changed(self: Any, caller: Caller, resource: AclResource, name: str) -> int:
        return original(self, caller, resource, name) or int(self._default)

    patch.setattr(StandardAuthorizer, "operations", changed)


def undominated(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StandardAuthorizer, "_is_dominated", lambda *_: False)


MUTANTS: Final[dict[str, Patch]] = {
    "deny_counts": rights(lambda rights, *_: Rights(rights.allowed)),
    "deny_of_all_operations": rights(
        lambda found, operation, permission: (
            Rights() if permission == DENY and operation == ALL else found
        )
    ),
    "deny_implies_nothing": rights(
        lambda found, operation, permission: (
            Rights(denied=found.denied | module.IMPLIED.get(operation, 0))
            if permission == DENY
            else found
        )
    ),
    "allow_implies": attribute("IMPLIED", {ALL: module.ALL_OPERATIONS}),
    "allow_of_all_operations": rights(
        lambda found, operation, permission: (
            Rights() if permission == ALLOW and operation == ALL else found
        )
    ),
    "literal_patterns": matching(
        lambda found: [each for each in found if each.pattern_type == PREFIXED]
    ),
    "prefixed_patterns": matching(
        lambda found: [each for each in found if each.pattern_type == LITERAL]
    ),
    "wildcard_pattern": matching(lambda found: [each for each in found if each.name != "*"]),
    "principal_everyone": callers(lambda each: [each, each._replace(host="*")]),
    "host_of_an_acl": callers(
        lambda each: [
            Caller(principal, host) for principal in (each.principal, "User:*") for host in HOSTS
        ]
    ),
    "host_any": callers(lambda each: [each, each._replace(principal="User:*")]),
    "type_of_a_principal": callers(
        lambda each: [
            Caller(principal, host)
            for principal in ("User:alice", "Group:alice", each.principal, "User:*")
            for host in (each.host, "*")
        ]
    ),
    "acls_close_a_resource": undecided,
    "denied_patterns_dominate": undominated,
}
"""Rule -> how it is removed."""


def differs(seed: int) -> bool:
    """Return whether the authorizer decides otherwise than the plain reading."""
    rng = random.Random(seed)
    acls = [
        acl(
            rng.choice([AclResource.TOPIC, AclResource.GROUP]),
            rng.choice(NAMES),
            rng.choice([ALL, Operation.READ, Operation.WRITE, Operation.ALTER_CONFIGS]),
            rng.choice([ALLOW, ALLOW, DENY]),
            principal=rng.choice(PRINCIPALS),
            host=rng.choice(HOSTS),
            pattern=rng.choice([LITERAL, PREFIXED]),
        )
        for _ in range(rng.randint(1, 8))
    ]
    everyone = rng.random() < 0.5
    authorizer = StandardAuthorizer(frozenset(), everyone)
    image = {each.id: each for each in acls}
    authorizer.publish(image, image)
    caller = Caller(rng.choice(PRINCIPALS[1:]), rng.choice(HOSTS[1:]))
    name = rng.choice(NAMES[1:])
    left = [*image.values()]
    wanted = [expected(left, caller, each, name, everyone) for each in Operation]
    decided = [authorizer.may(caller, each, AclResource.TOPIC, name) for each in Operation]
    on_one = expected(left, caller, Operation.WRITE, "hardcode", everyone)
    on_some = on_one or on_any(left, caller, Operation.WRITE)
    decided_on_some = authorizer.may_on_any(caller, Operation.WRITE, AclResource.TOPIC)
    return decided != wanted or decided_on_some != on_some


def test_no_case_differs_with_all_rules() -> None:
    assert not any(map(differs, range(CASES)))


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_removed_rule_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    MUTANTS[rule](monkeypatch)
    assert any(map(differs, range(CASES)))
