"""How the site is built. Everything a page shows lies beside it: no font, script or formula comes from elsewhere."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import prudent

project = "prudent"
author = "The prudent developers"
copyright = author  # noqa: A001 (the name Sphinx looks for)
version = release = prudent.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "registry_pages",
]
exclude_patterns = ["_build", "_ext", "results/*", "jupyter_execute"]

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # docs/refresh.py runs it
default_role = "code"  # docstrings write `name` for what is typed
smartquotes = False  # two hyphens begin an option, and quotes are for a shell

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_class_signature = "mixed"
python_display_short_literal_types = True
python_use_unqualified_type_names = True

html_theme = "furo"
html_title = f"prudent {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
