"""What the page writes about one pair: the verdict in one sentence, the counts that would change it, and a line for each question."""

from collections.abc import Callable, Mapping
from math import floor, log10
from typing import Final, Literal, NamedTuple

from monitor.words import pairs
from monitor.words.assumptions import clause
from monitor.words.columns import PROCEDURES
from monitor.words.counts import about_items, counted
from monitor.words.kinds import WORDS
from monitor.words.numbers import apart, decimal, estimate, ratio
from monitor.words.order import POLICIES, at_the_end
from monitor.words.pairs import PairBoard
from monitor.words.points import points, size
from schemas.records.text import Sentence
from schemas.results.api import PairRow, PairWords
from schemas.results.assumptions import Assumption
from schemas.results.reasons import Reason, without
from schemas.results.report import PairReport, Step

_BETS: Final = {"committed", "trusted"}
_USUAL_POWER: Final = 0.8
_HELD: Final = {"held", "invalidated"}
_SUPERSCRIPT: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class _Given(NamedTuple):
    pair: PairReport
    board: PairBoard

    @property
    def among(self) -> str:
        return "" if self.board.family < 2 else f" among {self.board.family:,} pairs"

    @property
    def ahead(self) -> str:
        """Who is ahead, and by how much."""
        a, b, gap = self.pair.model_a, self.pair.model_b, self.pair.gap
        if not gap:
            return f"{a} and {b} are level on {counted(self.pair.n, f'shared {self.board.unit}')}"
        first, second = (a, b) if gap > 0 else (b, a)
        return f"{first} is {size(gap)} points ahead of {second}"

    @property
    def missing(self) -> int | None:
        """How many items are missing that could change the result."""
        return next((each["missing"] for each in self.pair.facts if each.get("missing")), None)

    @property
    def named(self) -> pairs.Pair:
        return pairs.Pair(self.pair.model_a, self.pair.model_b, WORDS[self.board.unit])


_Row = tuple[str | None, Sentence] | None


def pair_words(pair: PairReport, board: PairBoard, least: int | None) -> PairWords:
    """Return what the page writes about a pair; `least`: the items won at which the exact test decides, if as many differ as now."""
    given = _Given(pair, board)
    assumed = next((each["assumptions"] for each in pair.facts if each["code"] == Reason.ASSUMES), ())
    rows = [(key, head, row) for key, (head, write) in _ROWS.items() if (row := write(given)) is not None]
    return PairWords(
        step=pair.step,
        headline=_headline(given),
        number=_number(given),
        turned_note=_turned(given, least),
        rows=[PairRow(key=key, head=head, answer=row[0], detail=row[1]) for key, head, row in rows],
        why=[pairs.reason([each], given.named) for each in without(pair.facts, Reason.ASSUMES)],
        assumes=[clause(Assumption.of(each)) for each in assumed],
        policy_note=f"Order policy {board.policy}: {POLICIES[board.policy]}{_look(board)}.",
    )


def _look(board: PairBoard) -> str:
    """Return what decides besides the bets of a committed order."""
    return f"; bets decide, or one exact test of all items with {at_the_end(board.look)}" if board.look else ""


def _headline(given: _Given) -> Sentence:
    if given.pair.n == 0:
        return f"{given.pair.model_a} and {given.pair.model_b} have no {given.board.unit} in common."
    return _HEADLINES[given.pair.step](given)


def _decided(given: _Given) -> Sentence:
    better, worse = given.named.ordered(given.pair.decided.anytime_family or "a")
    lead = (given.pair.gap or 0) * (1 if better == given.pair.model_a else -1)
    by = f"{size(lead)} points ahead, " if lead > 0 else ""
    return f"{better} is better than {worse}: {by}decided{given.among}."


def _open(given: _Given) -> Sentence:
    if given.missing is None:
        return f"Not decided yet: {given.ahead} after {counted(given.pair.n, given.board.unit)}."
    missing = f"{counted(given.missing, given.board.unit)} {'is' if given.missing == 1 else 'are'} missing"
    return f"Open: {given.ahead}, and {missing}."


_HEADLINES: Final[Mapping[Step, Callable[[_Given], Sentence]]] = {
    "decided": _decided,
    "against": _decided,
    "tie": lambda given: f"A tie: {given.ahead}, not decided{given.among}.",
    "open": _open,
    "equivalent": lambda given: f"Equivalent: {given.ahead}, within the declared margin.",
    "held": lambda given: pairs.reason(given.pair.facts[:1], given.named),
    "invalidated": lambda given: pairs.reason(given.pair.facts[:1], given.named),
}


def _number(given: _Given) -> str | None:
    """Return what the number is that decides; None where none does."""
    if given.board.policy == "none" or given.pair.step in _HELD:
        return None
    if given.board.look:
        return "p of this pair, by bets or by one exact test of all items"
    if given.board.policy in _BETS:
        return "e-value of this pair"
    test = "" if given.pair.b is None else ", exact test"  # other scores have a bound of bets
    return f"p of this pair{test}" + (", if what is missing went against the leader" if given.missing else "")


def _turned(given: _Given, least: int | None) -> Sentence | None:
    pair, unit = given.pair, given.board.unit
    if pair.b is None or pair.c is None or not pair.n:
        return None
    won, lost = max(pair.b, pair.c), min(pair.b, pair.c)
    counts = f"{pair.model_a if pair.b >= pair.c else pair.model_b}: {counted(won, unit)} won, {lost:,} lost."
    if least is None or pair.step not in {"tie", "decided", "against"}:
        return counts
    edge = f"{counts} {least:,} and {won + lost - least:,} would"
    if least > won:
        return f"{edge} decide it: {counted(least - won, unit)} turned."
    return f"{edge} still decide it: {counted(won + 1 - least, unit)} turned would not."


# --- the lines -------------------------------------------------------------------------------------------------------------------------


def _gap(given: _Given) -> _Row:
    pair, family = given.pair, given.board.family
    if pair.gap is None:
        return None
    bounds = [(pair.gap_low, pair.gap_high, "for one pair chosen in advance")]
    if family > 1:
        bounds.insert(0, (pair.gap_family_low, pair.gap_family_high, f"at the level of {family:,} pairs"))
    parts = [
        f"{points(low)} to {points(high)} {what}" for low, high, what in bounds if low is not None and high is not None
    ]
    if parts and pair.step in _HELD:
        parts.append("not valid while verdicts are held")
    none = "graded scores: no interval is computed" if pair.b is None else "no interval agrees with its decision now"
    text = "; ".join(parts).replace("-", "−") or none
    return f"{points(pair.gap)} points".replace("-", "−"), text


def _alone(given: _Given) -> _Row:
    pair = given.pair
    if pair.p_anytime is None:
        return None
    p, level = apart(power, pair.p_anytime, given.board.alpha)
    word = "held" if pair.step in _HELD else "undecided" if pair.decided.anytime is None else "decided"
    return (
        word,
        f"as the only question: {p} against {level}. Not valid if you picked this pair after you saw the ranking",
    )


def _clusters(given: _Given) -> _Row:
    cluster, p = given.pair.cluster, given.pair.p_clustered
    if cluster is None:
        return None
    effective = f"{decimal(cluster.effective_clusters, 1)}, design effect {decimal(cluster.design_effect, 1)}"
    sample = f"if the {cluster.clusters:,} categories are a sample of categories; they count as {effective}"
    return (None if p is None else f"p = {power(p)}"), sample


def _size(given: _Given) -> _Row:
    pair, board = given.pair, given.board
    needed = pair.required_n if pair.needs_items is None else pair.needs_items
    if needed is None:
        return None
    q = (
        ""
        if pair.resolution_ratio is None
        else f"; q = {ratio(pair.resolution_ratio)} in a planned test of this pair alone"
    )
    alone = "for this pair alone " if pair.needs_items is None else ""
    share = (
        "4 of 5 runs" if pair.needs_items is not None or board.power == _USUAL_POWER else f"{board.power:.0%} of runs"
    )
    finds = f"{alone}a test of {about_items(needed, board.unit)} finds this gap in {share}"
    answer = f"needs {'> ' if needed >= 1e6 else ''}{estimate(needed)}" if not alone else f"{pair.n:,} shared"
    return answer, f"{finds}; {board.benchmark} has {board.items:,}{q}"


def _procedures(given: _Given) -> _Row:
    sides = given.pair.decided.as_dict()
    short = [each.name for key, each in PROCEDURES.items() if sides[key] is None]
    note = f"undecided or not computed: {', '.join(short)}" if short else "all of them"
    return f"{len(PROCEDURES) - len(short):,} of {len(PROCEDURES):,} decide", note


def _evidence(given: _Given) -> _Row:
    if given.pair.log_e is None or given.board.policy in _BETS:
        return None
    idle = f"evidence in the order of arrival; under order policy {given.board.policy} it decides nothing"
    return f"ln e = {decimal(given.pair.log_e)}".replace("-", "−"), idle


def _why(given: _Given) -> _Row:
    pair, board = given.pair, given.board
    leads = {
        "a": f"{pair.model_a} leads",
        "b": f"{pair.model_b} leads",
        "tie": "they are equal",
        None: "the lead is open",
    }
    text = f"on these items {leads[pair.settled]}"
    if pair.settled and pair.n < board.items:
        certain = board.policy != "committed"
        text += (
            ": the missing items cannot change it" if certain else f", settled at alpha {board.alpha:g}, over all pairs"
        )
    return _WORDS.get(pair.step, "not decided"), text


_WORDS: Final = {"decided": "decided", "against": "decided", "held": "held", "invalidated": "withdrawn"}


def _quote(given: _Given) -> _Row:
    made = f"decided{given.among}, alpha {given.board.alpha:g}"
    ends = {"decided": made, "against": made, "tie": f"not decided{given.among}, so this is a tie"}
    ends["equivalent"], items = f"equivalent{given.among}", counted(given.pair.n, f"shared {given.board.unit}")
    verdict = f"{ends.get(given.pair.step, 'no verdict yet')} (order policy {given.board.policy})"
    return None, f"On {given.board.benchmark}, {given.ahead} ({items}); {verdict}."


_Key = Literal["gap", "alone", "clusters", "size", "procedures", "evidence", "why", "quote"]

_ROWS: Final[Mapping[_Key, tuple[str, Callable[[_Given], _Row]]]] = {
    "gap": ("Gap", _gap),
    "alone": ("Chosen in advance", _alone),
    "clusters": ("By category", _clusters),
    "size": ("Size", _size),
    "procedures": ("All procedures", _procedures),
    "evidence": ("e-values", _evidence),
    "why": ("In full", _why),
    "quote": ("Quote", _quote),
}


def power(p: float, more: int = 0) -> str:
    """Format a p-value with an exponent that a page can show.

    >>> power(3.5e-5), power(0.0486), power(0.05004, 2), power(0.0), power(9.96e-4)
    ('3.5 × 10⁻⁵', '0.049', '0.05004', '< 10⁻³⁰⁰', '0.0010')
    """
    if p < 1e-300:
        return "< 10⁻³⁰⁰"
    text = f"{p:#.{2 + more}g}"
    if float(text) >= 1e-3:
        return text
    exponent = floor(log10(float(f"{p:.{1 + more}e}")))
    return f"{p / 10.0**exponent:.{1 + more}f} × 10{str(exponent).translate(_SUPERSCRIPT)}"
