"""Benchmarks: kafkawire and other implementations, measured in one run.

Contenders do the same work on the same bytes, which is checked before timing; they take turns,
so that a slow moment of the machine affects all; a figure has its range.

    python -m benchmarks [SUITE ...]          tables, and JSON in benchmarks/results
    python -m benchmarks.compare BASE [HEAD]  two commits as ratios
    python -m benchmarks.profile CASE         where a case spends its time
"""
