"""`kafkawire summary`: summarises captures."""

from __future__ import annotations

from ..input.sources import (
    AllOption,
    BrokerOption,
    Files,
    Form,
    FormOption,
    PortOption,
    TopOption,
    limit,
    reading,
    show,
)


def summary(
    given: Files,
    most: TopOption = None,
    every: AllOption = False,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Summarise captures: requests, topics, clients, groups.

    \b
    kafkawire summary trace.pcap
    kafkawire summary rotated/*.pcap.gz --top 50
    tcpdump -i any -w - -c 100000 port 9092 | kafkawire summary - --format json

    For details use latency, topics, clients, groups, and `decode --table problems`.
    """
    shown = limit(most, every, form)
    with reading("summary", given, port, broker) as captures:
        from ..render.summary_report import Summary

        report = Summary(captures)
        report.read()
    show(captures, form, lambda: report.sections(shown), lambda: report.json(given, shown))
