"""The rules of ACLs, beside a plain reading of Kafka's: every ACL is looked at, one by one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkawire.broker.security.authorizer import Caller, StandardAuthorizer, authorizer_of
from kafkawire.broker.security.operations import AclResource, Operation
from kafkawire.messages.access_control_entry_record import AccessControlEntryRecord
from tests.broker.security.acls import (
    ALL,
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    STANDARD,
    acl,
)

O, R = Operation, AclResource  # noqa: E741
IMPLIES_DESCRIBE = {O.READ, O.WRITE, O.DELETE, O.ALTER, O.DESCRIBE}
IMPLIES_DESCRIBE_CONFIGS = {O.ALTER_CONFIGS, O.DESCRIBE_CONFIGS}
NAMES = ["*", "a", "aa", "ab", "aab", "b"]
PRINCIPALS = ["User:*", "User:alice", "User:bob", "Group:alice"]
HOSTS = ["*", "10.0.0.1", "10.0.0.2"]
records = st.builds(
    acl,
    st.sampled_from([R.TOPIC, R.GROUP]),
    st.sampled_from(NAMES),
    st.sampled_from([ALL, *O]),
    st.sampled_from([ALLOW, DENY]),
    principal=st.sampled_from(PRINCIPALS),
    host=st.sampled_from(HOSTS),
    pattern=st.sampled_from([LITERAL, PREFIXED]),
)
callers = st.builds(Caller, st.sampled_from(PRINCIPALS[1:]), st.sampled_from(HOSTS[1:]))


def matches(record: AccessControlEntryRecord, resource: AclResource, name: str) -> bool:
    if record.resource_type != resource:
        return False
    if record.pattern_type == PREFIXED:
        return name.startswith(record.resource_name)
    return record.resource_name in ("*", name)


def is_about(record: AccessControlEntryRecord, caller: Caller, operation: Operation) -> bool:
    if record.principal not in ("User:*", caller.principal):
        return False
    if record.host not in ("*", caller.host):
        return False
    if record.operation in (ALL, operation):
        return True
    if record.permission_type == DENY:
        return False
    implied = {O.DESCRIBE: IMPLIES_DESCRIBE, O.DESCRIBE_CONFIGS: IMPLIES_DESCRIBE_CONFIGS}
    return record.operation in implied.get(operation, ())


def expected(
    acls: list[AccessControlEntryRecord],
    caller: Caller,
    operation: Operation,
    name: str,
    everyone: bool,
) -> bool:
    of_resource = [each for each in acls if matches(each, R.TOPIC, name)]
    if not of_resource:
        return everyone
    verdicts = {each.permission_type for each in of_resource if is_about(each, caller, operation)}
    return DENY not in verdicts and ALLOW in verdicts


def on_any(acls: list[AccessControlEntryRecord], caller: Caller, operation: Operation) -> bool:
    """Read `Authorizer.authorizeByResourceType` of Kafka: implied operations do not count."""
    own = [
        each
        for each in acls
        if each.resource_type == R.TOPIC
        and each.principal in ("User:*", caller.principal)
        and each.host in ("*", caller.host)
        and each.operation in (ALL, operation)
    ]
    denied = {(e.pattern_type, e.resource_name) for e in own if e.permission_type == DENY}
    allowed = {(e.pattern_type, e.resource_name) for e in own if e.permission_type == ALLOW}
    if (LITERAL, "*") in denied:
        return False
    if (LITERAL, "*") in allowed:
        return True

    def dominated(pattern: int, name: str) -> bool:
        if pattern == LITERAL and (LITERAL, name) in denied:
            return True
        return any((PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))

    return any(not dominated(*each) for each in allowed)


@given(st.lists(records, max_size=12), st.data(), st.booleans())
def test_a_decision_is_that_of_all_acls_read_one_by_one(
    acls: list[AccessControlEntryRecord], data: st.DataObject, everyone: bool
) -> None:
    authorizer = StandardAuthorizer(frozenset(), everyone)
    image: dict[bytes, AccessControlEntryRecord] = {}
    for each in acls:  # one by one, and some removed again
        image[each.id] = each
        authorizer.publish(image, [each.id])
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(sorted(image)))
            del image[gone]
            authorizer.publish(image, [gone])
    left = list(image.values())
    caller = data.draw(callers)
    name = data.draw(st.sampled_from(NAMES[1:]))
    for operation in O:
        decided = authorizer.may(caller, operation, R.TOPIC, name)
        assert decided is expected(left, caller, operation, name, everyone)
    bits = authorizer.operations(caller, R.TOPIC, name)
    assert [bool(bits >> each & 1) for each in O] == [
        expected(left, caller, each, name, everyone) for each in O
    ]


@given(st.lists(records, max_size=8), callers, st.sampled_from([O.READ, O.WRITE]))
def test_what_is_allowed_on_any_resource_is_as_in_kafka(
    acls: list[AccessControlEntryRecord], caller: Caller, operation: Operation
) -> None:
    authorizer = StandardAuthorizer(frozenset(), False)
    image = {each.id: each for each in acls}
    authorizer.publish(image, image)
    hard_coded = expected([*image.values()], caller, operation, "hardcode", False)
    wanted = hard_coded or on_any([*image.values()], caller, operation)
    assert authorizer.may_on_any(caller, operation, R.TOPIC) is wanted


def test_super_users_may_do_everything_whatever_is_denied() -> None:
    authorizer = authorizer_of(STANDARD | {"super.users": "User:root; User:broker"})
    assert authorizer is not None
    denied = acl(R.TOPIC, "t", ALL, DENY, principal="User:*")
    authorizer.publish({denied.id: denied}, [denied.id])
    for user, expected in (("User:root", True), ("User:broker", True), ("User:eve", False)):
        caller = Caller(user, "h")
        assert authorizer.may(caller, O.DELETE, R.TOPIC, "t") is expected
        assert authorizer.may_on_any(caller, O.WRITE, R.TOPIC) is expected


def test_everyone_may_use_what_no_acl_is_about_if_that_is_set() -> None:
    authorizer = authorizer_of(STANDARD | {"allow.everyone.if.no.acl.found": "true"})
    assert authorizer is not None
    eve = Caller("User:eve", "h")
    assert authorizer.may(eve, O.WRITE, R.TOPIC, "t")
    own = acl(R.TOPIC, "t", O.READ, principal="User:alice")
    authorizer.publish({own.id: own}, [own.id])
    assert not authorizer.may(eve, O.WRITE, R.TOPIC, "t")
    assert not authorizer.may(Caller("User:alice", "h"), O.WRITE, R.TOPIC, "t")
    assert authorizer.may(eve, O.WRITE, R.TOPIC, "other")


def test_without_a_class_there_is_no_authorizer_and_another_class_is_refused() -> None:
    assert authorizer_of({}) is None
    with pytest.raises(ValueError, match=r"authorizer.class.name='com.acme.Mine'"):
        authorizer_of({"authorizer.class.name": "com.acme.Mine"})


class CountedDict(dict):  # type: ignore[type-arg]
    """Counts how often it is looked into."""

    looks = 0

    def get(self, *args: object) -> object:
        CountedDict.looks += 1
        return super().get(*args)


@pytest.mark.parametrize("operation", [O.READ, O.DESCRIBE])
def test_a_decision_does_not_look_at_the_acls_of_others(operation: Operation) -> None:
    looks = []
    for count in (10, 1000):
        authorizer = StandardAuthorizer(frozenset(), False)
        acls = [acl(R.TOPIC, f"t{n:05}", O.READ, principal=f"User:{n}") for n in range(count)]
        acls += [acl(R.TOPIC, "*", O.READ, principal=f"User:{n}") for n in range(count)]
        acls += [acl(R.TOPIC, f"p{n:05}", O.READ, pattern=PREFIXED) for n in range(count)]
        image = {each.id: each for each in acls}
        authorizer.publish(image, image)
        authorizer._entries = CountedDict(
            {key: CountedDict(value) for key, value in authorizer._entries.items()}
        )
        CountedDict.looks = 0
        assert authorizer.may(Caller("User:3", "h"), operation, R.TOPIC, "t00003")
        looks.append(CountedDict.looks)
    assert looks[0] == looks[1]
