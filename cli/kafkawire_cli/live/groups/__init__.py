"""Groups of a live cluster (`kafkawire groups`): what they are, and what changes them."""
