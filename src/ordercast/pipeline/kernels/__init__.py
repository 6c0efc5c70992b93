"""The checks themselves: pure functions over one run's integer arrays, with no Spark in them.

run.py         columns of one run -> dense integers, one log per process
causality.py   happened-before, as one stamp per message
membership.py  who is in which group when, and who owes which message
integrity.py   wellformed, no_duplication, no_creation, membership
liveness.py    validity, agreement
precedence.py  fifo and causal: what must come before what
total.py       total.group, .global, .pairwise
gapless.py     total.gapless
views.py       views, vsync, sending_view
judge.py       all of them: the 32 verdicts
"""
