"""The sockets of clients: writes in pieces, readiness, memory that is kept between responses."""
