"""Why a node cannot form or join a group: probes, checks, and findings as plain data."""
