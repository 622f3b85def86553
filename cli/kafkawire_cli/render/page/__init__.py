"""The page of `kafkawire report`: one HTML file with charts, which needs no network."""
