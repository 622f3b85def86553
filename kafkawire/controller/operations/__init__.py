"""The operations of the controller: a module per API, from request to records and response."""
