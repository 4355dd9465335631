"""Names that would do harm where they are not escaped, and a benchmark made of them."""

import numpy as np

from monitor.render.report import document_of as document_of_view
from monitor.view.build import report_view
from monitor.view.from_state import board_view
from tests.fold_log import FoldLog, packed

NAMES = [
    "<img src=x onerror=alert(1)>",
    "=cmd|' /C calc'!A0",
    "a|b|c",
    "</style></title><script>alert(1)</script>",
    "**bold** _it_ `code`",
    "@someone and @else",
    "https://example.org/x www.example.org",
    "[link](javascript:alert(1))",
    "-1+1",
    '"quoted", comma',
    "x" * 200,
    "模型 é",
    "+sum",
    "&lt;b&gt; &amp; 1. # -",
]


def hostile_benchmark(name="<b>|=bench|</b>"):
    """Report of models of these names; the best come first."""
    rng = np.random.default_rng(4)
    scores = (rng.random((60, len(NAMES))) < np.linspace(0.95, 0.2, len(NAMES))).astype(float)
    log = FoldLog()
    log.send(packed(scores, NAMES, benchmark=name))
    return log[name]


def document_of(benchmark, *, pairs="adjacent", detail=False, low_coverage=0.9):
    view = report_view(board_view(benchmark), pairs=pairs, assert_complete=True)
    return document_of_view(view, low_coverage, detail=detail)
