"""Draw the dashboards to pictures with the components of Grafana's npm packages, from the answers of a running Prometheus.

`make stack`, then ``python -m deploy.grafana.draw http://127.0.0.1:9090``. Needs node, npm and Chromium; the packages go to the cache folder.
"""

import argparse
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).parent
BOARDS = HERE.parent / "dashboards"
PICTURES = HERE.parents[2] / "docs" / "how-to" / "pictures"
WIDTH = 1500
ROW = 38
# In the build for `import`, esbuild and the packages disagree on default exports.
PACKAGES = tuple(
    f"--alias:@grafana/{name}=./node_modules/@grafana/{name}/dist/cjs/index.cjs" for name in ("data", "ui")
)
LOADERS = ("--loader:.svg=text", "--loader:.ttf=dataurl", '--define:process.env.NODE_ENV="production"')
PAGE = """<!doctype html><meta charset="utf-8"><link rel="stylesheet" href="draw.css">
<style>body {{ margin: 0; font-family: Inter, Helvetica, Arial, sans-serif }} .markdown {{ padding: 8px }} .empty {{ text-align: center; padding: 40px }}</style>
<div id="root"></div><script>window.drawing = {drawing}</script><script src="draw.js"></script>"""


def build(folder: Path) -> None:
    """Install the packages of package.json into a folder, once, and bundle the drawing code."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "draw.jsx"):
        shutil.copy(HERE / name, folder / name)
    if not (folder / "node_modules").exists():
        options = ("--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps")
        subprocess.run(["npm", "install", *options], cwd=folder, check=True)
    esbuild = folder / "node_modules/.bin/esbuild"
    options = ("--bundle", "--minify", "--log-level=error", "--outfile=draw.js")
    subprocess.run([esbuild, "draw.jsx", *options, *PACKAGES, *LOADERS], cwd=folder, check=True)


def draw(
    folder: Path, name: str, prometheus: str, variables: dict[str, str], times: tuple[int, int], picture: Path
) -> None:
    """Draw one dashboard as a person sees it who has chosen these variables and times (seconds since 1970)."""
    dashboard = json.loads((BOARDS / f"{name}.json").read_text())
    drawing = {
        "dashboard": dashboard,
        "prometheus": prometheus,
        "variables": variables,
        "start": times[0],
        "end": times[1],
        "width": WIDTH - 16,
    }
    page = folder / f"{name}.html"
    page.write_text(PAGE.format(drawing=json.dumps(drawing).replace("</", "<\\/")))
    height = ROW * max(each["gridPos"]["y"] + each["gridPos"]["h"] for each in dashboard["panels"]) + 16
    options = (
        "--headless",
        "--no-sandbox",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
        "--virtual-time-budget=20000",
    )
    window = (f"--window-size={WIDTH},{height}", f"--screenshot={picture}")
    subprocess.run(["chromium", *options, *window, page.as_uri()], check=True, capture_output=True, timeout=300)


def main() -> None:
    """Draw all dashboards."""
    parser = argparse.ArgumentParser(prog="python -m deploy.grafana.draw", description=__doc__.partition("\n")[0])
    parser.add_argument("prometheus", help="its address")
    parser.add_argument("--benchmark", default="live")
    parser.add_argument("--pair", nargs=2, default=("oak", "yew"), metavar="MODEL", help="in the order of their names")
    parser.add_argument("--minutes", type=float, default=5, help="how long back the lines go (default: 5)")
    parser.add_argument("--ago", type=float, default=0, help="minutes since the time to draw (default: 0, now)")
    parser.add_argument("--to", type=Path, default=PICTURES, help="folder of the pictures")
    chosen = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rankwatch" / "grafana-draw"
    build(cache)
    model_a, model_b = chosen.pair
    variables = {"benchmark": chosen.benchmark, "model_a": model_a, "model_b": model_b}
    chosen.to.mkdir(parents=True, exist_ok=True)
    end = round(time.time() - 60 * chosen.ago)
    times = end - round(60 * chosen.minutes), end
    for board in sorted(BOARDS.glob("*.json")):
        picture = chosen.to / f"dashboard-{board.stem}.png"
        draw(cache, board.stem, chosen.prometheus, variables, times, picture)
        print(picture)


if __name__ == "__main__":
    main()
