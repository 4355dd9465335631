import subprocess
import sys

import pytest


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_the_package_is_not_loaded_and_can_still_be():
    code = (
        "import sys, stats.numerics.special as s; print('scipy.special' in sys.modules);"
        "import scipy.special as p; print(p.betainc is s.betainc, p.erfc is s.erfc, callable(p.roots_legendre))"
    )
    assert run(code) == ["False", "True", "True", "True"]


@pytest.mark.parametrize("first", ["import scipy.special", "import sys; sys.modules['scipy.special._ufuncs'] = None"])
def test_the_package_serves_where_the_ufuncs_alone_do_not(first):
    """Loaded already, or laid out otherwise: then the import of the package itself fails or succeeds as it would anyway."""
    code = (
        f"{first}\ntry:\n    import stats.numerics.special as s; print(round(float(s.betainc(2, 3, .5)), 4))\n"
        "except ImportError: print('no scipy')"
    )
    assert run(code) in (["0.6875"], ["no", "scipy"])


def test_a_report_loads_no_more_of_scipy_than_it_needs(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text(
        '{"benchmark":"b","item_id":"1","model":"a","score":1}\n{"benchmark":"b","item_id":"1","model":"c","score":0}\n'
    )
    code = (
        "import sys, io, contextlib\nfrom monitor.cli.app import app\n"
        f"with contextlib.redirect_stdout(io.StringIO()): app(['report', {str(path)!r}, '--format', 'json'], standalone_mode=False)\n"
        "print([m for m in ('scipy.special', 'scipy.stats', 'scipy.sparse', 'faust', 'redis', 'rich', 'numpy.f2py') if m in sys.modules])"
    )
    assert run(code) == ["[]"]
