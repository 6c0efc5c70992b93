"""Carriers of frames between processes."""
