"""Runs the generator, for builds without an installed kafkawire.

python -m kafkawire_codegen --schemas SOURCE --package NAME --out DIR
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import generate, schemas_dir
from .schema import SchemaErrors


def main(arguments: list[str] | None = None) -> int:
    """Generate and report.

    Exit code 0: done, 1: errors in the schemas, or files differ with --check, 2: usage.
    """
    parser = argparse.ArgumentParser(prog="kafkawire_codegen", description=__doc__)
    parser.add_argument(
        "--schemas",
        type=Path,
        action="append",
        help="directory, jar or ZIP archive of *.json schemas; a later one overrides",
    )
    parser.add_argument("--package", required=True, help="import name of the generated package")
    parser.add_argument("--out", type=Path, required=True, help="folder to write it to")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; print the files that would change"
    )
    chosen = parser.parse_args(arguments)
    schemas = chosen.schemas or [schemas_dir()]
    for source in schemas:
        if not source.exists():
            parser.error(f"{source} is not a directory or an archive")
    try:
        generated = generate(schemas, chosen.out, chosen.package, check=chosen.check)
    except SchemaErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    if chosen.check and generated.changed:
        print(*generated.changed_files, sep="\n")
        print(f"{generated.changed} files would change in {generated.out}", file=sys.stderr)
        return 1
    print(
        f"{len(generated.modules)} messages in {generated.out}, {generated.changed} files changed"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
