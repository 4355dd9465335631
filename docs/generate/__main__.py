"""Write the generated parts of the pages, or check that they match the code."""

import argparse
import sys

from docs.generate import (
    alerts,
    calibration,
    command_line,
    decisions,
    errata,
    faults,
    gates,
    import_graph,
    keys,
    outputs,
    records,
    routes,
    settings,
    shares,
)
from docs.generate.pages import DOCS, with_part

PARTS = (
    ("decisions/index.md", "decisions", decisions.table),
    ("explanation/architecture.md", "import graph", import_graph.render),
    ("explanation/simulation-and-model.md", "planted bugs", faults.planted_bugs),
    ("reference/command-line.md", "commands", command_line.render),
    ("reference/events.md", "event", records.event),
    ("reference/events.md", "declaration", records.declaration),
    ("reference/faults.md", "faults", faults.tables),
    ("reference/http-api.md", "routes", routes.reading),
    ("reference/settings.md", "settings", settings.render),
    ("tutorials/first-ranking.md", "output report", outputs.report),
    ("tutorials/first-ranking.md", "output gate", outputs.gate),
    ("how-to/alerts.md", "alerts", alerts.table),
    ("how-to/declare.md", "flags", command_line.declaring),
    ("how-to/declare.md", "shares", shares.table),
    ("how-to/gate-for-50-cases.md", "rates", gates.table),
    ("how-to/plan.md", "output plan", outputs.plan),
    ("how-to/plan.md", "output plan clusters", outputs.plan_clusters),
    ("how-to/plan.md", "output plan goal", outputs.plan_goal),
    ("how-to/import-results.md", "output choices", outputs.choices),
    ("how-to/use-the-page.md", "keys", keys.table),
    ("how-to/watch-a-model.md", "output drift plan", outputs.drift_plan),
    ("reference/errata.md", "rows", errata.rows),
    *(
        ("explanation/calibration.md", name, calibration.table(name))
        for name in (
            "pairs",
            "weights",
            "families",
            "registration",
            "generations",
            "races",
            "ranks",
            "settled",
            "intervals",
            "family intervals",
            "watched",
        )
    ),
    ("explanation/calibration.md", "breaking", calibration.breaking),
    ("explanation/calibration.md", "provenance", calibration.provenance),
    ("explanation/calibration.md", "close pair", calibration.close_pair),
    ("explanation/calibration.md", "one look", calibration.one_look),
    ("how-to/gate-and-run.md", "gate runs", calibration.gate_runs),
    ("how-to/race.md", "race shares", calibration.race_shares),
    ("how-to/gate-and-run.md", "gates of several", calibration.gates_of_several),
    ("../README.md", "output two models", outputs.two_models),
    ("how-to/import-results.md", "output reject", outputs.reject),
)
"""Page, name of its markers, and the function that returns the text between them."""


def main() -> int:
    """Write every part; with `--check`, only name the pages that differ."""
    parser = argparse.ArgumentParser(prog="python -m docs.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page differs from the code")
    check = parser.parse_args().check
    drifted = []
    for page, name, render in PARTS:
        old = (DOCS / page).read_text(encoding="utf-8")
        new = with_part(old, name, render())
        if new != old:
            drifted.append(page)
            if not check:
                (DOCS / page).write_text(new, encoding="utf-8")
    for page in drifted:
        print(f"docs/{page}: {'out of date; run `python -m docs.generate`' if check else 'written'}")
    return 1 if check and drifted else 0


if __name__ == "__main__":
    sys.exit(main())
