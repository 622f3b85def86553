"""The table of the verbs (subcommands), by the tasks under which the help lists them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple


class Task(StrEnum):
    """Headings of verbs in the help."""

    CAPTURES = "Captures"
    BOTH = "Captures, or a live cluster"
    CLUSTERS = "Clusters"
    MESSAGES = "Messages and schemas"
    OTHER = "Installation"


class Verb(NamedTuple):
    """A verb: its module, the function (or Typer app) in it, its one-line help, its task."""

    module: str
    attribute: str
    help: str
    task: Task


VERBS: Final = {
    "decode": Verb(
        "captures.decode",
        "decode",
        "Decode every Kafka message in captures, frames or hex text.",
        Task.CAPTURES,
    ),
    "summary": Verb(
        "captures.summary",
        "summary",
        "Summarise captures: requests, topics, clients, groups.",
        Task.CAPTURES,
    ),
    "diagnose": Verb(
        "captures.diagnose",
        "diagnose",
        "Find out what is wrong, and what to look at or change.",
        Task.CAPTURES,
    ),
    "latency": Verb(
        "captures.latency",
        "latency",
        "Show requests by API: counts, errors, latency.",
        Task.CAPTURES,
    ),
    "topics": Verb(
        "clusters.topics", "topics", "Show topics: records, bytes, codecs, clients.", Task.BOTH
    ),
    "clients": Verb(
        "captures.clients", "clients", "Show clients: software, address, requests.", Task.CAPTURES
    ),
    "groups": Verb(
        "clusters.groups",
        "groups",
        "Show consumer groups: members, rebalances and causes, lag.",
        Task.BOTH,
    ),
    "readiness": Verb(
        "captures.readiness",
        "readiness",
        "Find clients that are incompatible with a Kafka release.",
        Task.CAPTURES,
    ),
    "transactions": Verb(
        "clusters.transactions",
        "transactions",
        "Show transactions: partitions, aborts, hanging ones.",
        Task.BOTH,
    ),
    "sql": Verb("captures.sql", "sql", "Query captures in SQL.", Task.CAPTURES),
    "report": Verb(
        "captures.report",
        "report",
        "Write a page with charts: traffic, latency, errors, groups.",
        Task.CAPTURES,
    ),
    "top": Verb(
        "captures.top", "top", "Show live rates: requests, bytes, latency, errors.", Task.CAPTURES
    ),
    "encode": Verb("messages.encode", "encode", "Encode a message from JSON.", Task.MESSAGES),
    "explain": Verb(
        "messages.explain",
        "explain",
        "Explain a message body or a whole frame, byte by byte.",
        Task.MESSAGES,
    ),
    "log": Verb(
        "clusters.log",
        "log",
        "Read and verify the files of a broker's log directory.",
        Task.CLUSTERS,
    ),
    "serve": Verb(
        "clusters.serve",
        "serve",
        "Run a Kafka cluster in memory, or a node with files.",
        Task.CLUSTERS,
    ),
    "produce": Verb(
        "clusters.produce",
        "produce",
        "Send each line of the input, or the whole input, as a record.",
        Task.CLUSTERS,
    ),
    "consume": Verb(
        "clusters.consume", "consume", "Print the records of topics as they arrive.", Task.CLUSTERS
    ),
    "values": Verb("messages.values", "app", "Infer the schema of values.", Task.MESSAGES),
    "cluster": Verb(
        "clusters.cluster",
        "cluster",
        "Show a live cluster: brokers, quorum, unhealthy partitions.",
        Task.CLUSTERS,
    ),
    "conformance": Verb(
        "clusters.conformance",
        "conformance",
        "Check whether a broker behaves as Apache Kafka.",
        Task.CLUSTERS,
    ),
    "fuzz": Verb(
        "clusters.fuzz",
        "fuzz",
        "Send a broker valid and broken requests, and judge what it does.",
        Task.CLUSTERS,
    ),
    "configs": Verb(
        "clusters.configs",
        "configs",
        "Show and change configurations: topics, brokers, groups, client metrics.",
        Task.CLUSTERS,
    ),
    "quotas": Verb(
        "clusters.quotas",
        "quotas",
        "Show and change quotas: limits of users, client ids, addresses.",
        Task.CLUSTERS,
    ),
    "users": Verb(
        "clusters.users",
        "users",
        "Show, add and remove SCRAM credentials of users.",
        Task.CLUSTERS,
    ),
    "reassign": Verb(
        "clusters.reassign",
        "reassign",
        "Move replicas to other brokers: propose, execute, verify, cancel.",
        Task.CLUSTERS,
    ),
    "log-dirs": Verb(
        "clusters.log_dirs",
        "log_dirs",
        "Show log directories and replicas; move replicas between directories.",
        Task.CLUSTERS,
    ),
    "tokens": Verb(
        "clusters.tokens",
        "tokens",
        "Show, create, renew and expire delegation tokens.",
        Task.CLUSTERS,
    ),
    "features": Verb(
        "clusters.features",
        "features",
        "Show, upgrade and downgrade features of a cluster.",
        Task.CLUSTERS,
    ),
    "acls": Verb(
        "clusters.acls",
        "acls",
        "Show, add and remove ACLs: who may do what.",
        Task.CLUSTERS,
    ),
    "schema": Verb(
        "messages.schema", "app", "Lint, show, compare and merge message schemas.", Task.MESSAGES
    ),
    "spark": Verb(
        "captures.spark",
        "spark",
        "Decode captures of any size into Parquet tables with Spark.",
        Task.CAPTURES,
    ),
    "codegen": Verb(
        "messages.codegen",
        "codegen",
        "Generate codecs and more from message schemas.",
        Task.MESSAGES,
    ),
    "version": Verb(
        "version", "version", "Show versions and whether the codecs are compiled.", Task.OTHER
    ),
}
