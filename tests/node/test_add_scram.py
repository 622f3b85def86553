"""SCRAM credentials that a new cluster begins with, as of `kafka-storage.sh format --add-scram`."""

from __future__ import annotations

import pytest

from kafkawire.broker.releases import LATEST
from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
from kafkawire.node.quorum.add_scram import scram_credentials
from kafkawire.protocol import ErrorCode as E
from kafkawire.raft import Endpoint

from ..broker.harness import metadata
from ..broker.security.test_sasl import ScramClient, handshake, token
from .front_harness import BROKER, NodeClient, NodeHarness

MECHANISM = "SCRAM-SHA-256"
ALICE, BOB = (f"{MECHANISM}=[name={name},password={name}-secret]" for name in ("alice", "bob"))
CLIENTS = Endpoint("SASL_PLAINTEXT", "node", 9094)


def records(*values: str, release: str = LATEST) -> tuple[UserScramCredentialRecord, ...]:
    return scram_credentials(values, release, lambda: b"salt")


def harness_of(*values: str) -> NodeHarness:
    settings = {"sasl.enabled.mechanisms": MECHANISM}
    listeners = (BROKER, CLIENTS)
    return NodeHarness(settings, listeners=listeners, scram_credentials=records(*values))


def login(harness: NodeHarness, user: str) -> tuple[NodeClient, int]:
    """Return a client that has authenticated, or has failed with an error code."""
    client = harness.client(listener=CLIENTS.name)
    handshake(client, MECHANISM)
    peer = ScramClient(MECHANISM, user, f"{user}-secret")
    response = token(client, peer.first())
    if not response.error_code:
        response = token(client, peer.last(response.auth_bytes))
    return client, response.error_code


@pytest.mark.parametrize(
    ("value", "stored_key", "server_key"),
    [
        (
            "SCRAM-SHA-256=[name=a,salt=YWJj,saltedpassword=aGVsbG8=]",
            "aac6e8b82b627c2eeb33da208571f10d99a53b7ecd09a259a9c87f650ee3ed91",
            "358dc97252b3ee5afe611bb16b9b695466373eb609df331d68cd242e51ec8d02",
        ),
        (
            'SCRAM-SHA-512=[name="a",salt="YWJj",password="b=c",iterations=5000]',
            "b598bbe80d3f00246899423b8ec3064975f821fb8786e09684cc8f493f6cefa5"
            "a80a4108758053e088fbabcce0bdedb7254b91afb977264c4e580d7fdd1a133d",
            "6cf327a6036c781d686bd99c1a38bb2b39ddf27cc045103833d30229798f8c14"
            "1b238d1cc39f8104e7376e72dc5f1906c93c48a922046246c6ce6a4230aa3e5b",
        ),
    ],
)
def test_records_are_those_of_kafka(value: str, stored_key: str, server_key: str) -> None:
    """The keys are in the bootstrap checkpoint that Kafka 4.4 writes for the same value."""
    [record] = records(value)
    is_512 = "512" in value
    assert record == UserScramCredentialRecord(
        name="a",
        mechanism=2 if is_512 else 1,
        salt=b"abc",
        stored_key=bytes.fromhex(stored_key),
        server_key=bytes.fromhex(server_key),
        iterations=5000 if is_512 else 4096,
    )


def test_a_password_gets_a_salt() -> None:
    assert [(each.name, each.salt) for each in records(ALICE, BOB)] == [
        ("alice", b"salt"),
        ("bob", b"salt"),
    ]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("alice-secret", r"expected MECHANISM=\[name=NAME,password=PASSWORD\]"),
        ("SCRAM-SHA-256=name=alice,password=alice-secret", "expected MECHANISM"),
        ("SCRAM-SHA-1=[name=alice,password=alice-secret]", "unknown mechanism: .*SCRAM-SHA-512"),
        ("SCRAM-SHA-256=[password=alice-secret]", "expected a name"),
        ("SCRAM-SHA-256=[name=,password=alice-secret]", "expected a name"),
        ("SCRAM-SHA-256=[name=alice]", "expected one of password and saltedpassword"),
        ("SCRAM-SHA-256=[name=alice,password=]", "expected one of password and saltedpassword"),
        (
            "SCRAM-SHA-256=[name=alice,salt=YWJj,password=alice-secret,saltedpassword=YWJj]",
            "expected one of password and saltedpassword",
        ),
        ("SCRAM-SHA-256=[name=alice,saltedpassword=YWJj]", "saltedpassword needs its salt"),
        ("SCRAM-SHA-256=[name=alice,password=alice,secret]", "part 3: expected one of name"),
        ("SCRAM-SHA-256=[name=alice,password=x,password=alice-secret]", "part 3: .*, once"),
        ("SCRAM-SHA-256=[name=alice,color=alice-secret]", "part 2: expected one of name"),
        (
            "SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=100]",
            "iterations: expected 4096 to 16384",
        ),
        (
            "SCRAM-SHA-256=[name=alice,password=alice-secret,iterations=many]",
            "iterations: expected 4096 to 16384",
        ),
        ("SCRAM-SHA-256=[name=alice,password=alice-secret,salt=!]", "salt: expected base64"),
    ],
)
def test_values_that_are_not_valid(value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        records(value)
    assert "secret" not in str(caught.value)


def test_a_user_has_one_credential_of_a_mechanism() -> None:
    with pytest.raises(ValueError, match="user 'alice' twice with the same mechanism"):
        records(ALICE, ALICE)
    assert len(records(ALICE, ALICE.replace("256", "512"))) == 2


def test_metadata_of_older_releases_has_no_credentials() -> None:
    assert records(release="3.4") == ()
    assert len(records(ALICE, release="3.5")) == 1
    with pytest.raises(ValueError, match=r"release 3\.4 has no SCRAM credentials"):
        records(ALICE, release="3.4")


def test_a_new_cluster_has_them() -> None:
    client, error = login(harness_of(ALICE, BOB), "bob")
    assert error == E.NONE
    assert len(metadata(client).brokers) == 1


def test_a_cluster_keeps_those_that_it_began_with() -> None:
    harness = harness_of(ALICE)
    harness.scram_credentials = records(BOB)
    harness.restart()
    assert login(harness, "alice")[1] == E.NONE
    assert login(harness, "bob")[1] == E.SASL_AUTHENTICATION_FAILED


def test_logins_do_not_wait_for_the_registration_of_the_own_broker() -> None:
    """The session of a broker that was killed outlives it, and refuses its next registration."""
    harness = harness_of(ALICE)
    harness.clients = {}
    harness.launch()
    harness.wait(lambda: harness.front.machines.node.image.scram_credentials)
    assert not harness.front.broker.metadata.image.brokers, "the broker is registered"
    assert login(harness, "alice")[1] == E.NONE
