"""The documentation as a site: it builds without a warning, no link of it leads nowhere, and nothing is left out."""

from __future__ import annotations

import os
import subprocess
import sys
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from re import sub
from types import ModuleType
from urllib.parse import unquote, urlsplit

import click
import pytest

import headstack
import headstack as hs
from conftest import REPOSITORY, slow
from headstack.cli.loading import every
from headstack.cli.main import main
from headstack.results.explorer import ENGINE


class Page(HTMLParser):
    """Where a page leads, and what can be led to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.html = path.read_text(encoding="utf-8")
        self.text = unescape(sub(r"<[^>]+>", "", self.html))
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name == "id" and value:
                self.anchors.add(value)


THEMES = ["basic", pytest.param("furo", marks=slow("as the site ships; half of the time goes into its sidebar"))]


@pytest.fixture(scope="module", params=THEMES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Page]:
    """The pages of the site by their files."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-d", str(folder / "read"), "-b", "html"]
    # Studies are carried out by test_scorecard.py, and their cards are tried there.
    environment = os.environ | {"HEADSTACK_SITE_WITHOUT_RUNS": "1"}
    command = [*build, "-D", f"html_theme={request.param}", str(REPOSITORY / "docs"), str(folder / "html")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path: Page(path) for path in sorted((folder / "html").rglob("*.html"))}


def test_no_link_leads_nowhere(site: dict[Path, Page]) -> None:
    assert len(site) > 30
    broken = []
    for path, page in site.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme in ("https", "http", "data"):
                continue
            assert not to.scheme, f"{path.name}: {link}"
            there = path if not to.path else (path.parent / unquote(to.path)).resolve()
            is_missing = not there.is_file()
            if is_missing or (there in site and to.fragment and unquote(to.fragment) not in site[there].anchors):
                broken.append(f"{path.name}: {link}")
    assert not broken


def test_every_command_and_option_is_on_its_page(site: dict[Path, Page]) -> None:
    pages = {path.stem: page for path, page in site.items() if path.parent.name == "commands"}
    missing = []
    for path, command in every(main):
        if not path:
            continue
        text = pages[path[0]].text if path[0] in pages else ""
        told = [name for option in command.params if isinstance(option, click.Option) for name in option.opts]
        missing += [f"{' '.join(path)}: {name}" for name in (" ".join(path), *told) if name not in text]
    assert not missing


def test_everything_that_python_offers_is_on_its_page(site: dict[Path, Page]) -> None:
    [page] = [page for path, page in site.items() if path.name == "python.html"]
    offered = {name: getattr(headstack, name) for name in headstack.__all__}
    anchors = {
        name: f"module-{one.__name__}" if isinstance(one, ModuleType) else f"headstack.{name}"
        for name, one in offered.items()
    }
    assert not [name for name, anchor in anchors.items() if anchor not in page.anchors]


def test_the_first_page_has_the_explorer_in_it(site: dict[Path, Page]) -> None:
    [index] = [page for path, page in site.items() if path.name == "index.html" and path.parent.name == "html"]
    if not ENGINE.is_file():
        assert "built without the simulator" in index.text
        assert any(link.endswith("explorer.png") for link in index.links)
        pytest.skip("needs the simulator for pages")
    # In a frame, and alone.
    assert index.links.count("explore.html") == 2
    assert '<iframe src="explore.html" title="' in index.html
    [alone] = [page for path, page in site.items() if path.name == "explore.html" and path.parent.name == "html"]
    assert 'id="explore"' in alone.html


def test_the_gallery_has_every_study_of_a_document_and_every_choice(site: dict[Path, Page]) -> None:
    [page] = [page for path, page in site.items() if path.name == "gallery.html"]
    shipped = [name for name in hs.studies.listed() if name != "predictor"]
    for name in shipped:
        study = hs.studies.load(name)
        assert f"study-{name}.html" in page.links
        assert f"headstack lab study run {name}" in page.text
        assert study.title in page.text
        assert study.question in page.text
    assert "scorecard.html" in page.links


def test_names_with_a_part_are_no_addresses(site: dict[Path, Page]) -> None:
    assert not [link for page in site.values() for link in page.links if link.startswith("mailto:")]
