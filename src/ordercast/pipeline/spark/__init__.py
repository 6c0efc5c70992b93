"""What starts Spark and talks to it: Java, sessions, tasks, and what can go wrong with them.

Nothing in here knows what a trace says. `session` makes a session, `ship` sends our code to its
tasks, `tasks` numbers their work, `trouble` and `visible` say what failed in words.
"""
