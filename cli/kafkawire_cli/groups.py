"""`kafkawire groups`: the life of each consumer group, as a timeline."""

from __future__ import annotations

from typing import Annotated

import typer

from .captures import BrokerOption, Files, Form, FormOption, PortOption, reading, show


def groups(
    given: Files,
    wanted: Annotated[
        list[str] | None, typer.Option("--group", help="Only this group; may be repeated.")
    ] = None,
    form: FormOption = Form.TABLE,
    port: PortOption = None,
    broker: BrokerOption = None,
) -> None:
    """Tell the lives of groups: members, rebalances, lag.

    \b
    kafkawire groups trace*.pcap
    kafkawire groups trace.pcap --group orders --format json | jq '.groups[].rebalances'

    Lag is that of a commit: how far behind the end of its partitions, as Fetch and ListOffsets told
    it before; nothing where they did not.
    """
    with reading("groups", given, port, broker) as captures:
        from .group_report import told
        from .tallies.clients import Clients
        from .tallies.groups import Groups
        from .tallies.watermarks import Watermarks

        clients, watermarks = Clients(), Watermarks(captures)
        tally = Groups(captures, clients, watermarks)
        captures.read(clients, watermarks, tally)
    found = [life for life in tally.all if not wanted or life.group_id in wanted]
    sections = [section for life in found for section in told(life)]
    show(captures, form, sections, {"groups": [life.json_with_timeline() for life in found]})
