"""The sequencer as a daemon, and what administers a cluster from outside."""
