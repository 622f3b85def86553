"""How fast, how small, how soon: kafkawire beside its peers, measured in one run.

Law: contenders do the same work on the same bytes, which is checked before anything is timed; they
take turns, so that a slow moment of the machine meets them all; a figure comes with its spread.

    python -m benchmarks [SUITE ...]          tables, and JSON in benchmarks/results
    python -m benchmarks.compare BASE [HEAD]  two commits as ratios
    python -m benchmarks.profile CASE         where a case spends its time
"""
