"""The script for spark-submit: runs the job of `kafkawire spark` on clusters.

script=$(python -c 'import kafkawire.spark.submit as it; print(it.__file__)')
spark-submit --master yarn "$script" hdfs:///captures --output hdfs:///tables
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kafkawire.display import printable

INTERRUPTED: Final = 130
"""Exit code after SIGINT, as of shells."""


def arguments() -> argparse.ArgumentParser:
    """Return the argument parser."""
    parser = argparse.ArgumentParser("kafkawire-spark", description="Captures into Parquet tables.")
    parser.add_argument("inputs", nargs="+", metavar="INPUT")
    parser.add_argument("--output", "-o", required=True, help="directory or URI")
    parser.add_argument("--table", action="append", default=[], help="default: exchanges")
    parser.add_argument(
        "--option", action="append", default=[], metavar="NAME=VALUE", help="as in docs/spark.md"
    )
    parser.add_argument(
        "--strict", action="store_true", help="write the table problems; exit 1 if it has rows"
    )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job; returns the exit status."""
    from kafkawire.spark import session
    from kafkawire.spark.describing import exit_code
    from kafkawire.spark.errors import SparkError, one_line_errors
    from kafkawire.spark.interrupts import interruptible
    from kafkawire.spark.job import check_request, known_tables, run
    from kafkawire.spark.options import parse

    arguments_given = arguments().parse_args(argv)
    options = dict(one.partition("=")[::2] for one in arguments_given.option)
    for one in arguments_given.option:
        if "=" not in one:
            print(f"kafkawire-spark: invalid option {one!r}: expected NAME=VALUE", file=sys.stderr)
            return 2
    try:
        parsed = parse(options)
        tables = known_tables(arguments_given.table, parsed, strict=arguments_given.strict)
    except KeyError as error:
        print(printable(f"kafkawire-spark: unknown table {error}"), file=sys.stderr)
        return 2
    except SparkError as error:
        print(printable(f"kafkawire-spark: {error}"), file=sys.stderr)
        return 2
    try:
        check_request(arguments_given.inputs, arguments_given.output, tables, parsed)
        with one_line_errors():
            started, input_paths, output = session(), arguments_given.inputs, arguments_given.output
            result = interruptible(
                started, lambda: run(started, input_paths, output, tables, parsed, _log)
            )
    except (SparkError, OSError, ValueError) as error:
        print(printable(f"kafkawire-spark: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:  # Spark has cancelled its jobs
        print("kafkawire-spark: interrupted", file=sys.stderr)
        return INTERRUPTED
    return exit_code(result, strict=arguments_given.strict)


def _log(text: str) -> None:
    print(printable(text), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
