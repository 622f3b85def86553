"""Messages of SASL mechanisms that the client and the broker share."""
