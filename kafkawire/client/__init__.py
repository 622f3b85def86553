"""The client's side of Kafka without a socket: connections, the cluster, producer and consumer.

Law: events and time in, effects out; no machine reads a clock, draws lots or holds a callback.

    owner (producer, consumer) -- Ask --> network -- line -- connection -- Write --> shell
    owner <-- Answered | Unanswered -- network <-- connection <-- BytesReceived -- shell
"""
