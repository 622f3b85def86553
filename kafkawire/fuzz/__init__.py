"""Sends a broker requests that are valid, at the boundaries or broken, and judges what it does.

seed, number ─▶ Case (request, fault) ─▶ bytes ─▶ broker ─▶ Observation ─▶ Verdict ─▶ shrunk Case
"""
