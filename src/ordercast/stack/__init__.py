"""Membership, links and ordering, put together: one machine per process."""
