import re
import subprocess
import sys
from pathlib import Path

import pytest

import stats


def test_every_exported_name_is_importable_and_checked_by_the_type_checker():
    declared = Path(stats.__file__).read_text(encoding="utf-8")
    names = dir(stats)
    assert len(names) > 60
    for name in names:
        value = getattr(stats, name)
        assert value.__doc__, f"{name} needs a docstring"
        assert f"import {name} as {name}" in declared
    assert len(re.findall(r"import (\w+) as \1$", declared, re.MULTILINE)) == len(names)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = stats.nonsense


def test_importing_stats_is_lazy():
    code = (
        "import sys, stats; assert not any(m.startswith(('numpy', 'scipy')) for m in sys.modules);"
        "from stats import log_e_value, gap_interval, spending_alpha, exact_p;"
        "assert 'scipy.stats' not in sys.modules and 'scipy.optimize' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
