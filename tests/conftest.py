"""How the tests run where a failure must mean a change: with the same examples every time."""

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("same")
