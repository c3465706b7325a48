"""Windowed mechanisms: joint inference over neighbouring words of a text.

In: released rows, a window, a noise. Out: for every word a few candidates, and what speaks for each
of them.
Not here: where the fit comes from, and how candidates become a posterior (`joint_posterior`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from textveil.evaluate.attack.attack_contract import ProgressCallback
from textveil.evaluate.log_math import compute_log_sum, find_highest, softmax
from textveil.mechanism import Layout, Windowed
from textveil.randomness import Flags, Floats, Ids, Values
from textveil.table import EmbeddingTable

STATES_PER_WORD = {1: 64, 2: 32, 3: 14}
"""States of a word, by the number of words weighed jointly.

A table then has 64 to 2,744 combinations.
"""

STRATA = 5
"""States that stand for all rows that are no candidates."""

PRIOR_SAMPLE_SIZE = 512
"""Rows drawn from the prior, among which those stand-ins are found."""

MIN_JOINT_WEIGHT = 0.25
"""The least share of the top weight for joint weighing.

Neighbours of a smaller weight are not weighed jointly; at most three words are.
"""

MESSAGE_ROUNDS = 12
"""Rounds of messages between neighbours.

A word hears of as many words on each side.
"""

WORDS_AT_ONCE, TABLES_AT_ONCE = 4096, 32
"""Words that are guessed together, and tables that are computed together.

About 150 MB in all; the tables stay in the cache.
"""

MAX_WINDOW_SCORES = 1 << 24
"""Scores that are in memory at once: 64 MiB."""

PARAMETER_GROUPS = 4
"""Quantile groups of unlike parameters, each fitted with its own softness."""

MAX_EXPONENT = 700.0
"""The largest exponent that is used; float64 overflows above e^709."""

SOFTNESS_BOUNDS = (0.005, 5.0)
"""Bounds of the softness, in multiples of a row's mean square."""


# ---- words side by side --------------------------------------------------------------------------


def find_neighbours(text: Ids, offset: int) -> tuple[Ids, Flags]:
    """Returns each word's place `offset` further on, and whether it is inside.

    Inside means in the same text.
    """
    place = np.arange(len(text)) + offset
    inside = (place >= 0) & (place < len(text))
    place = np.where(inside, place, 0)
    return place, inside & (text[place] == text)


@dataclass(frozen=True, kw_only=True, eq=False)
class Chain:
    """The M words that windows range over, one after another.

    Attributes:
        place: int64 [M], their positions.
        text: int64 [M], the text that each is in.
        output_rows: int64 [M], the row released for it, -1 where it passed.
        pass_rows: int64 [M], its row where it passed, else -1.
        offsets: the O places of a window, from left to right.
        weights: float64 [M, O], f_ij for the row released at a word; 0 where it passed.
        parameter: float64 [M], the mechanism's.
    """

    place: Ids
    text: Ids
    output_rows: Ids
    pass_rows: Ids
    offsets: tuple[int, ...]
    weights: Values
    parameter: Values

    def select(self, words: slice) -> Self:
        """Returns the chain of some adjacent words."""
        return replace(
            self,
            place=self.place[words],
            text=self.text[words],
            output_rows=self.output_rows[words],
            pass_rows=self.pass_rows[words],
            weights=self.weights[words],
            parameter=self.parameter[words],
        )

    def find_offset_words(self, offset: int) -> tuple[Ids, Floats, Flags]:
        """Returns the word at an offset of each window.

        And its weight float32 [M], and whether there is one.
        """
        place, inside = find_neighbours(self.text, offset)
        weight = np.where(inside, self.weights[:, self.offsets.index(offset)], 0.0)
        return place, weight.astype(np.float32), inside

    @cached_property
    def joint_offsets(self) -> tuple[int, ...]:
        """The offsets that are weighed jointly: at most three adjacent ones.

        The word itself is among them; they have the largest weights.
        """
        share = self.weights.sum(axis=0)
        size = min(3, int((share >= MIN_JOINT_WEIGHT * share.max()).sum()))
        starts = [i for i in range(len(share) - size + 1) if 0 in self.offsets[i : i + size]]
        best = max(starts, key=lambda i: float(share[i : i + size].sum()))
        return self.offsets[best : best + size]


def build_chain(
    mechanism: Windowed, layout: Layout, output_rows: Ids, pass_rows: Ids, parameter: Values
) -> Chain:
    """Builds the chain of words that a mechanism's windows range over.

    Args:
        mechanism: a window with any noise, or none.
        layout: of the releases.
        output_rows: the released rows [n].
        pass_rows: the row of every word that passed [T], -1 elsewhere.
        parameter: the mechanism's own, [n].
    """
    mixing = mechanism.mix.get_matrix(layout)
    is_used = mixing.weights > 0
    place = np.union1d(layout.positions, mixing.columns[is_used])
    rank = np.searchsorted(place, layout.positions)
    step = np.searchsorted(place, mixing.columns) - rank[:, None]
    columns = np.flatnonzero(is_used.any(axis=0))
    offsets = np.array([step[is_used[:, column], column][0] for column in columns])
    order = np.argsort(offsets)
    all_weights = np.zeros((len(place), len(offsets)))
    all_weights[rank] = mixing.weights[:, columns[order]]
    outputs = np.full(len(place), -1)
    outputs[rank] = output_rows
    parameters = np.full(len(place), parameter[0])
    parameters[rank] = parameter
    return Chain(
        place=place,
        text=np.searchsorted(layout.documents, place, side="right"),
        output_rows=outputs,
        pass_rows=pass_rows[place],
        offsets=tuple(offsets[order].tolist()),
        weights=all_weights,
        parameter=parameters,
    )


# ---- what is known of a word ---------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowChannel:
    """The channel from words to released rows, fitted to a rehearsal.

    Attributes:
        rows: float32 [V, d].
        offset: float32 [V], taken off a row's products for its score: half its square for Euclidean
            tables.
        log_prior: float32 [V].
        sample: int64 [SAMPLE], rows drawn from the prior.
        exclude: whether a word's own row is never released.
        levels: logarithms of parameters, rising.
        softness: tau at each level.
        log_rest: at each level, the logarithm of sum exp(s_v / tau) over rows v that are no
            candidates.
    """

    rows: Floats = field(repr=False)
    offset: Floats = field(repr=False)
    log_prior: Floats = field(repr=False)
    sample: Ids = field(repr=False)
    exclude: bool
    levels: Values
    softness: Values
    log_rest: Values

    @classmethod
    def fit(
        cls,
        table: EmbeddingTable,
        chain: Chain,
        secret: Ids,
        sample: Ids,
        prior: Values,
        exclude: bool,
    ) -> "WindowChannel":
        """Fits to a rehearsal of the words in `secret` [M]."""
        rows = table.take(slice(None))
        squares = np.einsum("ij,ij->i", rows, rows)
        offset = np.zeros_like(squares) if table.unit_rows else squares / 2
        centres = np.zeros((len(secret), rows.shape[1]), np.float32)
        for o in chain.offsets:
            place, weight, _ = chain.find_offset_words(o)
            centres += rows[secret[place]] * weight[:, None]
        # without noise there is no parameter
        level = np.nan_to_num(np.log(chain.parameter), posinf=0.0)
        output_places = np.flatnonzero(chain.output_rows >= 0)
        groups = (
            np.array_split(
                output_places[np.argsort(level[output_places], kind="stable")], PARAMETER_GROUPS
            )
            if np.ptp(level[output_places])
            else [output_places]
        )
        state_count = min(
            STATES_PER_WORD[len(chain.joint_offsets)] * len(chain.joint_offsets), len(rows)
        )
        low, high = (float(squares.mean()) * bound for bound in SOFTNESS_BOUNDS)
        fits = {}
        for group in groups:
            # Thinned out evenly, so that the scores fit in memory.
            group = group[:: -(-len(group) * len(rows) // (MAX_WINDOW_SCORES // 2))]
            scores = centres[group] @ rows.T
            scores -= offset
            if exclude:
                scores[np.arange(len(group)), secret[group]] = -np.inf
            softness = _fit_softness(scores, chain.output_rows[group], low, high)
            np.put_along_axis(scores, find_highest(scores, state_count), -np.inf, axis=1)
            scores /= softness
            fits[float(level[group].mean())] = (
                softness,
                float(np.quantile(compute_log_sum(scores), 0.5, method="lower")),
            )
        levels = sorted(fits)
        return cls(
            rows=rows,
            offset=offset,
            log_prior=np.log(prior).astype(np.float32),
            sample=sample,
            exclude=exclude,
            levels=np.array(levels),
            softness=np.array([fits[at][0] for at in levels]),
            log_rest=np.array([fits[at][1] for at in levels]),
        )

    def _interpolate(self, chain: Chain, values: Values) -> Floats:
        level = np.nan_to_num(np.log(chain.parameter), posinf=0.0)
        result: Floats = np.interp(level, self.levels, values).astype(np.float32)
        return result

    def yield_beliefs(
        self, chain: Chain, report: ProgressCallback, step: str
    ) -> Iterator[tuple[Values, Ids]]:
        """Yields features and candidates of protected words.

        Features [m, c + 1, F] of c candidates and of "none of them", and the candidates [m, c].

        Features: log-posterior; whether the candidate is the output before, at, or after the word;
        whether it is none.
        """
        total = len(chain.place)
        for start in range(0, total, WORDS_AT_ONCE):
            report(step, start, total)
            # Words overlap by as many as messages travel; those farther away have no effect.
            first, end = max(0, start - MESSAGE_ROUNDS), min(total, start + WORDS_AT_ONCE)
            part = chain.select(slice(first, min(total, end + MESSAGE_ROUNDS)))
            candidates, belief = self._infer(part)
            features = np.zeros((*belief.shape, 5))
            features[:, :, 0] = np.log(np.maximum(belief, 1e-30))
            features[:, -1, 4] = 1
            for number, offset in enumerate((-1, 0, 1), 1):
                place, inside = find_neighbours(part.text, offset)
                output = np.where(inside, part.output_rows[place], -1)
                features[:, :-1, number] = candidates == output[:, None]
            output_places = (
                np.flatnonzero(part.output_rows[start - first : end - first] >= 0) + start - first
            )
            yield features[output_places], candidates[output_places]

    def _infer(self, chain: Chain) -> tuple[Ids, Floats]:
        """Infers candidates [M, c] and their probabilities [M, c + 1].

        The last column is the probability of all other rows.
        """
        states, log_prior = self._choose_states(chain)
        candidates = states[:, :-STRATA]
        is_public = chain.pass_rows >= 0
        expected = np.zeros((len(states), self.rows.shape[1]), np.float32)
        expected[is_public] = self.rows[chain.pass_rows[is_public]]
        belief = _run_sum_product(self._compute_tables(chain, states, log_prior, expected), chain)
        # once more, knowing what to expect of words of small weight
        if len(chain.joint_offsets) < len(chain.offsets):
            for start in range(0, len(states), TABLES_AT_ONCE):
                part = slice(start, start + TABLES_AT_ONCE)
                expected[part] = np.matmul(
                    belief[part, None, :-STRATA], self.rows[candidates[part]]
                )[:, 0]
            belief = _run_sum_product(
                self._compute_tables(chain, states, log_prior, expected), chain
            )
        rest_belief = belief[:, -STRATA:].sum(axis=1, keepdims=True)
        return candidates, np.concatenate([belief[:, :-STRATA], rest_belief], axis=1)

    def _choose_states(self, chain: Chain) -> tuple[Ids, Floats]:
        """Returns candidate rows [M, m] of each word and their log priors.

        The last `STRATA` of them stand for all other rows.

        A candidate's score is the numerator of the likelihood, sum_i f_ij s(y_i) / tau, times its
        prior.
        """
        size = min(STATES_PER_WORD[len(chain.joint_offsets)] - STRATA, len(self.rows))
        softness = self._interpolate(chain, self.softness)
        pull = np.zeros((len(chain.place), self.rows.shape[1]), np.float32)
        share = np.zeros(len(chain.place), np.float32)
        forced = []
        for offset in chain.offsets:  # of the windows that hold the word
            place, inside = find_neighbours(chain.text, -offset)
            inside &= chain.output_rows[place] >= 0
            weight = (
                chain.weights[place, chain.offsets.index(offset)] * inside / softness[place]
            ).astype(np.float32)
            output = np.where(inside, chain.output_rows[place], chain.output_rows).clip(min=0)
            pull += self.rows[output] * weight[:, None]
            share += weight
            if offset in chain.joint_offsets:
                forced.append(output)
        state = np.empty((len(chain.place), size + STRATA), np.int64)
        prior = np.empty(state.shape, np.float32)
        limit = max(1, MAX_WINDOW_SCORES // len(self.rows))
        for start in range(0, len(chain.place), limit):
            part = slice(start, start + limit)
            scores = pull[part] @ self.rows.T
            scores += self.log_prior
            if self.offset.any():
                scores -= share[part, None] * self.offset
            # A word may have stayed as it was, however rare it is: what was released is always a
            # candidate.
            for output in forced:
                np.put_along_axis(scores, output[part, None], np.inf, axis=1)
            best = find_highest(scores, size)
            thresholds = np.take_along_axis(scores, best[:, -1:], axis=1)
            stand_ins, mass = self._choose_stand_ins(scores[:, self.sample], thresholds)
            log_prior = self.log_prior[best]
            remaining_mass = np.maximum(
                1 - np.exp(log_prior, dtype=np.float64).sum(axis=1, keepdims=True), 1e-12
            )
            state[part, :size], state[part, size:] = best, stand_ins
            with np.errstate(divide="ignore"):
                prior[part, :size], prior[part, size:] = log_prior, np.log(remaining_mass * mass)
        pass_rows = chain.pass_rows[:, None]
        return np.where(pass_rows >= 0, pass_rows, state), np.where(
            pass_rows >= 0, _choose_first(prior), prior
        )

    def _choose_stand_ins(self, scores: Floats, thresholds: Floats) -> tuple[Ids, Floats]:
        """Picks sample rows [b, STRATA] that stand for all lower-scoring rows.

        For all rows that score below `thresholds` [b, 1]; returned with them are their shares of
        the rest.
        """
        below = scores < thresholds
        order = np.argsort(
            np.where(below, self.log_prior[self.sample] - scores, np.inf), axis=1, kind="stable"
        )
        count = np.count_nonzero(below, axis=1, keepdims=True)
        edges = PRIOR_SAMPLE_SIZE ** (np.arange(STRATA + 1) / STRATA - 1)
        edges[0] = 0
        middle = np.append(edges[1] / 2, np.sqrt(edges[1:-1] * edges[2:]))
        stand_ins = np.take_along_axis(order, (middle * count).astype(np.int64), axis=1)
        return self.sample[stand_ins], np.where(count > 0, np.diff(edges), 0.0).astype(np.float32)

    def _compute_tables(
        self, chain: Chain, states: Ids, log_prior: Floats, expected: Floats
    ) -> Floats:
        """Computes likelihood tables of the jointly weighed words: float32 [M, m, ...].

        P(released row | words weighed jointly) P(own word), scaled to at most 1.
        """
        softness, log_rest = (
            self._interpolate(chain, self.softness),
            self._interpolate(chain, self.log_rest),
        )
        slots = {offset: chain.find_offset_words(offset) for offset in chain.offsets}
        joint, m = len(chain.joint_offsets), states.shape[1]
        tables = np.empty((len(states), *[m] * joint), np.float32)
        for start in range(0, len(states), TABLES_AT_ONCE):
            part = slice(start, start + TABLES_AT_ONCE)
            tau, output = softness[part, None], chain.output_rows[part, None]
            tail = np.zeros((len(tau), self.rows.shape[1]), np.float32)
            for offset in chain.offsets:
                if offset not in chain.joint_offsets:
                    place, weight, _ = slots[offset]
                    tail += expected[place[part]] * weight[part, None]
            # all states of the window are rivals of the released row, each once; the released row
            # is the last
            rival = np.concatenate(
                [states[slots[offset][0][part]] for offset in chain.joint_offsets], axis=1
            )
            inside = np.stack([slots[offset][2][part] for offset in chain.joint_offsets], axis=1)
            is_first = _mark_first(np.where(np.repeat(inside, m, axis=1), rival, -1))
            rows = np.concatenate([rival, output.clip(min=0)], axis=1)
            vectors = self.rows[rows]
            base = (np.matmul(vectors, tail[:, :, None])[:, :, 0] - self.offset[rows]) / tau
            base[:, :-1][~is_first] = -np.inf
            numerator, terms = _align_axis(base[:, -1:].astype(np.float64), joint, None), []
            for axis, offset in enumerate(chain.joint_offsets):
                axis_states = slice(axis * m, (axis + 1) * m)
                products = np.matmul(vectors[:, axis_states], vectors.transpose(0, 2, 1))
                products *= (slots[offset][1][part, None] / tau)[:, None]
                if self.exclude and offset == 0:
                    products[rival[:, axis_states, None] == rows[:, None]] = -np.inf
                numerator = numerator + _align_axis(products[:, :, -1], joint, axis)
                terms.append(products[:, :, :-1].astype(np.float64))
            log = numerator - _compute_log_sums(
                base[:, :-1].astype(np.float64), terms, log_rest[part, None]
            )
            log[output[:, 0] < 0] = 0.0
            for axis, offset in enumerate(chain.joint_offsets):
                flat = np.zeros((len(tau), m), np.float32)
                unary = np.where(
                    inside[:, axis, None],
                    log_prior[part] if offset == 0 else flat,
                    _choose_first(flat),
                )
                log += _align_axis(unary, joint, axis)
            log -= log.max(axis=tuple(range(1, joint + 1)), keepdims=True)
            tables[part] = np.exp(log, out=log)
        return tables


def _fit_softness(scores: Floats, output_rows: Ids, low: float, high: float) -> float:
    """Fits the softness tau of greatest likelihood to drawn rows [b].

    By bisection, given scores [b, V]: the likelihood is concave in 1 / tau.
    """
    output_score = scores[np.arange(len(output_rows)), output_rows].mean()
    # A share of 0 times minus infinity would be NaN.
    finite = np.maximum(scores, -1e30)
    for _ in range(12):
        # The bounds are a factor of 1,000 apart, so the middle is taken in logarithms.
        middle = (low * high) ** 0.5
        mean = np.einsum("ij,ij->i", softmax(scores / middle), finite).mean()
        low, high = (low, middle) if mean < output_score else (middle, high)
    return high


def _choose_first(prior: Floats) -> Floats:
    """Returns a log prior that is certain of the first state.

    For words that passed, and beyond the end of a text.
    """
    certain = np.full_like(prior, -np.inf)
    certain[:, 0] = 0
    return certain


def _mark_first(rows: Ids) -> Flags:
    """Marks the first of each non-negative entry [b, r] per line."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    marks = np.empty(rows.shape, bool)
    np.put_along_axis(marks, order, np.diff(ordered, axis=1, prepend=-1) != 0, axis=1)
    return marks & (rows >= 0)


def _align_axis(values: Values | Floats, joint: int, axis: int | None) -> Values | Floats:
    """Reshapes values [b, m] to lie along one axis of the tables.

    The tables are [b, m, ...]; [b, 1] lies along none of their axes.
    """
    shape = [1] * joint
    if axis is not None:
        shape[axis] = values.shape[1]
    return values.reshape(-1, *shape)


def _compute_log_sums(base: Values, terms: list[Values], log_rest: Floats) -> Values:
    """Computes log normalizers for all combinations of states by matrix products.

    ln(e^rest + sum_v exp(base_v + sum_k terms_k[state_k, v])).

    Args:
        base: float64 [b, r].
        terms: for each word, float64 [b, m, r].
        log_rest: [b, 1].
    """
    joint, peak = len(terms), base.max(axis=1, keepdims=True)
    total = np.exp(base - peak)[:, None]
    scale = _align_axis(peak, joint, None)
    for axis, term in enumerate(terms):
        top = term.max(axis=2)
        scale = scale + _align_axis(top, joint, axis)
        factor = np.exp(term - top[:, :, None])
        if axis < joint - 1:
            total = (total[:, :, None] * factor[:, None]).reshape(len(base), -1, base.shape[1])
        else:
            total = np.matmul(total, factor.transpose(0, 2, 1))
    gap = _align_axis(log_rest, joint, None) - scale
    sums: Values = total.reshape(gap.shape)
    sums += np.exp(np.minimum(gap, MAX_EXPONENT))  # where e^gap would overflow, the sum is e^rest
    np.log(np.maximum(sums, 1e-300, out=sums), out=sums)
    sums += scale + np.maximum(gap - MAX_EXPONENT, 0)
    return sums


def _run_sum_product(tables: Floats, chain: Chain) -> Floats:
    """Computes the marginals [M, m] of all words by message passing.

    All messages along the texts are sent at once, `MESSAGE_ROUNDS` times.

    A message is about the words that two neighbouring tables share, as in a hidden Markov model of
    higher order.
    """
    count, m = tables.shape[:2]
    if tables.ndim == 2:
        return _normalize(tables)
    shared = tables[0].size // m
    joint_tables = tables.reshape(count, m, shared // m, m)  # first word, those between, last word
    by_middle = joint_tables.transpose(0, 2, 1, 3)
    is_linked = (chain.text[1:] == chain.text[:-1])[:, None]
    forward, backward = np.ones(
        (2, count, shared), np.float32
    )  # coming from the left, from the right
    for _ in range(MESSAGE_ROUNDS):
        first = forward.reshape(count, m, -1).transpose(0, 2, 1)[:, :, None]
        next_forward = np.matmul(first, by_middle).reshape(count, shared)[:-1]
        last = backward.reshape(count, -1, m)[..., None]
        next_backward = (
            np.matmul(by_middle, last)[..., 0].transpose(0, 2, 1).reshape(count, shared)[1:]
        )
        forward[1:] = np.where(is_linked, _normalize(next_forward), 1.0)
        backward[:-1] = np.where(is_linked, _normalize(next_backward), 1.0)
    joint_tables = joint_tables * forward.reshape(count, m, -1, 1)
    joint_tables *= backward.reshape(count, 1, -1, m)
    other_axes = tuple(axis + 1 for axis, offset in enumerate(chain.joint_offsets) if offset != 0)
    return _normalize(joint_tables.reshape(tables.shape).sum(axis=other_axes))


def _normalize(values: Floats) -> Floats:
    result: Floats = values / np.maximum(values.sum(axis=1, keepdims=True), 1e-30) + np.float32(
        1e-30
    )
    return result
