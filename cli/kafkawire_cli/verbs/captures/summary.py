"""`kafkawire summary`: summarises captures."""

from __future__ import annotations

from ...input.options import DEFAULTS, Files, ReportOptions
from ...input.sources import reading
from ...render.report import print_capture_report


def summary(
    files: Files,
    options: ReportOptions = DEFAULTS,
) -> None:
    """Summarise captures: requests, topics, clients, groups.

    \b
    kafkawire summary trace.pcap
    kafkawire summary rotated/*.pcap.gz --top 50
    tcpdump -i any -w - -c 100000 port 9092 | kafkawire summary - --format json

    For details use latency, topics, clients, groups, and `decode --table problems`.
    """
    shown = options.limit()
    with reading(files, options) as captures:
        from ...render.summary_report import Summary

        report = Summary(captures)
        report.read()
    print_capture_report(
        captures, options.form, lambda: report.sections(shown), lambda: report.json(files, shown)
    )
