"""Kafka's client side without sockets: connections, cluster metadata, producer and consumer.

Events and time in, effects out; no machine reads a clock, draws random numbers or holds a
callback.

    owner (producer, consumer) -- SendRequest --> network -- broker connection -- Write --> shell
    owner <-- ResponseReceived | NoResponse -- network <-- connection <-- BytesReceived -- shell
"""
