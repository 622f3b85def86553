"""Checks that a broker behaves as Apache Kafka: requests of every version, and what follows.

Behaviour (API, versions, what must hold) ─▶ Session ─▶ Connection ─▶ broker
└──────────── Result (passed, failed with the exchanges, not offered) ◀──┘
"""
