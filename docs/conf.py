"""The documentation as a site: `make site` writes it to target/site."""

import re
import sys
from pathlib import Path

import click
from docutils import nodes
from sphinx.application import Sphinx

from headstack import __version__
from headstack.cli.loading import Late, every
from headstack.cli.main import main

sys.path.insert(0, str(Path(__file__).parent))
from landing import Landing

project = "headstack"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "furo"
html_title = f"headstack {release}"
html_copy_source = False
html_show_copyright = False
smartquotes = False
html_extra_path = ["results.schema.json"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
myst_heading_anchors = 3
exclude_patterns = ["examples"]
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"

ROOT = Path(__file__).parent.parent
STUDIES = (
    *("compaq", "demartek", "hp-va7100", "mark5c", "storagereview"),
    *("flash-2016", "mark5c-2012", "storagereview-2001"),
)
SHIPPED = "python/headstack/studies/shipped"
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "catalogue/arrays/README.md": "describing-arrays.md",
    "catalogue/drives/README.md": "describing-drives.md",
    f"{SHIPPED}/README.md": "describing-studies.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    **{f"{SHIPPED}/{name}/README.md": f"study-{name}.md" for name in STUDIES},
}
"""Pages that lie beside what they describe, and their names on the site."""


# Commands are loaded when they are named; the site names them all, and what a group does without a name.
for _, command in list(every(main)):
    if isinstance(command, Late):
        command.commands.update({name: command.get_command(click.Context(command), name) for name in command.late})
    if command.hidden:
        command.hidden, command.name = False, "TARGET..."


def at_home(_app: object, page: str, source: list[str]) -> None:
    """Leads links to pages outside `docs/` to where the site has them, and those of pages at the root likewise."""
    for path, name in OUTSIDE.items():
        if name == f"{page}.md" and "/" not in path:
            source[0] = re.sub(r"\]\(docs/", "](", (ROOT / path).read_text(encoding="utf-8"))
            for other, there in OUTSIDE.items():
                source[0] = source[0].replace(f"]({other})", f"]({there})")
    for path, name in OUTSIDE.items():
        source[0] = re.sub(rf"\]\(\.\./{re.escape(path)}", f"]({name}", source[0])


LANDING = Landing()


def made(_app: object, page: str, source: list[str]) -> None:
    """Puts what is made for the site into its pages."""
    source[0] = LANDING.read(page, source[0])


def written(app: Sphinx, error: Exception | None) -> None:
    """Writes what is made for the site beside its pages."""
    if error is None and app.builder.format == "html":
        LANDING.write(Path(app.outdir))


def without_mail(_app: object, tree: nodes.document) -> None:
    """`NAME@RANGE` is no address."""
    for link in [link for link in tree.findall(nodes.reference) if link.get("refuri", "").startswith("mailto:")]:
        link.replace_self(nodes.Text(link.astext()))


def setup(app: Sphinx) -> None:
    app.connect("source-read", at_home)
    app.connect("source-read", made)
    app.connect("doctree-read", without_mail)
    app.connect("build-finished", written)
