"""An offline fold in plain Python, event by event, that shares no code with the engine: dictionaries, math.lgamma, one pair at a time."""

import hashlib
import math
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import pairwise

from scipy import stats as distributions
from scipy.special import betainc


def log_e(b, c):
    """ln e of beta(1,1)."""
    return math.lgamma(1 + b) + math.lgamma(1 + c) - math.lgamma(2 + b + c) + (b + c) * math.log(2)


def log_exact(b, c, missing):
    """-ln of the exact two-sided p at N, every missing item counted against the leader."""
    trials = b + c + missing
    return max(0.0, -math.log(2) - float(distributions.binom.logsf(max(b, c) - 1, trials, 0.5))) if trials else 0.0


def log_half_e_plus(b, c):
    """ln (e+ / 2) of beta(1,1), for the leader."""
    tail = float(betainc(c + 1, b + 1, 0.5))
    return log_e(b, c) + math.log(tail) if tail > 0 else -math.inf


LAMBDAS = [0.002, 0.005, 0.01] + [k / 50 for k in range(1, 50)]


@cache
def log_gains(d):
    return [math.log1p(bet * d) for bet in LAMBDAS]


def shares(weights, clusters):
    """What a difference of an item of each cluster is multiplied by: its weight over its items, as a share of the largest; None without."""
    if weights is None:
        return None
    each = {name: Fraction(1 if isinstance(weights, str) else weights[name]) / size for name, size in clusters.items()}
    return {name: share / max(each.values()) for name, share in each.items()}


def log_graded_halves(differences, missing=None):
    """ln (e+ / 2) and ln (e- / 2) of the graded grid, with so many missing items counted against either."""
    halves = []
    for sign in (1, -1):
        seen = Counter(sign * d for d in differences)
        for most, count in (missing or {}).items():
            seen[-most] += count
        gains = [[count * gain for gain in log_gains(float(d))] for d, count in seen.items()]
        logs = [math.fsum(column) for column in zip(*gains, strict=True)]
        halves.append(math.log(sum(map(math.exp, logs)) / len(LAMBDAS) / 2))
    return halves


def natural(item):
    """A sort key of ids that are words, the last of which may be a number."""
    head, _, tail = item.rpartition(" ")
    return (head, 0, int(tail)) if tail.isdigit() else (item, 1, 0)


def suspicious(place, clusters, positions):
    """Whether the items of the model that came as number `place` refute a random order, at a look; see docs/explanation/statistics.md."""
    n = len(clusters)
    look = math.log2(n / 32) + 1
    if look < 1 or look != int(look):
        return False
    share = 0.01 / (2 * place * (place + 1) * look * (look + 1))
    alike = sum(x == y for x, y in pairwise(clusters))
    chance = sum(m * (m - 1) for m in Counter(clusters).values()) / (n * (n - 1))
    if alike and distributions.binom.sf(alike - 1, n - 1, min(chance, 1)) <= share:
        return True
    return positions is not None and distributions.pearsonr(range(n), positions).pvalue <= share


def generation(pair):
    """The family of a pair: the newer of its two epochs, and whether both models have it."""
    (_, one), (_, other) = pair
    return max(one, other), one == other


SETTLED_BETS = [0.01 * 2**k for k in range(7)]


class Bets:
    """Capital of a pair on the sum over all items of a committed order, for either model, by the definition."""

    def __init__(self, items):
        self.left, self.capital, self.sums = items, ([1.0] * 7, [1.0] * 7), [0, 0]

    def step(self, low, high):
        """Bet on an item, and return e+ / 2 and e- / 2."""
        for side, d in enumerate((low, -high)):
            mean = max(-1.0, min(1.0, -self.sums[side] / self.left))
            cap = math.inf if mean == -1 else 1 / (1 + mean)
            self.capital[side][:] = [
                capital * max(0.0, 1 + min(bet, cap) * (d - mean))
                for capital, bet in zip(self.capital[side], SETTLED_BETS, strict=True)
            ]
            self.sums[side] += d
        self.left -= 1
        return [math.inf if s > self.left else math.fsum(c) / 14 for s, c in zip(self.sums, self.capital, strict=True)]


class Claim:
    """The largest evidence of each pair, the steps of this moment and the alpha that each family has spent."""

    def __init__(self, kind):
        self.kind, self.peaks, self.steps, self.spent = kind, {}, defaultdict(list), defaultdict(float)


class Oracle:
    """Folds the events of one benchmark."""

    def __init__(
        self,
        *,
        alpha=0.05,
        policy="none",
        items=None,
        capacity=None,
        family_pairs=None,
        item_ids=None,
        seed=None,
        scores="binary",
        repeats=1,
        missing="worst",
        weights=None,
        clusters=None,
        look=0,
        known=False,
    ):
        self.look, self.known = look, known and not (scores == "graded" or repeats != 1 or weights is not None)
        self.alpha, self.policy, self.items_declared, self.capacity = alpha, policy, items, capacity
        self.family_pairs = None if family_pairs is None else {frozenset(pair) for pair in family_pairs}
        self.graded, self.repeats, self.mixed = (
            scores == "graded" or repeats != 1 or weights is not None,
            repeats,
            False,
        )
        self.share, self.sizes, self.shared = shares(weights, clusters), clusters, defaultdict(Counter)
        """By what the differences of a cluster are multiplied, its items, and how many of them each pair shares."""
        self.differences, self.leads = defaultdict(list), defaultdict(Fraction)
        self.item_scores = {}
        self.missing, self.held, self.ended = missing, False, set()
        self.rows, self.of_item, self.repeat_scores = {}, defaultdict(set), defaultdict(list)
        self.scores = {}
        self.items = {}
        self.models = {}
        self.superseded = set()
        self.counts = defaultdict(lambda: [0, 0, 0])
        self.family = {}
        self.verdicts = {}
        self.claims = {"anytime_family": Claim("decided"), "settled": Claim("settled")}
        self.bets = {}
        in_order = sorted(item_ids or (), key=natural)
        self.places = None if item_ids is None else {item: k for k, item in enumerate(in_order)}
        self.permutation = seed and sorted(
            item_ids, key=lambda item: hashlib.sha256(f"{seed}\0{item}".encode()).digest()
        )
        self.prefixes = defaultdict(lambda: [0] * 6)
        self.rejected = 0
        self.clusters = {}
        self.arrived = defaultdict(list)
        self.suspect_at = None
        self.duplicates = self.conflicts = self.filled = self.events = 0
        self.betting = policy in {"completion", "committed", "trusted"}
        self.size = len(item_ids) if item_ids is not None else items
        self.settles = policy != "none" and self.size is not None

    def alpha_j(self, j):
        if self.capacity is not None:
            return self.alpha / self.capacity if j <= self.capacity else 0.0
        models = next(k for k in range(2, j + 2) if j <= k * (k - 1) // 2)
        slow = math.log(20.5) / ((j + 20) * math.log(j + 20) ** 2)
        return self.alpha / 2 * (1 / (models * (models - 1) ** 2) + slow)

    def event(self, event, place):
        """`place` is (record offset, index in the record)."""
        item, repeat, score = event["item_id"], event.get("repeat", 0), event["score"]
        model = (event["model"], event.get("epoch", 0))
        score = None if score is None else float(score)
        key = (item, repeat, model)
        new = key not in self.scores or (self.scores[key] is None and score is not None and not self.permutation)
        if (self.places is not None and item not in self.places) or (new and model in self.ended):
            self.rejected += 1
            return
        self.events += 1
        self.items.setdefault(item, len(self.items))
        self.rows.setdefault((item, repeat), len(self.rows))
        self.clusters.setdefault(item, event.get("cluster"))
        if model not in self.models:
            self.models[model] = len(self.models)
            self.new_epoch(model, place)
        if self.size is not None and len(self.items) > self.size:
            if self.policy == "completion":
                self.stop(place)
            elif self.settles and not self.held:
                self.invalidate(place, {"settled"})
            self.settles = False
        if new:
            self.filled += key in self.scores
            self.cell(item, repeat, model, score, place)
        elif self.scores[key] == score:
            self.duplicates += 1
        else:
            self.conflicts += 1

    def cell(self, item, repeat, model, score, place):
        """A new score, or skip."""
        first = model not in self.of_item[item]
        self.of_item[item].add(model)
        self.scores[item, repeat, model] = score
        if self.held:
            return
        has_bet = (item, model) in self.item_scores
        repeats = self.repeat_scores[item, model]
        if score is not None and (len(repeats) == self.repeats or (self.permutation and has_bet)):
            self.held = True
            self.stop(place)
            return
        if first:
            self.arrival(model, item, place)
        if score is not None:
            self.mixed |= not self.graded and score not in {0.0, 1.0}
            repeats.append(score)
            if len(repeats) == self.repeats:
                self.bet(item, model, place)
        elif self.permutation and not has_bet:
            self.bet(item, model, place)

    def bet(self, item, model, place):
        """Bet on an item of a model: on the mean of its repeats so far, or on a skip."""
        repeats = self.repeat_scores[item, model]
        score = sum(map(Fraction, repeats)) / len(repeats) if repeats else None
        self.item_scores[item, model] = score
        others = [other for other in sorted(self.models, key=self.models.get) if other != model]
        for other in others if score is not None else ():
            partner = self.item_scores.get((item, other))
            if partner is None:
                continue
            first, second = sorted((model, other), key=self.models.get)
            mine = {model: score, other: partner}
            self.shared[first, second][self.clusters[item]] += 1
            share = 1 if self.share is None else self.share[self.clusters[item]]
            self.pair((first, second), mine[first], mine[second], place, share)
        for other in others if score is not None and self.known else ():
            if (item, other) not in self.item_scores or self.item_scores[item, other] is None:
                self.alone(tuple(sorted((model, other), key=self.models.get)), place)
        for other in others if self.permutation and self.betting and not self.mixed else ():
            self.walk(tuple(sorted((model, other), key=self.models.get)), place)
        self.step_down(place)

    def end(self, record, place):
        """End runs: copy what they inherit, bet on what is incomplete, judge pairs of ended runs."""
        model, epoch, base = record.get("model"), record.get("epoch"), record.get("base")
        runs = [
            run for run in self.models if model in {None, run[0]} and (epoch or 0 if model else epoch) in {None, run[1]}
        ]
        if not runs or (model and base is not None and (model, base) not in self.models):
            self.rejected += 1
            return
        fresh = [run for run in runs if run not in self.ended]
        for run in fresh:
            for item, repeat in list(self.rows) if base is not None else ():
                older = (item, repeat, (run[0], base))
                if older not in self.scores or (item, repeat, run) in self.scores:
                    continue
                bets = len(self.repeat_scores[item, run]) + (
                    self.permutation is not None and (item, run) in self.item_scores
                )
                if self.held or self.scores[older] is None or self.repeats == "all" or bets < self.repeats:
                    self.cell(item, repeat, run, self.scores[older], place)
            for item in self.items:
                if not self.held and self.repeat_scores[item, run] and (item, run) not in self.item_scores:
                    self.bet(item, run, place)
        self.ended.update(fresh)
        if self.missing == "ignorable" and self.policy != "trusted" and self.betting and not self.mixed:
            order = sorted(self.models, key=self.models.get)
            for second in order:
                for first in order[: self.models[second]]:
                    if {first, second} <= self.ended and {first, second} & set(fresh) and first[0] != second[0]:
                        self.judge((first, second), place)
        self.step_down(place)

    def judge(self, pair, place):
        """Judge a pair on the items it shares."""
        n, b, c = self.counts[pair]
        if not n or self.superseded & set(pair):
            return
        if self.graded:
            self.latch(
                pair, (n, None, None), max(log_graded_halves(self.differences[pair], {})), place, self.leads[pair]
            )
        else:
            both = log_exact(b, c, 0)
            if self.permutation:
                both = self.with_look(log_e(b, c), self.size - n, (b, c), (c, b))
            self.latch(pair, (n, b, c), both, place)

    def new_epoch(self, model, place):
        """Only the newest epoch of a model is compared: every decision on an older one ends with the first event of the newer one."""
        epochs = [other for other in self.models if other[0] == model[0]]
        newest = max(epochs)
        for old in set(epochs) - {newest} - self.superseded:
            for (pair, procedure, kind), (_, *rest) in list(self.verdicts.items()):
                ended = self.superseded & set(pair) or (pair, procedure, "invalidated") in self.verdicts
                if kind in {"decided", "settled"} and old in pair and not ended:
                    self.verdicts[pair, procedure, "superseded"] = (place, *rest)
            self.superseded.add(old)

    def stop(self, place, *, order=False):
        """No verdict from this event on, and those that were given no longer count, but for settled pairs if the order was refuted."""
        if not self.betting:
            return
        self.betting = False
        self.invalidate(place, {"decided"} if order else {"decided", "settled"})

    def invalidate(self, place, kinds):
        """Withdraw verdicts of some kinds, once each."""
        for (pair, procedure, kind), (_, *rest) in list(self.verdicts.items()):
            if kind in kinds:
                self.verdicts.setdefault((pair, procedure, "invalidated"), (place, *rest))

    def arrival(self, model, item, place):
        self.arrived[model].append(item)
        if self.suspect_at is not None:
            return
        items = self.arrived[model]
        positions = None if self.places is None else [self.places[x] for x in items]
        if suspicious(1 + list(self.models).index(model), [self.clusters[x] for x in items], positions):
            self.suspect_at = place
            if self.policy == "trusted":
                self.stop(place, order=True)

    def pair(self, pair, x, y, place, share=1):
        first, second = pair
        count = self.counts[pair]
        new = count[0] == 0
        count[0] += 1
        count[1] += (x, y) == (1.0, 0.0)
        count[2] += (x, y) == (0.0, 1.0)
        if first[0] == second[0]:
            return
        if self.superseded & set(pair):
            return
        if new and (self.family_pairs is None or frozenset({first[0], second[0]}) in self.family_pairs):
            self.family[pair] = 1 + sum(generation(pair) == generation(other) for other in self.family)
        difference = (Fraction(x) - Fraction(y)) * share
        self.differences[pair].append(difference)
        self.leads[pair] += difference
        if not self.betting or self.mixed:
            return
        n, b, c = count
        if self.known and self.policy == "completion":
            self.certain(pair)
        elif self.settles:
            lead, missing = self.leads[pair], sum(d * count for d, count in self.left(pair).items())
            if abs(lead) > missing or missing == lead == 0:
                sums = (n, None, None) if self.graded else (n, b, c)
                self.claims["settled"].steps[pair].append((math.inf, sums, (lead > 0) - (lead < 0)))
        if self.permutation:
            return
        if self.graded:
            halves = log_graded_halves(self.differences[pair], self.left(pair) if self.policy == "completion" else None)
            evidence = max(halves) if self.policy == "completion" else math.log(sum(map(math.exp, halves)))
            self.latch(pair, (n, None, None), evidence, place, self.leads[pair])
            return
        if self.policy == "completion":
            missing = self.items_declared - n
            evidence = self.at_worst(pair) if self.known else log_exact(b, c, missing)
        else:
            evidence = log_e(b, c)
        self.latch(pair, (n, b, c), evidence, place)

    def extremes(self, pair):
        """How many items A wins and B wins on all items: where all that is open goes against A, and where it goes against B."""
        worst, best = [0, 0], [0, 0]
        scores = [[self.item_scores.get((item, model)) for model in pair] for item in self.items]
        for x, y in [*scores, *[(None, None)] * (self.items_declared - len(self.items))]:
            x_low, x_high = (0, 1) if x is None else (x, x)
            y_low, y_high = (0, 1) if y is None else (y, y)
            worst = [worst[0] + (x_low - y_high == 1), worst[1] + (x_low - y_high == -1)]
            best = [best[0] + (x_high - y_low == 1), best[1] + (x_high - y_low == -1)]
        return worst, best

    def alone(self, pair, place):
        """A score that the other model lacks: what is known of the pair, once it shares an item."""
        n, b, c = self.counts[pair]
        usual = n and pair[0][0] != pair[1][0] and not self.superseded & set(pair) and self.betting and not self.mixed
        if usual and self.policy == "completion":
            self.certain(pair)
            self.latch(pair, (n, b, c), self.at_worst(pair), place)

    def at_worst(self, pair):
        """-ln of the exact p at N, everything open at its worst for the leader."""
        worst, best = self.extremes(pair)
        return max(log_exact(won, lost, 0) if won > lost else 0.0 for won, lost in (worst, best[::-1]))

    def certain(self, pair):
        """Settle a pair if every way that open items may go has the same leader, or if all are in and none leads."""
        worst, best = self.extremes(pair)
        low, high = worst[0] - worst[1], best[0] - best[1]
        if self.settles and (low > 0 or high < 0 or (low == high == 0 and self.counts[pair][0] == self.size)):
            self.claims["settled"].steps[pair].append((math.inf, tuple(self.counts[pair]), (low > 0) - (high < 0)))

    def left(self, pair):
        """How many items are missing of a pair, by how far each can move the lead."""
        if self.share is None:
            return {1: self.size - self.counts[pair][0]}
        left = Counter()
        for name, size in self.sizes.items():
            left[self.share[name]] += size - self.shared[pair][name]
        return left

    def walk(self, pair, place):
        """Bet on every further item of the permutation that both models have now."""
        first, second = pair
        if first[0] == second[0]:
            return
        sums = self.prefixes[pair]
        while sums[0] < len(self.permutation):
            item = self.permutation[sums[0]]
            if (item, first) not in self.item_scores or (item, second) not in self.item_scores:
                return
            x, y = self.item_scores[item, first], self.item_scores[item, second]
            (x_low, x_high), (y_low, y_high) = ((0, 1) if z is None else (z, z) for z in (x, y))
            low, high = x_low - y_high, x_high - y_low
            sums[0] += 1
            sums[1] += None not in {x, y}
            sums[2] += low == 1
            sums[3] += low == -1
            sums[4] += high == 1
            sums[5] += high == -1
            _, n, b, c_worst, b_best, c = sums
            if (b, c_worst) == (b_best, c):
                evidence = log_e(b, c)
            else:
                evidence = math.log(math.exp(log_half_e_plus(b, c_worst)) + math.exp(log_half_e_plus(c, b_best)))
            evidence = self.with_look(evidence, len(self.permutation) - sums[0], (b, c_worst), (c, b_best))
            self.latch(pair, (n, b, c), evidence, place)
            if (pair, "settled", "settled") not in self.verdicts and not self.superseded & set(pair):
                halves = self.bets.setdefault(pair, Bets(self.size)).step(low, high)
                side = 1 if halves[0] >= halves[1] else -1
                self.claims["settled"].steps[pair].append((math.log(sum(halves)), (n, b, c), side))

    def with_look(self, evidence, left, *sides):
        """ln 1/p of the bets or of the exact test with every item left against the leader, each over its share of alpha."""
        if not self.look:
            return evidence
        at_end = max(log_exact(won, lost + left, 0) if won > lost + left else 0.0 for won, lost in sides)
        return max(evidence + math.log(1 - self.look), at_end + math.log(self.look))

    def latch(self, pair, sums, evidence, place, lead=None):
        if self.superseded & set(pair):
            return
        n, b, c = sums
        lead = b - c if lead is None else lead
        self.claims["anytime_family"].steps[pair].append((evidence, (n, b, c), (lead > 0) - (lead < 0)))
        self.turn(pair, "anytime_family", sums, lead, place)
        if (pair, "anytime", "decided") in self.verdicts:
            self.turn(pair, "anytime", sums, lead, place)
        elif evidence >= -math.log(self.alpha) - 1e-10:
            self.verdicts[pair, "anytime", "decided"] = (place, 1 if lead > 0 else -1, n, b, c)

    def turn(self, pair, procedure, sums, lead, place):
        """The other model leads after a decision."""
        decided = self.verdicts.get((pair, procedure, "decided"))
        if decided and (pair, procedure, "reversed") not in self.verdicts and decided[1] * lead < 0:
            self.verdicts[pair, procedure, "reversed"] = (place, 1 if lead > 0 else -1, *sums)

    def step_down(self, place):
        """Close latches in the families, round by round: each lowers the thresholds of the others."""
        for name, claim in self.claims.items():
            now, claim.steps = claim.steps, defaultdict(list)
            for pair, steps in now.items():
                for evidence, sums, side in steps:
                    peak = claim.peaks.setdefault(pair, [0.0, 0, None])
                    if evidence > peak[0]:
                        peak[:2] = evidence, side
                    if evidence < math.inf:
                        peak[2] = sums
            while True:
                waiting = [pair for pair in claim.peaks if self.waits(pair, name)]
                needs = {pair: self.needs(pair, claim) for pair in waiting}
                met = [pair for pair, need in needs.items() if claim.peaks[pair][0] >= need - 1e-10]
                for pair in met:
                    self.close(pair, name, needs[pair], now[pair], place)
                if not met:
                    break

    def waits(self, pair, name):
        """Whether a pair may still close a latch."""
        closed = (pair, name, self.claims[name].kind) in self.verdicts
        return self.betting and not closed and not self.superseded & set(pair)

    def needs(self, pair, claim):
        """The evidence that a pair needs in its family; what is certain needs no place there."""
        alpha = self.alpha_j(self.family[pair]) if pair in self.family else 0.0
        if not alpha:
            return math.inf
        return -math.log(alpha) + math.log(1 - claim.spent[generation(pair)] / self.alpha)

    def close(self, pair, name, need, steps, place):
        """Close a latch by the pair's own step of this moment, or else by its largest evidence so far."""
        claim = self.claims[name]
        if pair in self.family:
            claim.spent[generation(pair)] += self.alpha_j(self.family[pair])
        _, side, sums = claim.peaks[pair]
        later = []
        order = range(len(steps)) if name == "anytime_family" else sorted(range(len(steps)), key=lambda k: -steps[k][0])
        for k in order:
            evidence, own, towards = steps[k]
            if evidence >= need - 1e-10:
                side, sums, later = towards, own, steps[k + 1 :]
                break
        self.verdicts[pair, name, claim.kind] = (place, side, *sums)
        for _, own, towards in later if name == "anytime_family" else ():
            self.turn(pair, "anytime_family", own, towards, place)


class BattleOracle(Oracle):
    """Folds the battles of one benchmark: a unit is a vote, or the mean of two votes on one prompt."""

    def __init__(self, **options):
        super().__init__(**options)
        self.votes = defaultdict(dict)

    def event(self, event, place):
        """Take a vote: the first of a judge on a prompt of a pair counts."""
        self.events += 1
        for model in (event["model_a"], event["model_b"]):
            self.models.setdefault((model, 0), len(self.models))
        pair = tuple(sorted(((event["model_a"], 0), (event["model_b"], 0)), key=self.models.get))
        gain = {"a": 1, "b": -1, "tie": 0}[event["winner"]] * (1 if pair[0][0] == event["model_a"] else -1)
        votes = self.votes[event["item_id"], pair]
        if event.get("cluster") in votes:
            again = votes[event.get("cluster")] == gain
            self.duplicates, self.conflicts = self.duplicates + again, self.conflicts + (not again)
            return
        votes[event.get("cluster")] = gain
        if len(votes) == self.repeats:
            mean = Fraction(sum(votes.values()), len(votes))
            self.pair(pair, max(mean, 0), max(-mean, 0), place)
            self.step_down(place)
