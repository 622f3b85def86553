"""The bytes fields of the key-value protocol that hold messages.

It lies beside the generated modules, as `keyvalue/messages/payloads.py`.
"""

from kafkawire import Embedded

DOCUMENT = Embedded({"document": "Document"}, by="content_type")
PAYLOADS = {"PutRequest.entries.value": DOCUMENT, "GetResponse.value": DOCUMENT}
