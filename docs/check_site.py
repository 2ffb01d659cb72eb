"""Check a built site: links inside it lead somewhere, and no page loads anything from elsewhere.

``python docs/check_site.py docs/_build/site`` prints what is wrong and exits with 1, or prints how much was checked.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADS = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
NOT_LOADED = {"canonical", "author", "license", "prev", "next", "search", "index", "genindex"}


class Page(HTMLParser):
    """The links, loaded files and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag refers to."""
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        for name, value in found.items():
            if (tag, name) in LOADS and not (tag == "link" and set(found.get("rel", "").split()) & NOT_LOADED):
                self.loads.append(value)


def is_elsewhere(address: str) -> bool:
    """Tell whether an address leaves the site."""
    return bool(urlsplit(address).scheme or urlsplit(address).netloc) and not address.startswith("data:")


def problems(folder: Path) -> list[str]:
    """Return one line for each thing that is wrong with a site."""
    pages = {path.resolve(): Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    found = [] if pages else [f"{folder} holds no page."]
    for path, page in pages.items():
        name = path.relative_to(folder.resolve()).as_posix()
        found += [f"{name} loads {address}" for address in page.loads if is_elsewhere(address)]
        for address in page.links + [load for load in page.loads if not load.startswith("data:")]:
            if is_elsewhere(address) or address in ("", "#"):
                continue
            split = urlsplit(address)
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            if not target.is_file():
                found.append(f"{name} refers to {address}, which is not there.")
            elif split.fragment and target in pages and unquote(split.fragment) not in pages[target].anchors:
                found.append(f"{name} refers to {address}, and the page has no such heading.")
    for path in sorted(folder.rglob("*.css")):
        text = path.read_text()
        found += [
            f"{path.name} loads {part[:60]}" for part in text.split("url(")[1:] if part.lstrip("'\"").startswith("http")
        ]
        found += [f"{path.name} imports a style from elsewhere"] if '@import "http' in text else []
    return found


def main() -> int:
    """Check the site that is named on the command line."""
    folder = Path(sys.argv[1])
    found = problems(folder)
    for line in found:
        print(line)
    if not found:
        print(f"{len(list(folder.rglob('*.html')))} pages: links and loaded files are all inside the site.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
