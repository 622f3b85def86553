"""Groups in the simulation of a whole cluster: nodes that serve clients over connections."""
