"""The permissions that Kafka's authorizer checks: an operation on a type of resource."""

from __future__ import annotations

from enum import Enum

from .operations import AclResource, Operation


class Permission(Enum):
    """What an ACL allows or denies."""

    ALTER_CLUSTER = Operation.ALTER, AclResource.CLUSTER
    ALTER_CLUSTER_CONFIGS = Operation.ALTER_CONFIGS, AclResource.CLUSTER
    ALTER_TOPIC = Operation.ALTER, AclResource.TOPIC
    ALTER_TOPIC_CONFIGS = Operation.ALTER_CONFIGS, AclResource.TOPIC
    CLUSTER_ACTION = Operation.CLUSTER_ACTION, AclResource.CLUSTER
    ALTER_GROUP_CONFIGS = Operation.ALTER_CONFIGS, AclResource.GROUP
    CREATE_USER_TOKENS = Operation.CREATE_TOKENS, AclResource.USER
    CREATE_IN_CLUSTER = Operation.CREATE, AclResource.CLUSTER
    CREATE_TOPIC = Operation.CREATE, AclResource.TOPIC
    DELETE_GROUP = Operation.DELETE, AclResource.GROUP
    DELETE_TOPIC = Operation.DELETE, AclResource.TOPIC
    DESCRIBE_CLUSTER = Operation.DESCRIBE, AclResource.CLUSTER
    DESCRIBE_CLUSTER_CONFIGS = Operation.DESCRIBE_CONFIGS, AclResource.CLUSTER
    DESCRIBE_GROUP = Operation.DESCRIBE, AclResource.GROUP
    DESCRIBE_GROUP_CONFIGS = Operation.DESCRIBE_CONFIGS, AclResource.GROUP
    DESCRIBE_TOKEN = Operation.DESCRIBE, AclResource.DELEGATION_TOKEN
    DESCRIBE_USER_TOKENS = Operation.DESCRIBE_TOKENS, AclResource.USER
    DESCRIBE_TOPIC = Operation.DESCRIBE, AclResource.TOPIC
    DESCRIBE_TOPIC_CONFIGS = Operation.DESCRIBE_CONFIGS, AclResource.TOPIC
    DESCRIBE_TRANSACTION = Operation.DESCRIBE, AclResource.TRANSACTIONAL_ID
    IDEMPOTENT_WRITE = Operation.IDEMPOTENT_WRITE, AclResource.CLUSTER
    READ_GROUP = Operation.READ, AclResource.GROUP
    READ_TOPIC = Operation.READ, AclResource.TOPIC
    WRITE_TOPIC = Operation.WRITE, AclResource.TOPIC
    WRITE_TRANSACTION = Operation.WRITE, AclResource.TRANSACTIONAL_ID

    @property
    def operation(self) -> Operation:
        return self.value[0]

    @property
    def resource(self) -> AclResource:
        return self.value[1]
