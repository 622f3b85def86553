"""Reads captures for verbs: growing files, interrupts, progress, replays, tables for queries."""
