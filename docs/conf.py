"""The documentation as a site: `make site` writes it to target/site."""

import re
from pathlib import Path

import click
from docutils import nodes

from headstack import __version__
from headstack.cli import main
from headstack.cli.loading import Late, every

project = "headstack"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_click"]
html_theme = "furo"
html_title = f"headstack {release}"
html_copy_source = False
html_show_copyright = False
smartquotes = False
html_extra_path = ["results.schema.json"]
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


def without_mail(_app: object, tree: nodes.document) -> None:
    """`NAME@RANGE` is no address."""
    for link in [link for link in tree.findall(nodes.reference) if link.get("refuri", "").startswith("mailto:")]:
        link.replace_self(nodes.Text(link.astext()))


def setup(app: object) -> None:
    app.connect("source-read", at_home)  # type: ignore[attr-defined]
    app.connect("doctree-read", without_mail)  # type: ignore[attr-defined]
