"""The live driver: nodes and groups over asyncio and TCP, around the pure machines."""
