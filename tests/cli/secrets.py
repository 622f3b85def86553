"""Messages with secrets in all places that can carry them, and the forms in which they show."""

from __future__ import annotations

import random
import string
from base64 import b64encode
from typing import Any, Final, NamedTuple

import kafkawire
from kafkawire.messages.config_record import ConfigRecord
from kafkawire.messages.user_scram_credential_record import UserScramCredentialRecord
from kafkawire.protocol.log_records import encode_log_message
from kafkawire.records import BatchBuilder, Record
from tests.capture.written import message

SECRET_NAMES: Final = (
    "ssl.keystore.password",
    "ssl.keystore.key",
    "sasl.jaas.config",
    "listener.name.external.ssl.key.password",
    "listener.name.internal.scram-sha-256.sasl.jaas.config",
    "delegation.token.secret.key",
    "sasl.oauthbearer.client.credentials.client.secret",
    "rsm.config.storage.access",
)


class Hidden(NamedTuple):
    """A message that carries a secret. direction: request or response; api: its name."""

    api: str
    direction: str
    version: int
    body: dict[str, Any]


def new_secret(rng: random.Random) -> str:
    """Make a secret that nothing else contains."""
    return "".join(rng.choices(string.ascii_letters + string.digits, k=24))


def forms(secret: str) -> list[str]:
    """List the texts by which a secret would show: as it is, in hex, in base64 at each alignment
    (without the characters that depend on what is beside it).
    """
    data = secret.encode()
    based = [b64encode(bytes(shift) + data).decode()[8:-8] for shift in (0, 1, 2)]
    return [secret, data.hex(), data.hex(" "), *based]


def base64(text: str | bytes) -> str:
    return b64encode(text.encode() if isinstance(text, str) else text).decode()


def batch(*values: bytes) -> str:
    """Write a batch of records without keys, in base64."""
    builder = BatchBuilder()
    builder.extend(Record(at, 0, None, value) for at, value in enumerate(values))
    return base64(builder.build())


def metadata_records(secret: str) -> list[bytes]:
    """Write records of the metadata log with a secret in them."""
    config = ConfigRecord(
        resource_type=4, resource_name="1", name="ssl.keystore.password", value=secret
    )
    scram = UserScramCredentialRecord(
        name="alice",
        mechanism=1,
        salt=secret.encode(),
        stored_key=secret.encode(),
        server_key=secret.encode(),
        iterations=4096,
    )
    return [encode_log_message(config, 0), encode_log_message(scram, 0)]


def hidden_messages(secret: str, rng: random.Random) -> list[Hidden]:
    """Make every kind of message that can carry a secret, with it inside."""
    name = rng.choice(SECRET_NAMES)
    config = {"name": name, "value": secret}
    plain = {"name": "retention.ms", "value": "1000"}
    configs = [plain, config] if rng.random() < 0.5 else [config, plain]
    resource = {"resourceType": 4, "resourceName": "1", "configs": configs}
    described: dict[str, Any] = {"name": name, "value": secret, "isSensitive": True}
    described["synonyms"] = [{"name": name, "value": secret, "source": 1}]
    token = base64(f"\0alice\0{secret}")
    topic = {"name": "t", "numPartitions": 1, "replicationFactor": 1, "configs": configs}
    altered = message("AlterConfigsRequest", 2, resources=[resource], validateOnly=False)
    inner = kafkawire.encode_frame(altered, 2, 7, client_id="inner")[4:]
    created = {"name": "t", "numPartitions": 1, "replicationFactor": 1}
    created["configs"] = [
        {"name": name, "value": secret, "isSensitive": True, "configSource": 1, "readOnly": False}
    ]
    partition = {"partitionIndex": 0, "records": batch(*metadata_records(secret))}
    snapshot = {"index": 0, "unalignedRecords": batch(*metadata_records(secret))}
    incremental = [one | {"configOperation": 0} for one in configs]
    tag = [{"tag": 99, "data": base64(secret)}]
    return [
        Hidden("SaslAuthenticate", "request", 0, {"authBytes": token}),
        Hidden("SaslAuthenticate", "request", 2, {"authBytes": token, "_unknownTaggedFields": tag}),
        Hidden("SaslAuthenticate", "response", 1, {"authBytes": token}),
        Hidden("AlterConfigs", "request", 0, {"resources": [resource]}),
        Hidden("AlterConfigs", "request", 2, {"resources": [resource]}),
        Hidden(
            "IncrementalAlterConfigs", "request", 1,
            {"resources": [resource | {"configs": incremental}]},
        ),
        Hidden("CreateTopics", "request", 7, {"topics": [topic]}),
        Hidden("CreateTopics", "response", 7, {"topics": [created]}),
        Hidden(
            "DescribeConfigs", "response", 4,
            {"results": [{"resourceType": 4, "resourceName": "1", "configs": [described]}]},
        ),
        Hidden("CreateDelegationToken", "response", 3, {"tokenId": "x", "hmac": base64(secret)}),
        Hidden("RenewDelegationToken", "request", 2, {"hmac": base64(secret)}),
        Hidden("ExpireDelegationToken", "request", 2, {"hmac": base64(secret)}),
        Hidden("DescribeDelegationToken", "response", 3, {"tokens": [{"hmac": base64(secret)}]}),
        Hidden(
            "AlterUserScramCredentials", "request", 0,
            {"upsertions": [
                {"name": "a", "salt": base64(secret), "saltedPassword": base64(secret)}
            ]},
        ),
        Hidden("Envelope", "request", 0, {"requestData": base64(inner)}),
        Hidden("Envelope", "response", 0, {"responseData": base64(inner)}),
        Hidden(
            "Fetch", "response", 12,
            {"responses": [{"topic": "__cluster_metadata", "partitions": [partition]}]},
        ),
        Hidden(
            "Fetch", "response", 16,
            {"responses": [
                {"topicId": "AAAAAAAAAAAAAAAAAAAAAQ", "partitions": [partition]}
            ]},
        ),
        Hidden(
            "FetchSnapshot", "response", 0,
            {"topics": [{"name": "__cluster_metadata", "partitions": [snapshot]}]},
        ),
    ]  # fmt: skip
