"""The sixteen rows of counts the paper prints, recomputed."""

import numpy as np
import pytest

from stats import (
    chi2_p,
    correlation,
    exact_p,
    log_e_value,
    mid_p,
    moments,
    required_n,
    resolution_ratio,
)

# pair, accuracy A, accuracy B, b, c, rho, chi-squared p, exact p, N*, ln e (grid98)
MMLU_PRO = [
    ("1 v 2", 0.7303, 0.7185, 253, 111, 0.92, 9.9e-14, 7.1e-14, 1_697, 25.6599),
    ("2 v 3", 0.7185, 0.7012, 284, 76, 0.93, None, None, 778, 61.0782),
    ("3 v 4", 0.7012, 0.7002, 32, 20, 0.99, 0.096, 0.126, 34_092, -0.3886),
    ("4 v 5", 0.7002, 0.6341, 1871, 1076, 0.46, None, None, 433, 104.7856),
    ("5 v 6", 0.6341, 0.6153, 1680, 1454, 0.45, 5.4e-5, 5.8e-5, 5_787, 4.3738),
    ("6 v 7", 0.6153, 0.6145, 1449, 1439, 0.49, 0.852, 0.867, 2_727_127, -4.2685),
    ("7 v 8", 0.6145, 0.6054, 352, 242, 0.90, 6.4e-6, 7.3e-6, 4_628, 7.2781),
    ("8 v 9", 0.6054, 0.5968, 787, 684, 0.75, 7.2e-3, 7.8e-3, 13_086, 0.1968),
    ("9 v 10", 0.5968, 0.5945, 1227, 1200, 0.58, 0.584, 0.598, 314_370, -3.9145),
]
OPEN_LLM = [
    ("ARC gemma / Llama-I", 1_172, 0.6109, 0.6075, 98, 94, 0.66, 0.773, 0.829, 110_379, -2.4578),
    ("ARC Llama-I / Llama", 1_172, 0.6075, 0.5922, 81, 63, 0.74, 0.134, 0.156, 4_081, -1.1559),
    ("ARC gemma / Llama", 1_172, 0.6109, 0.5922, 100, 78, 0.68, 0.099, 0.115, 3_375, -1.0217),
    ("HellaSwag gemma / Llama", 10_042, 0.8247, 0.8202, 295, 249, 0.81, 0.049, 0.054, 20_255, -0.9883),
    ("Winogrande Mistral / Llama", 1_267, 0.7719, 0.7711, 121, 120, 0.46, 0.949, 1.000, 2_396_624, -2.6298),
    ("Winogrande gemma / Mistral", 1_267, 0.7845, 0.7719, 119, 103, 0.49, 0.283, 0.314, 8_616, -1.9537),
    ("Winogrande gemma / Llama", 1_267, 0.7845, 0.7711, 98, 81, 0.59, 0.204, 0.232, 6_152, -1.5971),
]
N = 12_032
ROWS = [(name, N, *rest) for name, *rest in MMLU_PRO] + OPEN_LLM


def two_digits(value):
    return float(f"{value:.1e}")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_printed_row(row):
    _, n, p_a, p_b, b, c, rho, chi2, exact, n_star, log_e = row
    assert required_n(n, b, c) == pytest.approx(n_star, rel=1e-4, abs=1)
    assert moments(n, b, c)[0] == pytest.approx(p_a - p_b, abs=1.01e-4)
    right_a = round(p_a * n)
    assert correlation(n, b, c, right_a, right_a - b + c) == pytest.approx(rho, abs=0.0051)
    assert log_e_value(b, c, "grid98") == pytest.approx(log_e, abs=5.1e-5)
    for computed, printed in ((chi2_p(b, c), chi2), (exact_p(b, c), exact)):
        if printed is None:
            assert computed < 1e-15
        elif printed < 0.01:
            assert two_digits(computed) == printed
        else:
            assert computed == pytest.approx(printed, abs=5.1e-4)


@pytest.mark.parametrize("row", MMLU_PRO, ids=lambda row: row[0])
def test_printed_n_star_is_rounded_up_from_12031_items(row):
    _, _, _, b, c, *_, n_star, _ = row
    assert np.ceil(required_n(N - 1, b, c)) == n_star


@pytest.mark.parametrize("row", OPEN_LLM, ids=lambda row: row[0])
def test_printed_n_star_is_rounded(row):
    _, n, _, _, b, c, *_, n_star, _ = row
    assert round(float(required_n(n, b, c))) == n_star


def test_four_of_nine_are_unresolved():
    b, c = np.array([row[3:5] for row in MMLU_PRO]).T
    q = resolution_ratio(N, required_n(N, b, c))
    assert (q < 1).tolist() == [False, False, True, False, False, True, False, True, True]
    assert q[7] == pytest.approx(0.9194, abs=5e-5)


def test_multi_arbiter_p_values():
    # Table "arbiters": chi-squared, exact and mid-p of the seven close pairs, in two decimals.
    printed = [
        (0.77, 0.83, 0.77), (0.13, 0.16, 0.13), (0.10, 0.12, 0.10), (0.049, 0.054, 0.049),
        (0.95, 1.00, 0.95), (0.28, 0.31, 0.28), (0.20, 0.23, 0.20),
    ]  # fmt: skip
    for (_, _, _, _, b, c, *_), values in zip(OPEN_LLM, printed, strict=True):
        digits = 3 if values[0] < 0.05 else 2
        computed = [round(float(test(b, c)), digits) for test in (chi2_p, exact_p, mid_p)]
        assert computed == pytest.approx(values, abs=0.0101 if digits == 2 else 1e-9)


def test_verdicts_of_the_golden_pair():
    log_e = log_e_value(1680, 1454)
    assert np.log(20) <= log_e < np.log(180)
    assert resolution_ratio(N, required_n(N, 1680, 1454)) == pytest.approx(2.079, abs=5e-4)
    assert np.exp(log_e_value(1680, 1454, "grid98")) == pytest.approx(79.3, abs=0.05)
