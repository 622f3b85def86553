"""The broker machine, without sockets and in virtual time."""
