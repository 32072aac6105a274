"""Build the site into build/site, warnings as errors: `python -m docs.site [--links]`.

Links between pages, their anchors and links to files are checked by every build. With --links the
addresses of other sites are asked for as well, which needs a network.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from sphinx.cmd.build import build_main

ROOT: Final = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m docs.site", description=__doc__)
    parser.add_argument("--links", action="store_true", help="ask for outside addresses too")
    builders = ["html", "linkcheck"] if parser.parse_args().links else ["html"]
    common = ["--fail-on-warning", "--keep-going", "--quiet", "--jobs=auto", "-c", "docs/site"]
    for builder in builders:
        out = ROOT / "build" / ("site" if builder == "html" else builder)
        code = build_main([*common, "-b", builder, "-d", "build/doctrees", str(ROOT), str(out)])
        if code:
            return code
    print(f"{ROOT / 'build' / 'site' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
