"""The command line, for people."""
