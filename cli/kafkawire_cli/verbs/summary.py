"""`kafkawire summary`: what is in a capture at a glance."""

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
    """Say what is in captures, at a glance.

    \b
    kafkawire summary trace.pcap
    kafkawire summary rotated/*.pcap.gz --top 50
    tcpdump -i any -w - -c 100000 port 9092 | kafkawire summary - --format json

    latency, topics, clients and groups say more of each, `decode --table problems` each problem.
    """
    shown = limit(most, every, form)
    with reading("summary", given, port, broker) as captures:
        from ..render.summary_report import Summary

        found = Summary(captures)
        found.read()
    show(captures, form, lambda: found.sections(shown), lambda: found.json(given, shown))
