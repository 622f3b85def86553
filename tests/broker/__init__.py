"""The broker without sockets, in virtual time."""
