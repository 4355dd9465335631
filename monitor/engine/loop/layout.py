"""The arrays that the loops go through, and what is declared of them."""

from math import log, pi
from typing import Any, NamedTuple

import numpy as np

ABSENT, SKIPPED, ZERO, ONE = 0, 1, 2, 3  # codes of scores
TRUSTED, COMPLETION, COMMITTED = 0, 1, 2  # policies
ANYTIME, FAMILY, SETTLED = 0, 1, 2  # claims
DECIDED, REVERSED, CLOSED = 0, 1, 4  # kinds of changes: their places in `schemas.results.changes.KINDS`
TIE = 2  # see `stats.evidence.settled`
AT, STAGE, OUT, JOINED, RAISED, LIVE, USED, FREE, WANTED, PENDING, READY, MET, FIRST, KNOWN, IGNORES = range(15)
"""Counters: the next event and what of it is done; rows written; pairs that joined a family, and whose peak rose; entries of the heap, how
many were ever used, the first free one, how many are wanted; weight closed in this round; whether a pair has met its need; new pairs that
share an item; the first row of this event; differences in the table of bets; whether what is missing of judged pairs is ignored."""

NOBODY = -1  # in place of the model of an event: pairs are judged at once
UNIT_OF = -2  # the same: a unit of battles; its pair is in place of the item

WHOLE = 2**62  # weight of a family
TOLERANCE = 1e-12  # see `stats.evidence.curtailed`
MARGIN = 0.1
FAR = 2**29  # items
BETS = np.array([0.01 * 2**k for k in range(7)])  # `stats.evidence.settled`
SMALL, LARGE = 1e-250, 1e250  # range of the capital of a bet
LN2 = log(2.0)
TAU = 2 * pi
NAT = 2.0**-40  # see `stats.evidence.graded`
NAN = float("nan")

Array = Any
"""Of numpy; `State` lists of what."""

Rows = tuple[Array, Array]
"""Rows of changes: event, pair, claim, kind, side, n, b, c, missing; evidence, threshold."""


class Rule(NamedTuple):
    """What is declared, and tables of it."""

    policy: int
    limit: float  # ln 1/alpha
    items: int  # 0: not declared, or refuted
    capacity: int  # of a family; 0: its places spend alpha
    table: Array  # float64, shape (4, counts): see `log_e`, and of k! what Stirling's formula leaves
    atoms: Array  # float64, shape (2, atoms): ln 2 theta and ln 2 (1 - theta); none for a Beta mixture
    a: float  # the Beta mixture
    b: float
    norm: float  # ln 2^(a + b) B(a, b)
    symmetric: bool
    graded: bool  # pairs bet on differences of any size
    unit: int  # of leads: 1, or that of graded scores
    rounding: int  # units by which rounding moves a lead at most with each item
    decides: bool  # else scores are only added up
    known: bool  # under completion, what one model scored bounds what the pair lacks of the other
    early: float  # ln of the share of alpha that the bets along a committed order have
    late: float  # the same of the exact test of all items; minus infinity without one


class Bets(NamedTuple):
    """What pairs add that bet on differences of any size (`stats.evidence.graded`): L bets on either model."""

    capital: Array  # int64, shape (pairs, 2 L): log capital in units of NAT
    lead: Array  # int64: sum of the differences in units of scores
    shared: Array  # int32, shape (pairs, clusters): shared items, where clusters have weights
    cluster: Array  # int64: cluster of each row of `State.values`, where they have weights
    share: Array  # float64, by cluster: what differences are multiplied by
    size: Array  # int64, by cluster: its declared items
    most: Array  # int64, by cluster, or of all items: units by which an item can move a lead
    worst: Array  # int64, shape (clusters or 1, L): what an item adds at its worst
    rise: Array  # int64, shape (L,): what an item adds at most to the evidence, one less that is missing included
    missing: Array  # int64, shape (L,): what the missing items of one pair add at their worst
    step: Array  # int64, shape (rows, 2 L): what a difference adds
    known: Array  # int64: the difference of each row
    key: Array  # int64, by slot of the hash table: a difference
    row: Array  # int32, by slot: its row; -1 for none


class Prefix(NamedTuple):
    """What a committed order adds."""

    place: Array  # int64: place of each item in the order
    column: Array  # uint8, shape (models, items): scores by place in the order
    reached: Array  # int64: length of each model's prefix
    sums: Array  # int32, shape (pairs, 6): n, b, c, c_worst, b_best over the prefix; the place from which on it is looked at again
    capital: Array  # float64, shape (pairs, 2, 7)
    step: Array  # float64, shape (models, 11): of the pair with each partner at this event, see `_walk`
    along: Array  # int32, shape (5,): the sums of a pair that is walked again


class State(NamedTuple):
    """The arrays of a benchmark. Arrays of pairs are in the order of pair indices."""

    cells: Array  # uint8, shape (items or more, models or more)
    tally: Array  # int64, shape (2, models): items that each has wrong, and right; of rule `known` alone
    values: Array  # int64, shape (items, models): graded scores of the items that come, in units; negative for none
    models: Array  # int64, shape (3, models): epoch, which epoch that is, and whether pairs of such models are judged at once
    n: Array  # int32: shared items, those that only i has right, and only j
    b: Array
    c: Array
    calm: Array  # int32: at 0 or below, the next shared item (of rule `known`, score of either model) is looked at
    closed: Array  # bool: no hypothesis any more
    joins: Array  # bool, of all pairs or of none: whether the pair has a place in the declared family
    place: Array  # int32: place in its family, from 1; 0 without one
    alone: Array  # int8, each: for whom it is decided; 2 and -2 once the lead has reversed since
    family: Array
    settled: Array
    peak: Array  # float64: largest evidence from ln 1/alpha on, negative if it is for the second model
    bound: Array  # float64: the same of the bets on what is settled; empty unless an order is committed
    near: (
        Array  # float32: evidence from which on the pair may be in the heap of its family; 0 where that is not computed
    )
    mark: Array  # uint8: whether the pair is in `raised`
    raised: Array  # int32: pairs whose peak has changed
    joined: Array  # int32: pairs that joined their family
    registered: Array  # int64, by family
    open: Array  # int64, shape (3, families): open weight, by claim
    need: Array  # float64: ln of that
    floor: Array  # float64: evidence + ln(alpha weight) from which on a pair is in the heap
    root: Array  # int32: the first entry of the heap, from 1; 0 for none
    score: Array  # float64, by entry
    link: Array  # int32, shape (3, entries): its pair, its first child and its next sibling, from 1
    count: Array  # int64
    prefix: Prefix
    bets: Bets


class Step(NamedTuple):
    """Where a pair is: what a change reports."""

    n: int
    b: int  # of differences of any size: the lead
    c: int
    missing: int
    evidence: float
    side: int
