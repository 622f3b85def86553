"""`python -m benchmarks [SUITE ...]`: runs suites, prints tables, writes the figures as JSON."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from . import (
    brokers,
    failover,
    jobs,
    nodes,
    packets,
    pipeline,
    records,
    report,
    reports,
    startup,
)
from .clients import columns as client_columns
from .clients import records as clients
from .clients import transactions
from .codec import copies, large_fields, memory
from .codec import varied as varied_codec
from .codegen import targets, typescript, wireshark
from .groups import members, settling
from .measure import Figure
from .tables import columns

SUITES: Final[dict[str, Callable[[int], list[Figure]]]] = {
    "brokers": brokers.run,
    "client-columns": client_columns.run,
    "clients": clients.run,
    "codec": copies.run,
    "codegen-wireshark": wireshark.run,
    "codegen-targets": targets.run,
    "failover": failover.run,
    "groups": settling.run,
    "group-members": members.run,
    "jobs": jobs.run,
    "large-fields": large_fields.run,
    "memory": memory.run,
    "nodes": nodes.run,
    "packets": packets.run,
    "pipeline": pipeline.run,
    "records": records.run,
    "reports": reports.run,
    "startup": startup.run,
    "tables": columns.run,
    "transactions": transactions.run,
    "typescript": typescript.run,
    "varied-codec": varied_codec.run,
}


def main() -> None:
    """Run the given suites, or all."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=f"of {', '.join(SUITES)}")
    parser.add_argument("--rounds", type=int, default=5, help="how often contenders take turns")
    chosen = parser.parse_args()
    if unknown := set(chosen.suites) - set(SUITES):
        parser.error(f"unknown suite {', '.join(sorted(unknown))}")
    if chosen.rounds < 1:
        parser.error("without a round there is nothing to print")
    figures: list[Figure] = []
    for name in chosen.suites or SUITES:
        figures += SUITES[name](chosen.rounds)
    print(f"\n{report.tables(figures)}")
    print(f"\n{report.save(figures)}")


if __name__ == "__main__":
    main()
