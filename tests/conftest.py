"""How the tests run where a failure must mean a change: with the same examples every time."""

import os

from hypothesis import settings

# No deadline: the first example of a test may be the one that imports SciPy's optimisers, which takes a second.
settings.register_profile("any", deadline=None)
settings.register_profile("same", deadline=None, derandomize=True)
settings.load_profile("same" if os.environ.get("CI") else "any")
