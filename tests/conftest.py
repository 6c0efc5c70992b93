"""What holds for every test.

A failing property prints the line that replays it (`@reproduce_failure`), and no example fails for
being slow: tests never judge time.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("ordercast", print_blob=True, deadline=None)
settings.load_profile("ordercast")
