"""The network client: broker connections, metadata, coordinators, authentication."""
