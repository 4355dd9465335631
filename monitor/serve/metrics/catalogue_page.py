"""The page of every metric: docs/reference/metrics.md."""

from pathlib import Path
from typing import Final

from monitor.serve.metrics.catalogue import CATALOGUE

_HEAD: Final = """\
# Metrics

<!-- Written by `python -m monitor.serve.metrics.catalogue_page` from monitor/serve/metrics/catalogue.py: change it there. -->

`GET /metrics` speaks the Prometheus text format, and OpenMetrics to those who ask for it. Everything about benchmarks and pairs is computed
from the state when it is scraped, and only by the worker that owns the benchmark: nothing goes stale, and nothing is counted twice after a
crash, since the counters are part of the state.

- Statistics of a benchmark that take longer than {quick:g} s to compute (some 300 models) are kept for {patience} times what is beyond
  that, so that whoever scrapes leaves the worker its time; its counters of events are still those of the scrape.
- A series names a pair in **name order**, so labels never swap when ranks do; a sign or a side says who leads.
- **MetricsView pairs** have series of their own: adjacent pairs first, then declared ones, then decided ones, up to {pairs:,} a benchmark.
  What was left out stands in `rankwatch_pair_series_omitted`. **Shown models** are the first {models:,} by rank.
- Aggregates are over all pairs of the latest epochs, except where they say *adjacent*.
- No item id is ever a label.
- **decided** is evidence (e-value against a threshold); **resolved** is size (q = N/N* >= 1). No alert rests on q.
- Times of verdicts are those of the commit that stored them. They are kept with the state, so a restart does not change them; a log that is
  folded anew from its beginning gets the times of that.

Procedures: `fixed_n`, `bonferroni`, `holm`, `benjamini_hochberg`, `clustered` (valid at a planned n only), `anytime`,
`anytime_family` (valid whenever one looks), `e_bh` (a current view that may be revoked).

| metric | kind | unit | labels | series | |
|---|---|---|---|---|---|
"""


def render() -> str:
    """Return docs/reference/metrics.md."""
    from monitor.report.metrics_view import PAIR_CAP
    from monitor.serve.metrics.collector import MODEL_CAP
    from monitor.serve.report_cache import PATIENCE, QUICK_SECONDS

    lines = [
        f"| `{m.exposed}` | {m.kind} | {m.unit} | {', '.join(m.labels)} | {m.series} | {m.help}"
        f"{' Only of `rankwatch run`.' if m.service_only else ''} |\n"
        for m in CATALOGUE
    ]
    return _HEAD.format(pairs=PAIR_CAP, models=MODEL_CAP, quick=QUICK_SECONDS, patience=PATIENCE) + "".join(lines)


def main() -> None:
    """Write docs/reference/metrics.md."""
    Path("docs/reference/metrics.md").write_text(render(), "utf-8")


if __name__ == "__main__":
    main()
