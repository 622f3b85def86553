"""Delegation tokens of others: created and seen only with permissions."""

from __future__ import annotations

import pytest

from kafkawire import ErrorCode
from kafkawire.broker.security.operations import AclResource, Operation
from tests.broker.handlers.test_delegation_tokens import (
    authenticated,
    cluster,
    create,
    describe,
)
from tests.broker.harness import Harness
from tests.broker.security.acls import STANDARD, acl, set_acls


@pytest.fixture
def harness() -> Harness:
    harness = cluster(settings=STANDARD)
    set_acls(harness)
    return harness


def test_a_token_for_another_owner_needs_a_permission_on_that_user(harness: Harness) -> None:
    alice = authenticated(harness, "alice")
    refused = create(alice, owner_type="User", owner="carol")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    assert not refused.hmac
    assert create(alice).error_code == ErrorCode.NONE
    assert create(alice, owner_type="User", owner="alice").error_code == ErrorCode.NONE
    set_acls(
        harness,
        acl(AclResource.USER, "User:carol", Operation.CREATE_TOKENS, principal="User:alice"),
    )
    assert create(alice, owner_type="User", owner="carol").error_code == ErrorCode.NONE
    refused = create(alice, owner_type="User", owner="bob")
    assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED


def test_tokens_are_shown_to_owners_renewers_and_who_may_describe_them(harness: Harness) -> None:
    alice, bob, carol = (authenticated(harness, each) for each in ("alice", "bob", "carol"))
    first, second = create(alice, "bob").token_id, create(alice).token_id

    def seen() -> list[str]:
        return sorted(each.token_id for each in describe(carol))

    assert {each.token_id for each in describe(alice)} == {first, second}
    assert [each.token_id for each in describe(bob)] == [first]
    assert seen() == []
    resource = AclResource.DELEGATION_TOKEN
    set_acls(harness, acl(resource, second, Operation.DESCRIBE, principal="User:carol"))
    assert seen() == [second]
    of_user = acl(AclResource.USER, "User:alice", Operation.DESCRIBE_TOKENS, principal="User:carol")
    set_acls(harness, of_user)
    assert seen() == sorted([first, second])
