"""The requests that the controller decides on, one module per API: brokers forward them to it."""
