"""ACLs, quotas, users and delegation tokens: the requests, and the calls of an admin client."""
