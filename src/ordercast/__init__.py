"""Ordered, reliable group messaging for Python processes."""

__version__ = "0.1.0"
