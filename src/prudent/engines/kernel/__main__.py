"""Compile the kernel where prudent was installed without a compiler, or where its source has changed since."""

import sys

from prudent.engines.kernel import build, compiled

if not compiled():
    try:
        build.compile_kernel()
    except OSError as error:
        sys.exit(f"The counting kernel was not compiled ({error}): NumPy counts instead, slower.")
