"""Links that make a bad network good enough."""
