"""Compile the counting kernel when prudent is installed; without a compiler, its twin in NumPy takes its place."""

import runpy
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/prudent/engines/kernel")


class CompileKernel(BuildHookInterface[Any]):
    """The hook that hatchling calls."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into the source tree, where an editable installation finds it, and put the result into the wheel."""
        if self.target_name != "wheel":
            return
        build = runpy.run_path(str(Path(self.root) / FOLDER / "build.py"))
        try:
            build["compile_kernel"]()
        except OSError as error:
            self.app.display_warning(f"The counting kernel was not compiled ({error}): NumPy counts instead, slower.")
            return
        build_data["artifacts"].append(str(FOLDER / build["LIBRARY"].name))
        build_data["pure_python"] = False
        # The kernel does not know Python: one wheel per system serves every version of it.
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
