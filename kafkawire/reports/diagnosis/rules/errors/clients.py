"""Rules about errors that a client causes, or that its state leads to."""

from __future__ import annotations

from typing import Final

from kafkawire.messages.api_key import ApiKey
from kafkawire.protocol.error_code import ErrorCode

from ...error_rule import (
    By,
    ErrorRule,
    Explanation,
    critical_threshold,
    errors_threshold,
    seconds_threshold,
)
from ...finding import Confidence, Severity

CLIENT_ERRORS: Final = (
    ErrorRule(
        name="stale-metadata",
        description=(
            "A client keeps sending requests to a broker that is not the leader of the "
            "partition. A few errors after an election are normal; more mean that new metadata "
            "does not reach the client or does not help."
        ),
        by=By.TOPIC,
        error_codes=frozenset(
            {
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                ErrorCode.LEADER_NOT_AVAILABLE,
                ErrorCode.FENCED_LEADER_EPOCH,
                ErrorCode.UNKNOWN_LEADER_EPOCH,
            }
        ),
        thresholds=(
            errors_threshold(10, "a client sees one error per partition and election"),
            seconds_threshold(1, "an election takes less than a second"),
            critical_threshold(
                200, "at the usual back-off of 100 ms, twenty seconds without progress"
            ),
        ),
        cause=(
            "The client's metadata is older than the last election, or the partition has no leader."
        ),
        advice=(
            "Look for leader elections and offline partitions; check that advertised.listeners "
            "lead to the same brokers from here, and that the client's metadata.max.age.ms is "
            "not huge."
        ),
        of_topics={
            "__cluster_metadata": Explanation(
                "The quorum of controllers has no leader, or elects one: until then, its nodes "
                "and the brokers ask one controller after the other.",
                "Look at the quorum (kafka-metadata-quorum.sh describe --status): most of its "
                "voters must run and reach each other. Elections again and again come from "
                "pauses, slow disks or networks; see controller.quorum.fetch.timeout.ms.",
            )
        },
        confidence=Confidence.MEDIUM,
    ),
    ErrorRule(
        name="unknown-topics",
        description=(
            "A client keeps requesting a topic that does not exist. A few errors while "
            "a topic is being created are normal."
        ),
        by=By.TOPIC,
        error_codes=frozenset(
            {
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.UNKNOWN_TOPIC_ID,
                ErrorCode.INCONSISTENT_TOPIC_ID,
            }
        ),
        thresholds=(
            errors_threshold(5, "a topic that is created automatically causes one to three"),
            seconds_threshold(5, "creating a topic takes less"),
        ),
        cause="The topic was deleted, never created, or its name is misspelt.",
        advice=(
            "Create the topic or remove it from the client's configuration; "
            "auto.create.topics.enable creates topics only where the broker and the client "
            "allow it."
        ),
    ),
    ErrorRule(
        name="offset-resets",
        description=(
            "A consumer fetches from an offset that the log does not have, and resets its "
            "position: it skips records or reads them again."
        ),
        by=By.TOPIC,
        error_codes=frozenset({ErrorCode.OFFSET_OUT_OF_RANGE}),
        thresholds=(
            errors_threshold(1, "each one moves the position of a consumer"),
            critical_threshold(
                50, "a consumer that resets so often does not keep up with retention"
            ),
        ),
        cause=(
            "Records were deleted by retention before they were read, or the log was truncated "
            "or the topic created again."
        ),
        advice=(
            "Compare the consumer's lag with retention.ms and retention.bytes of the topic; "
            "auto.offset.reset decides where it goes on."
        ),
        confidence=Confidence.HIGH,
    ),
    ErrorRule(
        name="refused-changes",
        description=(
            "A broker or controller refuses to create, change or delete a topic, a group, a user "
            "or a configuration: a policy, a quota, its state or the number of brokers does not "
            "allow it, or a value is not valid."
        ),
        by=By.CLIENT,
        error_codes=frozenset(
            {
                ErrorCode.POLICY_VIOLATION,
                ErrorCode.INVALID_CONFIG,
                ErrorCode.INVALID_PARTITIONS,
                ErrorCode.INVALID_REPLICATION_FACTOR,
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                ErrorCode.NON_EMPTY_GROUP,
                ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC,
                ErrorCode.TOPIC_DELETION_DISABLED,
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                ErrorCode.UNACCEPTABLE_CREDENTIAL,
                ErrorCode.FEATURE_UPDATE_FAILED,
            }
        ),
        thresholds=(errors_threshold(2, "a single one may be somebody's try"),),
        cause=(
            "INVALID_REPLICATION_FACTOR: fewer brokers than replicas are registered. "
            "POLICY_VIOLATION: create.topic.policy.class.name or alter.config.policy.class.name. "
            "THROTTLING_QUOTA_EXCEEDED: controller_mutation_rate of the user or client. "
            "NON_EMPTY_GROUP, GROUP_SUBSCRIBED_TO_TOPIC: the group has members."
        ),
        advice=(
            "Read the error message in the response (kafkawire decode); look for brokers that are "
            "missing, and compare default.replication.factor with their number."
        ),
        reference="KIP-108, KIP-599",
    ),
    ErrorRule(
        name="authentication-failures",
        description="A client fails to authenticate.",
        by=By.BROKER,
        error_codes=frozenset(
            {
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                ErrorCode.UNSUPPORTED_SASL_MECHANISM,
                ErrorCode.ILLEGAL_SASL_STATE,
            }
        ),
        thresholds=(
            errors_threshold(1, "a client that is configured correctly never fails"),
            critical_threshold(5, "the client never authenticates"),
        ),
        cause="User, password, token or mechanism do not match those of the broker.",
        advice=(
            "Check sasl.mechanism and sasl.jaas.config of the client, and the credentials and "
            "sasl.enabled.mechanisms of the broker."
        ),
    ),
    ErrorRule(
        name="refused-delegation-tokens",
        description=(
            "A broker refuses to create, renew, end or describe a delegation token, or says that "
            "it has expired."
        ),
        by=By.CLIENT,
        error_codes=frozenset(
            {
                ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED,
                ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
                ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH,
                ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
                ErrorCode.DELEGATION_TOKEN_EXPIRED,
                ErrorCode.INVALID_PRINCIPAL_TYPE,
            }
        ),
        thresholds=(
            errors_threshold(1, "tokens are renewed before they expire"),
            critical_threshold(20, "the client goes on with a token that is not valid"),
        ),
        cause=(
            "DELEGATION_TOKEN_EXPIRED, DELEGATION_TOKEN_NOT_FOUND: the token was not renewed in "
            "time. DELEGATION_TOKEN_AUTH_DISABLED: the brokers have no "
            "delegation.token.secret.key. DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: the connection is "
            "not authenticated, or by a token."
        ),
        advice=(
            "Compare how often tokens are renewed with delegation.token.expiry.time.ms and "
            "delegation.token.max.lifetime.ms of the broker."
        ),
        reference="KIP-48",
    ),
    ErrorRule(
        name="invalid-requests",
        description=(
            "A broker says that a request of a client is not valid: the client, or an option of "
            "it, is wrong, and every such request fails."
        ),
        by=By.CLIENT,
        error_codes=frozenset(
            {
                ErrorCode.INVALID_REQUEST,
                ErrorCode.INVALID_REQUIRED_ACKS,
                ErrorCode.INVALID_FETCH_SIZE,
                ErrorCode.OFFSET_METADATA_TOO_LARGE,
                ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
                ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
                ErrorCode.TELEMETRY_TOO_LARGE,
            }
        ),
        thresholds=(
            errors_threshold(3, "a single one may be somebody's try"),
            critical_threshold(50, "the client goes on without success"),
        ),
        cause=(
            "INVALID_REQUIRED_ACKS: acks is not 0, 1 or all. OFFSET_METADATA_TOO_LARGE: the text "
            "committed with an offset is longer than offset.metadata.max.bytes of the broker. "
            "UNSUPPORTED_FOR_MESSAGE_FORMAT: the log has records of an old format."
        ),
        advice=(
            "Read the error message in the response (kafkawire decode), and change the option of "
            "the client."
        ),
        confidence=Confidence.HIGH,
    ),
    ErrorRule(
        name="authorization-failures",
        description="A client lacks the permission for what it tries to do.",
        by=By.TOPIC,
        error_codes=frozenset(
            {
                ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                ErrorCode.GROUP_AUTHORIZATION_FAILED,
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
            }
        ),
        thresholds=(
            errors_threshold(1, "permissions rarely change"),
            critical_threshold(20, "a client that goes on does not handle the error"),
        ),
        cause="The principal of the client has no ACL for this operation.",
        advice="List the ACLs of the principal with kafka-acls.sh; add those that are missing.",
    ),
    ErrorRule(
        name="api-versions-fallback",
        description=(
            "A client's first ApiVersions request on each connection is newer than the broker, "
            "which rejects it; the client then sends an older one. This is how it should be "
            "(KIP-511), and matters only where connections are opened all the time."
        ),
        by=By.BROKER,
        severity=Severity.NOTICE,
        apis=frozenset({ApiKey.API_VERSIONS}),
        error_codes=frozenset({ErrorCode.UNSUPPORTED_VERSION}),
        thresholds=(errors_threshold(50, "a round trip per connection"),),
        cause="The client is newer than the broker.",
        advice="Upgrade the broker; keep connections open.",
        reference="KIP-511",
    ),
    ErrorRule(
        name="unsupported-versions",
        description="A broker rejects the version of a request that is not ApiVersions.",
        by=By.BROKER,
        apis=frozenset(ApiKey) - {ApiKey.API_VERSIONS},
        error_codes=frozenset({ErrorCode.UNSUPPORTED_VERSION}),
        thresholds=(errors_threshold(1, "clients choose versions that the broker has"),),
        cause=(
            "The client does not negotiate versions, a proxy sends the ApiVersions of another "
            "broker, or the group protocol of the client is off in the cluster (its feature "
            "group.version, share.version or streams.version is 0, or "
            "group.coordinator.rebalance.protocols lacks it)."
        ),
        advice=(
            "Upgrade the client or the broker, or switch the feature on (kafka-features.sh); set "
            "broker.version.fallback (librdkafka) only for brokers before 0.10."
        ),
        reference="KIP-511, KIP-848",
    ),
)
