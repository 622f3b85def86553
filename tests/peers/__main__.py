"""`make peers`: runs the suites at both brokers, and compares.

python -m tests.peers               all suites
python -m tests.peers kgo           these suites
python -m tests.peers --write       puts the tables into docs/internals/peers.md; with names of
                                    suites, the rows of the others stay

Exit code 1: Kafka passes a test that our broker does not. Tests that fail are run once more,
alone: suites wait for moments that a busy machine misses.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from .brokers import BROKERS
from .comparison import KAFKA, OURS, PAGE, compared, differences, drawn, unlike, written
from .outcomes import FAILED, Outcomes
from .suites import SUITES, Suite, Sweep


def main() -> int:
    """Run what the command line names."""
    names = [suite.name for suite in SUITES]
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("suites", metavar="SUITE", nargs="*", help=f"of {', '.join(names)}")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    arguments = parser.parse_args()
    for name in arguments.suites:
        if name not in names:
            parser.error(f"{name}: one of {', '.join(names)} expected")
    chosen = [suite for suite in SUITES if suite.name in (arguments.suites or names)]
    results = {suite.name: both(suite) for suite in chosen}
    print(drawn(results), end="")
    if arguments.write:
        PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
    return int(any(row.is_ours for row in differences(results)))


def both(suite: Suite | Sweep) -> dict[str, Outcomes]:
    """Run a suite at both brokers, one after the other."""
    outcomes: dict[str, Outcomes] = {}
    results: dict[str, dict[str, str]] = {}
    with TemporaryDirectory() as name:
        folder = Path(name)
        suite.fetch(folder)
        for broker, running in BROKERS.items():
            print(f"{suite.name} at {broker}", file=sys.stderr)
            of_broker = folder / broker.replace(" ", "-")
            of_broker.mkdir()
            with running(of_broker) as bootstrap:
                if isinstance(suite, Sweep):
                    results[broker] = suite.run(of_broker, bootstrap)
                else:
                    outcomes[broker] = with_second_try(suite, folder, bootstrap)
    if results:
        print("".join(unlike(results[KAFKA], results[OURS])), file=sys.stderr)
        return compared(results[KAFKA], results[OURS])
    return outcomes


def with_second_try(suite: Suite, folder: Path, bootstrap: str) -> Outcomes:
    """Run a suite, and once more what failed."""
    outcomes = suite.run(folder, bootstrap, ())
    failed = [test for test, outcome in outcomes.items() if outcome == FAILED]
    return outcomes | (suite.run(folder, bootstrap, failed) if failed else {})


if __name__ == "__main__":
    sys.exit(main())
