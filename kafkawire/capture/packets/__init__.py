"""Packets: link, network and transport headers, IP fragments, TCP segments as columns."""
