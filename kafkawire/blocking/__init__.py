"""Producer, consumer and admin client for threads and scripts: each call waits for its result.

These are the clients of `kafkawire.net`, each with an event loop in a thread of its own: the
same arguments, results and errors. They may be used by several threads.

    with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        metadata = producer.deliver("orders", b"value")
"""

from .admin import Admin
from .consumer import Consumer, RebalanceListener
from .producer import Producer
from .share_consumer import ShareConsumer

__all__ = ["Admin", "Consumer", "Producer", "RebalanceListener", "ShareConsumer"]
