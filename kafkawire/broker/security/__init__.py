"""The server's side of SASL: PLAIN and SCRAM, over SaslAuthenticate or as raw tokens."""
