"""How groups change: one way for a join, a leave, a move, a crash."""
