"""Writes docs/tables.md, the columns of all tables, to standard output.

python -m kafkawire.reports.tables.documentation
"""

from __future__ import annotations

from kafkawire.capture.tables.documentation import markdown as messages_markdown
from kafkawire.capture.tables.documentation import section

from . import REPORT_TABLES


def markdown() -> str:
    """Return the whole page."""
    sections = [
        section(name, table.description, table.columns) for name, table in REPORT_TABLES.items()
    ]
    return messages_markdown() + "".join(sections)


if __name__ == "__main__":
    print(markdown(), end="")
