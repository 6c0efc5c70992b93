"""The vocabulary of every protocol: ids, views, events, effects, and the base class."""
