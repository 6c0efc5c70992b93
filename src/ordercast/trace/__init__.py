"""What happened, written down: schema, recorder, readers, and the slow, obvious oracles."""
