"""Settings of Sphinx.

The source folder is the repository, not docs/, so that links from one file to another mean the same
on the site as on the page of the repository.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import handgrad  # noqa: E402
from handgrad.documents import skeleton  # noqa: E402

project = "handgrad"
author = project_copyright = "the handgrad authors"
version = release = handgrad.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "docs.site.pages",
    "docs.site.docstrings",
]
root_doc = "README"
include_patterns = [
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "benchmarks/results/README.md",
    "examples/README.md",
    "docs/**.md",
    "docs/**.rst",
    "docs/notebooks/*.nb.py",
]
exclude_patterns = ["docs/site"]
# The notebooks are Python files of cells, which are run, and shown with what they print.
nb_custom_formats = {".nb.py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_execution_timeout = 300
nb_merge_streams = True

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_inherit_docstrings = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
smartquotes = False
highlight_language = "text"
autodoc_default_options = {"members": True}
default_role = "code"

sphinx_gallery_conf = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": str(ROOT / "docs" / "gallery"),
    "filename_pattern": r"/(?!picture)[^/]*\.py$",
    "ignore_pattern": r"picture\.py$",
    "image_scrapers": ("docs.site.pages.pictures",),
    "reset_modules": (),
    "min_reported_time": 1e9,
    "show_memory": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "reset_argv": "docs.site.pages.arguments",
}

# A button copies a console's commands, without prompts and outputs.
copybutton_prompt_text = "$ "

html_theme = "furo"
# The colours of the notes change as the theme's do; those for paper are its light ones.
light, dark, _ = (
    dict(re.findall(r"--([\w-]+): (.*?);", rules))
    for rules in re.findall(r"\{([^{}]+)\}", skeleton.styles("colours"))
)
html_theme_options = {"light_css_variables": light, "dark_css_variables": dark}
html_favicon = "static/favicon.svg"
html_title = "handgrad"
html_static_path = ["static"]
html_css_files = ["notes.css", "site.css"]
html_js_files = [("versions.js", {"defer": "defer"})]
templates_path = ["templates"]
_sidebar = ("brand", "versions", "search", "scroll-start", "navigation", "scroll-end")
html_sidebars = {"**": [f"sidebar/{part}.html" for part in _sidebar]}
html_copy_source = False
html_show_sphinx = False
