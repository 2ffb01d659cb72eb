"""Settings of the documentation site: ``make docs`` builds it with Sphinx, MyST and furo, offline."""

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import doublesampling
from doublesampling.cli.main import parser as make_parser

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs"))

from notebooks import to_markdown  # noqa: E402  (docs is not a package)

project = "doublesampling"
author = "the authors of doublesampling"
release = version = doublesampling.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
source_suffix = {".md": "markdown", ".ipynb": "markdown"}  # read_page turns notebooks into Markdown
exclude_patterns = ["_build"]

myst_heading_anchors = 4  # so that links to headings are checked
myst_enable_extensions = ["colon_fence"]
suppress_warnings = ["myst.header"]  # pages that start with a table of the report have no second level

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"doublesampling {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

# files of the repository that the site shows as pages of its own
PAGES = {"CONTRIBUTING.md": "contributing", "CHANGELOG.md": "changelog"}


def link_inside(text: str, page: str) -> str:
    """Return a page's text with links to files of the repository turned into links to pages of the site."""
    up = "../" * page.count("/")
    for file, name in PAGES.items():
        text = re.sub(rf"\]\((?:\.\./)*{file}(#[^)]*)?\)", rf"]({up}{name}.md\1)", text)
    return text


def unlisted_names() -> list[str]:
    """Return the public names that no page of the reference lists yet."""
    pages = "".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    listed = set(re.findall(r":: doublesampling\.(\w+)$", pages, re.MULTILINE))
    return [name for name in doublesampling.__all__ if name not in listed and not name.startswith("__")]


def unlisted_pages() -> list[str]:
    """Return the pages that the front page does not list yet."""
    front = (ROOT / "docs" / "index.md").read_text().split()
    files = sorted(path for ending in ("*.md", "*.ipynb") for path in (ROOT / "docs").rglob(ending))
    found = [path.relative_to(ROOT / "docs") for path in files if "_build" not in path.parts]
    return [name for path in found if (name := path.with_suffix("").as_posix()) not in (*front, "index")]


def read_page(app: Any, page: str, source: list[str]) -> None:
    """Show a file of the repository where its page is, list what nobody has sorted in yet, and mend links."""
    file = app.env.doc2path(page, base=False)
    if str(file).endswith(".ipynb"):
        source[0] = to_markdown(source[0], Path(file).name)
    for file, name in PAGES.items():
        if page == name:
            source[0] = re.sub(r"\]\(docs/", "](", (ROOT / file).read_text())
    if page == "reference/others":
        kinds = {
            name: "class" if isinstance(getattr(doublesampling, name), type) else "function"
            for name in unlisted_names()
        }
        for name, kind in kinds.items():
            members = "   :members:\n" if kind == "class" else ""
            source[0] += f"\n```{{eval-rst}}\n.. auto{kind}:: doublesampling.{name}\n{members}```\n"
    if page == "index" and unlisted_pages():
        source[0] += "\n```{toctree}\n:caption: More pages\n:hidden:\n\n" + "\n".join(unlisted_pages()) + "\n```\n"
    source[0] = link_inside(source[0], page)


def helps(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the help of a command and of the commands below it."""
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in dict.fromkeys(action.choices.values()):
                yield from helps(child)


def write_command_line(app: Any) -> None:
    """Write the help of every command to a file that reference/command_line.md includes."""
    os.environ["COLUMNS"] = "96"
    folder = ROOT / "docs" / "_build"
    folder.mkdir(exist_ok=True)
    rule = "\n\n" + "-" * 88 + "\n\n"
    (folder / "command_line.txt").write_text(rule.join(text.rstrip() for text in helps(make_parser())) + "\n")


def setup(app: Any) -> None:
    """Connect to Sphinx."""
    app.connect("builder-inited", write_command_line)
    app.connect("source-read", read_page)
