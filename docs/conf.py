"""How Sphinx builds the documentation (`make docs`)."""

from __future__ import annotations

from importlib import import_module, metadata

project = "dpntk"
author = "The dpntk developers"
release = metadata.version("dpntk")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_click"]
html_theme = "furo"
html_title = "dpntk"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

# Sections can be linked to as on a code forge: other.md#a-heading.
myst_heading_anchors = 3
smartquotes = False
highlight_language = "none"

# Docstrings put names between single backticks.
default_role = "literal"
napoleon_custom_sections = ["Guarantee"]
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

# Names that a room imports on first use are not in it until somebody asks for them.
for _room in ("embed", "release", "generate", "evaluate"):
    _module = import_module(f"dpntk.{_room}")
    vars(_module).update({name: getattr(_module, name) for name in _module.__all__})
