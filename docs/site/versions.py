"""The versions of the site: the one that is built, and earlier ones in folders of their numbers.

Each of them has the list as `versions.json`, for the choice in the sidebar, and as a page, for
where no script reads it. A version without a folder is not listed, since a link to it would lead
nowhere.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Final

from handgrad.documents import skeleton

_NUMBER: Final = re.compile(r"\d+(\.\d+)+")


def write(site: Path, version: str) -> None:
    """Write the list into a site that was built for `version`, and into those that it holds."""
    kept = [
        path.parent for path in site.glob("*/index.html") if _NUMBER.fullmatch(path.parent.name)
    ]
    kept.sort(key=lambda folder: [int(part) for part in folder.name.split(".")], reverse=True)
    sites = {version: site} | {each.name: each for each in kept if each.name != version}
    for own in sites.values():
        places = {name: f"{os.path.relpath(each, own)}/" for name, each in sites.items()}
        (own / "versions.json").write_text(json.dumps(places), "utf-8")
        (own / "versions.html").write_text(_page(places), "utf-8")


def _page(places: dict[str, str]) -> str:
    items = "".join(
        f'<li><a href="{place}index.html">handgrad {name}</a></li>\n'
        for name, place in places.items()
    )
    return skeleton.page("Versions of handgrad", f"<h1>Versions</h1>\n<ul>\n{items}</ul>\n")
