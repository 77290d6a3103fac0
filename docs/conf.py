"""Sphinx's settings for the site. `tools.site` puts the sources together and calls Sphinx: ``nox -s docs``."""

from importlib.metadata import version as version_of

project = "Numba for AMD GPUs"
author = "the project's authors"
version = release = version_of("numba-hip-core")

extensions = ["myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
nitpicky = False  # docstrings name what other modules define; links of pages are checked all the same
default_role = "py:obj"
add_module_names = False
python_display_short_literal_types = True
toc_object_entries_show_parents = "hide"

myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 4
suppress_warnings = [
    "misc.highlighting_failure",  # the lexer of LLVM IR does not know all of the newest LLVM
    "ref.python",  # types in signatures have no module: two classes may have the name
]
highlight_language = "text"  # of what is indented: commands

html_theme = "furo"
html_title = project
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"
