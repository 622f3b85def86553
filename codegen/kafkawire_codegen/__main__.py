"""Runs the generator, for builds without an installed kafkawire.

python -m kafkawire_codegen --schemas DIR --package NAME --out DIR
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import generate, schemas_dir
from .schema import SchemaErrors


def main(arguments: list[str] | None = None) -> int:
    """Generate and report; exit code 0: done, 1: errors in the schemas, 2: usage."""
    parser = argparse.ArgumentParser(prog="kafkawire_codegen", description=__doc__)
    parser.add_argument(
        "--schemas", type=Path, default=schemas_dir(), help="directory of *.json schemas"
    )
    parser.add_argument("--package", required=True, help="import name of the generated package")
    parser.add_argument("--out", type=Path, required=True, help="folder to write it to")
    chosen = parser.parse_args(arguments)
    if not chosen.schemas.is_dir():
        parser.error(f"{chosen.schemas} is not a directory")
    try:
        made = generate(chosen.schemas, chosen.out, chosen.package)
    except SchemaErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        parser.error(f"{error.filename}: {error.strerror}")
    print(f"{len(made.modules)} messages in {made.out}, {made.changed} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
