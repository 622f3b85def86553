"""ACL operations and the resources they are about; authorized operations as bit fields (KIP-430).

Without an authorizer, a resource has all operations of its resource type.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final


class Operation(IntEnum):
    """An ACL operation; its value is its bit."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclResource(IntEnum):
    """The type of the resource of an ACL."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


def bits(*operations: Operation) -> int:
    """Return the bit field of operations."""
    return sum(1 << operation for operation in operations)


O = Operation  # noqa: E741
TOPIC_OPERATIONS: Final = bits(
    O.READ, O.WRITE, O.CREATE, O.DELETE, O.ALTER, O.DESCRIBE, O.DESCRIBE_CONFIGS, O.ALTER_CONFIGS
)
GROUP_OPERATIONS: Final = bits(O.READ, O.DELETE, O.DESCRIBE, O.DESCRIBE_CONFIGS, O.ALTER_CONFIGS)
CLUSTER_OPERATIONS: Final = bits(
    O.CREATE,
    O.ALTER,
    O.DESCRIBE,
    O.CLUSTER_ACTION,
    O.DESCRIBE_CONFIGS,
    O.ALTER_CONFIGS,
    O.IDEMPOTENT_WRITE,
)
