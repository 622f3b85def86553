"""Captures in Python and Jupyter: tables, SQL, messages as objects, reports.

Nothing is read before it is used; pandas, polars and DuckDB are imported only for what
needs them. HTML is escaped, and its size is bounded.

    capture = kafkawire.open_capture("trace*.pcap")
    capture.exchanges.to_pandas()
    capture.sql("SELECT api_name, count(*) FROM exchanges GROUP BY 1").to_polars()
    for message in capture.messages(api="Fetch"): ...
    capture.summary()
    capture.diagnose()
"""

from ..extras import requires

with requires("pyarrow", "tables"):
    from .capture import Capture, open_capture
    from .findings import Findings
    from .messages import CapturedMessage, Messages
    from .rows import Rows, Table
    from .summary import Group, Summary

__all__ = [
    "Capture",
    "CapturedMessage",
    "Findings",
    "Group",
    "Messages",
    "Rows",
    "Summary",
    "Table",
    "open_capture",
]
