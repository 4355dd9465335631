"""The paper's numbers, exactly as printed: inputs (counts, accuracies) and results.

Results are text, because the last printed digit sets how closely a recomputation must agree.
"""

from dataclasses import dataclass
from typing import NamedTuple


class PublishedPair(NamedTuple):
    """A row of a table of discordant counts: only A is right on b items, only B on c."""

    name: str
    items: int
    p_a: float
    p_b: float
    b: int
    c: int
    rho: str
    p_chi2: str
    p_exact: str
    required_n: str


class Arbiters(NamedTuple):
    """A row of the table of four tests; the verdict has a letter for each of chi2, exact, mid-p and bootstrap."""

    p_chi2: str
    p_exact: str
    p_mid: str
    contains_zero: str
    verdict: str


class ClusterRow(NamedTuple):
    """A row of the cluster table, joined with the row of the bootstrap table."""

    icc: float
    icc_digits: int
    design_effect: str
    required_n: str


class Prospective(NamedTuple):
    """A row of the prospective validation: gap, N*, and the power at 0.8, 1 and 1.2 N*."""

    name: str
    gap: float
    required_n: int
    power: tuple[str, str, str]


class TestVariant(NamedTuple):
    """A row of the calibration of five tests: median power, and the largest deviations of size and power."""

    test: str
    size_deviation_pp: str
    power: str
    power_deviation_pp: str


class StreamPair(NamedTuple):
    """One of the two ARC pairs on which the paper calibrates its e-process."""

    name: str
    items: int
    b: int
    c: int
    required_n: str
    type_one: str


@dataclass(frozen=True)
class Paper:
    """Everything that `rankwatch reproduce` compares with; tests replace a field to see the computed column follow."""

    mmlu: tuple[PublishedPair, ...] = (
        PublishedPair("1 v 2", 12032, 0.7303, 0.7185, 253, 111, "0.92", "9.9e-14", "7.1e-14", "1,697"),
        PublishedPair("2 v 3", 12032, 0.7185, 0.7012, 284, 76, "0.93", "<1e-15", "<1e-15", "778"),
        PublishedPair("3 v 4", 12032, 0.7012, 0.7002, 32, 20, "0.99", "0.096", "0.126", "34,092"),
        PublishedPair("4 v 5", 12032, 0.7002, 0.6341, 1871, 1076, "0.46", "<1e-15", "<1e-15", "433"),
        PublishedPair("5 v 6", 12032, 0.6341, 0.6153, 1680, 1454, "0.45", "5.4e-5", "5.8e-5", "5,787"),
        PublishedPair("6 v 7", 12032, 0.6153, 0.6145, 1449, 1439, "0.49", "0.852", "0.867", "2,727,127"),
        PublishedPair("7 v 8", 12032, 0.6145, 0.6054, 352, 242, "0.90", "6.4e-6", "7.3e-6", "4,628"),
        PublishedPair("8 v 9", 12032, 0.6054, 0.5968, 787, 684, "0.75", "7.2e-3", "7.8e-3", "13,086"),
        PublishedPair("9 v 10", 12032, 0.5968, 0.5945, 1227, 1200, "0.58", "0.584", "0.598", "314,370"),
    )
    oll: tuple[PublishedPair, ...] = (
        PublishedPair("ARC gem/LI", 1172, 0.6109, 0.6075, 98, 94, "0.66", "0.773", "0.829", "110,379"),
        PublishedPair("ARC LI/L8B", 1172, 0.6075, 0.5922, 81, 63, "0.74", "0.134", "0.156", "4,081"),
        PublishedPair("ARC gem/L8B", 1172, 0.6109, 0.5922, 100, 78, "0.68", "0.099", "0.115", "3,375"),
        PublishedPair("HS gem/L8B", 10042, 0.8247, 0.8202, 295, 249, "0.81", "0.049", "0.054", "20,255"),
        PublishedPair("Wino Mi/L8B", 1267, 0.7719, 0.7711, 121, 120, "0.46", "0.949", "1.000", "2,396,624"),
        PublishedPair("Wino gem/Mi", 1267, 0.7845, 0.7719, 119, 103, "0.49", "0.283", "0.314", "8,616"),
        PublishedPair("Wino gem/L8B", 1267, 0.7845, 0.7711, 98, 81, "0.59", "0.204", "0.232", "6,152"),
    )
    arbiters: tuple[Arbiters, ...] = (
        Arbiters(".77", ".83", ".77", "yes", "FFFF"),
        Arbiters(".13", ".16", ".13", "yes", "FFFF"),
        Arbiters(".10", ".12", ".10", "yes", "FFFF"),
        Arbiters(".049", ".054", ".049", "yes", "RFRF"),
        Arbiters(".95", "1.00", ".95", "yes", "FFFF"),
        Arbiters(".28", ".31", ".28", "yes", "FFFF"),
        Arbiters(".20", ".23", ".20", "yes", "FFFF"),
    )
    clusters: int = 14
    cluster_rows: tuple[ClusterRow, ...] = (
        ClusterRow(0.0004, 4, "1.37", "2,327"),
        ClusterRow(-0.0003, 4, "1.00", "778"),
        ClusterRow(0.0002, 4, "1.19", "40,660"),
        ClusterRow(0.036, 3, "31.5", "13,621"),
        ClusterRow(0.0067, 4, "6.74", "39,009"),
        ClusterRow(0.012, 3, "11.5", "31.4e6"),
        ClusterRow(-0.0002, 4, "1.00", "4,628"),
        ClusterRow(0.0010, 4, "1.88", "24,632"),
        ClusterRow(0.0029, 4, "3.52", "1.11e6"),
    )
    cluster_range: tuple[int, int] = (5, 9)  # unresolved pairs over the definitions of clusters
    anytime_inflation: float = 2.15
    worked_example: tuple[float, float, float] = (0.65, 0.60, 0.30)
    prospective: tuple[Prospective, ...] = (
        Prospective("HS Mistral-I/Llama-I", 0.063, 193, ("0.71", "0.83", "0.89")),
        Prospective("ARC Llama-3-8B/gemma", 0.078, 294, ("0.69", "0.80", "0.88")),
        Prospective("HS Llama-3-8B/gemma", 0.101, 120, ("0.72", "0.81", "0.88")),
    )
    variants: tuple[TestVariant, ...] = (
        TestVariant("chi2", "0.9", "0.79", "5.3"),
        TestVariant("exact", "1.1", "0.76", "10.2"),
        TestVariant("mid", "0.8", "0.79", "5.9"),
        TestVariant("corrected", "1.1", "0.76", "10.6"),
        TestVariant("bootstrap", "0.9", "0.79", "5.2"),
    )
    streams: tuple[StreamPair, ...] = (
        StreamPair("ARC, gap 2.4 pp", 1172, 115, 87, "2,362", "0.035"),
        StreamPair("ARC, gap 7.8 pp", 1172, 181, 90, "294", "0.043"),
    )


PAPER = Paper()

NOT_RECOMPUTABLE = (  # results that need unprinted data: name, published value, and what the paper prints instead
    ("OLL v1: unresolved of 40, fixed n / Bonferroni / anytime", "11 / 14 / 14", "prints 7 of the 40 pairs"),
    ("OLL v1: median paired over unpaired required N (IQR)", "2.15 (1.60-2.75)", "prints 7 of the 40 pairs"),
    ("OLL v1: n_h / N*, median and range over 40 pairs", "0.5002, 0.487-0.562", "prints 7 of the 40 pairs"),
    ("OLL v1: unresolved at rho +- 0.10", "9-12", "prints 7 of the 40 pairs"),
    ("OLL v1: buckets above 2 pp", "4/10, 0/17, 0/6", "prints no pair above 2 pp"),
    ("MMLU-Pro: leave one subject out", "6/9 on 11 drops, 5/9 on 3", "prints no sums per subject"),
    ("MMLU-Pro: category bootstrap, 5 or 6 of 9 unresolved", "99.9 %", "prints no sums per subject"),
    ("MMLU-Pro: random, difficulty and split clusters", "4/9, 9/9, 5/9", "prints no item-level scores"),
    ("Frontier panel: n_h / N* of three pairs", "0.496-0.500", "prints no counts"),
)
