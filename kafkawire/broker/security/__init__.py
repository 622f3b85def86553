"""SASL on the broker's side: PLAIN and SCRAM, over SaslAuthenticate or as raw tokens."""
