"""Words of a text side by side, and what their released rows say of them together.

In: released rows, a window, a noise. Out: for every word a few candidates, and what speaks for each of them.
Not here: where the fit comes from, and how candidates become a posterior (`joint`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch

from textveil.evaluate.attack.contract import Report
from textveil.mechanism import Layout, Windowed
from textveil.randomness import Flags, Ids, Values
from textveil.table import EmbeddingTable

STATES = {1: 64, 2: 32, 3: 14}
"""Rows that a word may be, by how many words are weighed jointly: a table of 64 to 2,744 combinations."""

STRATA = 5
"""Of these states, how many stand for all rows that are no candidates."""

SAMPLE = 512
"""Rows drawn from the prior, among which those stand-ins are found."""

JOINT = 0.25
"""Neighbours of at least this share of the top weight are weighed jointly, at most three words."""

MESSAGES = 12
"""Neighbours tell each other so many times what they believe: a word hears of so many words on each side."""

SLICE, ROWS = 4096, 256
"""Words that are guessed together, and tables that are made at once: about 150 MB in all."""

CELLS = 1 << 24
"""Scores that are held at once: 64 MiB."""

LEVELS = 4
"""Parts of equal size that rows of unlike parameters are split into, each with a softness of its own."""

SOFTNESS = (0.005, 5.0)
"""Between these multiples of a row's mean square the softness is searched."""


# ---- words side by side ----------------------------------------------------------------------------


def neighbour(text: Ids, offset: int) -> tuple[Ids, Flags]:
    """The place `offset` further on, and whether it is in the same text."""
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
        drawn: int64 [M], the row released for it, -1 where it passed.
        passed: int64 [M], its row where it passed, else -1.
        offsets: the O places of a window, from left to right.
        weights: float64 [M, O], f_ij for the row released at a word; 0 where it passed.
        parameter: float64 [M], the mechanism's.
    """

    place: Ids
    text: Ids
    drawn: Ids
    passed: Ids
    offsets: tuple[int, ...]
    weights: Values
    parameter: Values

    def part(self, chosen: slice) -> Self:
        """Some words in a row."""
        return replace(
            self,
            place=self.place[chosen],
            text=self.text[chosen],
            drawn=self.drawn[chosen],
            passed=self.passed[chosen],
            weights=self.weights[chosen],
            parameter=self.parameter[chosen],
        )

    def at(self, offset: int) -> tuple[Ids, torch.Tensor, Flags]:
        """For every window: which word stands at an offset, its weight float32 [M], and whether there is one."""
        place, inside = neighbour(self.text, offset)
        return (
            place,
            torch.from_numpy(np.where(inside, self.weights[:, self.offsets.index(offset)], 0.0)).float(),
            inside,
        )

    @cached_property
    def joint(self) -> tuple[int, ...]:
        """The offsets weighed jointly: at most three in a row, the word's own among them, of the largest weights."""
        share = self.weights.sum(axis=0)
        size = min(3, int((share >= JOINT * share.max()).sum()))
        starts = [i for i in range(len(share) - size + 1) if 0 in self.offsets[i : i + size]]
        best = max(starts, key=lambda i: float(share[i : i + size].sum()))
        return self.offsets[best : best + size]


def chain_of(mechanism: Windowed, layout: Layout, drawn: Ids, passed: Ids, parameter: Values) -> Chain:
    """The words of a layout that windows of a mechanism range over.

    Args:
        mechanism: a window with any noise, or none.
        layout: of the releases.
        drawn: the released rows [n].
        passed: the row of every word that passed [T], -1 elsewhere.
        parameter: the mechanism's own, [n].
    """
    mixing = mechanism.mix.matrix(layout)
    used = mixing.weights > 0
    place = np.union1d(layout.positions, mixing.columns[used])
    rank = np.searchsorted(place, layout.positions)
    step = np.searchsorted(place, mixing.columns) - rank[:, None]
    columns = np.flatnonzero(used.any(axis=0))
    offsets = np.array([step[used[:, column], column][0] for column in columns])
    order = np.argsort(offsets)
    whole = np.zeros((len(place), len(offsets)))
    whole[rank] = mixing.weights[:, columns[order]]
    outputs = np.full(len(place), -1)
    outputs[rank] = drawn
    parameters = np.full(len(place), parameter[0])
    parameters[rank] = parameter
    return Chain(
        place=place,
        text=np.searchsorted(layout.documents, place, side="right"),
        drawn=outputs,
        passed=passed[place],
        offsets=tuple(offsets[order].tolist()),
        weights=whole,
        parameter=parameters,
    )


# ---- what is known of a word -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowChannel:
    """From words to released rows, as fitted to a rehearsal.

    Attributes:
        rows: float32 [V, d].
        offset: float32 [V], taken off a row's products for its score: half its square for Euclidean tables.
        log_prior: float32 [V].
        sample: int64 [SAMPLE], rows drawn from the prior.
        exclude: whether a word's own row is never released.
        levels: logarithms of parameters, rising.
        softness: tau at each level.
        rest: at each level, the logarithm of sum exp(s_v / tau) over rows v that are no candidates.
    """

    rows: torch.Tensor = field(repr=False)
    offset: torch.Tensor = field(repr=False)
    log_prior: torch.Tensor = field(repr=False)
    sample: torch.Tensor = field(repr=False)
    exclude: bool
    levels: Values
    softness: Values
    rest: Values

    @classmethod
    def fit(
        cls, table: EmbeddingTable, chain: Chain, secret: Ids, sample: Ids, prior: Values, exclude: bool
    ) -> "WindowChannel":
        """Fits to a rehearsal of the words in `secret` [M]."""
        rows = torch.from_numpy(table.take(slice(None)))
        squares = rows.square().sum(dim=1)
        offset = torch.zeros(len(rows)) if table.unit_rows else squares / 2
        centres = torch.zeros(len(secret), rows.shape[1])
        for o in chain.offsets:
            place, weight, _ = chain.at(o)
            centres.addcmul_(rows[secret[place]], weight[:, None])
        level = np.nan_to_num(np.log(chain.parameter), posinf=0.0)  # without noise there is no parameter
        own = np.flatnonzero(chain.drawn >= 0)
        groups = np.array_split(own[np.argsort(level[own], kind="stable")], LEVELS) if np.ptp(level[own]) else [own]
        near = STATES[len(chain.joint)] * len(chain.joint)
        low, high = (float(squares.mean()) * bound for bound in SOFTNESS)
        found = {}
        for group in groups:
            group = group[:: -(-len(group) * len(rows) // (CELLS // 2))]
            scores = centres[group] @ rows.T - offset
            if exclude:
                scores.scatter_(1, torch.from_numpy(secret[group, None]), -torch.inf)
            softness = _softness(scores, torch.from_numpy(chain.drawn[group]), low, high)
            scores.scatter_(1, scores.topk(min(near, len(rows)), dim=1).indices, -torch.inf)
            found[float(level[group].mean())] = softness, float((scores / softness).logsumexp(dim=1).median())
        levels = sorted(found)
        return cls(
            rows=rows,
            offset=offset,
            log_prior=torch.from_numpy(np.log(prior)).float(),
            sample=torch.from_numpy(sample),
            exclude=exclude,
            levels=np.array(levels),
            softness=np.array([found[at][0] for at in levels]),
            rest=np.array([found[at][1] for at in levels]),
        )

    def _at(self, chain: Chain, values: Values) -> torch.Tensor:
        level = np.nan_to_num(np.log(chain.parameter), posinf=0.0)
        return torch.from_numpy(np.interp(level, self.levels, values)).float()

    def beliefs(self, chain: Chain, report: Report, step: str) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Features [m, c + 1, F] of c candidates and of "none of them", and the candidates [m, c], for protected words.

        Features: log-posterior; whether the candidate is the output before, at, or after the word; whether it is none.
        """
        total = len(chain.place)
        for start in range(0, total, SLICE):
            report(step, start, total)
            first, end = max(0, start - MESSAGES), min(total, start + SLICE)
            part = chain.part(slice(first, min(total, end + MESSAGES)))
            candidates, belief = self._infer(part)
            features = torch.zeros(*belief.shape, 5, dtype=torch.float64)
            features[:, :, 0] = belief.clamp(min=1e-30).log()
            features[:, -1, 4] = 1
            for number, offset in enumerate((-1, 0, 1), 1):
                place, inside = neighbour(part.text, offset)
                output = torch.from_numpy(np.where(inside, part.drawn[place], -1))
                features[:, :-1, number] = (candidates == output[:, None]).double()
            own = np.flatnonzero(part.drawn[start - first : end - first] >= 0) + start - first
            yield features[own], candidates[own]

    def _infer(self, chain: Chain) -> tuple[torch.Tensor, torch.Tensor]:
        """Candidates [M, c] and their probabilities with that of all other rows, float64 [M, c + 1]."""
        states, log_prior = self._states(chain)
        candidates = states[:, :-STRATA]
        known = torch.from_numpy(chain.passed >= 0)
        expected = torch.zeros(len(states), self.rows.shape[1])
        expected[known] = self.rows[chain.passed[chain.passed >= 0]]
        belief = _sum_product(self._tables(chain, states, log_prior, expected), chain)
        if len(chain.joint) < len(chain.offsets):  # once more, knowing what to expect of words of small weight
            for start in range(0, len(states), ROWS):
                part = slice(start, start + ROWS)
                expected[part] = torch.bmm(belief[part, None, :-STRATA], self.rows[candidates[part]])[:, 0]
            belief = _sum_product(self._tables(chain, states, log_prior, expected), chain)
        rest = belief[:, -STRATA:].sum(dim=1, keepdim=True)
        return candidates, torch.cat([belief[:, :-STRATA], rest], dim=1).double()

    def _states(self, chain: Chain) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows that each word may be [M, m], and their log-prior; the last `STRATA` stand for all other rows.

        A candidate's score is the numerator of the likelihood, sum_i f_ij s(y_i) / tau, times its prior.
        """
        size = min(STATES[len(chain.joint)] - STRATA, len(self.rows))
        softness = self._at(chain, self.softness)
        pull, share = torch.zeros(len(chain.place), self.rows.shape[1]), torch.zeros(len(chain.place))
        forced = []
        for offset in chain.offsets:  # of the windows that hold the word
            place, inside = neighbour(chain.text, -offset)
            inside &= chain.drawn[place] >= 0
            weight = torch.from_numpy(chain.weights[place, chain.offsets.index(offset)] * inside) / softness[place]
            output = torch.from_numpy(np.where(inside, chain.drawn[place], chain.drawn).clip(min=0))
            pull.addcmul_(self.rows[output], weight.float()[:, None])
            share += weight
            if offset in chain.joint:
                forced.append(output)
        states, priors = [], []
        limit = max(1, CELLS // len(self.rows))
        for start in range(0, len(chain.place), limit):
            part = slice(start, start + limit)
            scores = torch.addmm(self.log_prior - share[part, None] * self.offset, pull[part], self.rows.T)
            for output in forced:
                scores.scatter_(1, output[part, None], torch.inf)
            best = scores.topk(size, dim=1)
            others, mass = self._stand_ins(scores[:, self.sample], best.values[:, -1:])
            log_prior = self.log_prior[best.indices]
            left = (1 - log_prior.double().exp().sum(dim=1, keepdim=True)).clamp(min=1e-12)
            states.append(torch.cat([best.indices, others], dim=1))
            priors.append(torch.cat([log_prior, (left * mass).log().float()], dim=1))
        state, prior = torch.cat(states), torch.cat(priors)
        passed = torch.from_numpy(chain.passed)
        state = torch.where(passed[:, None] >= 0, passed[:, None], state)
        return state, torch.where(passed[:, None] >= 0, _only_first(prior), prior)

    def _stand_ins(self, scores: torch.Tensor, least: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows of the sample [b, STRATA] for all rows that score below `least` [b, 1], and their shares of the rest."""
        below = scores < least
        order = torch.where(below, scores - self.log_prior[self.sample], -torch.inf).argsort(dim=1, descending=True)
        count = below.sum(dim=1, keepdim=True)
        edges = SAMPLE ** (torch.arange(STRATA + 1) / STRATA - 1)
        edges[0] = 0
        middle = torch.cat([edges[1:2] / 2, (edges[1:-1] * edges[2:]).sqrt()])
        chosen = order.gather(1, (middle * count).long())
        return self.sample[chosen], torch.where(count > 0, edges.diff(), 0.0)

    def _tables(
        self, chain: Chain, states: torch.Tensor, log_prior: torch.Tensor, expected: torch.Tensor
    ) -> torch.Tensor:
        """P(released row | words weighed jointly) P(own word), scaled to at most 1: float32 [M, m, ...]."""
        softness, rest = self._at(chain, self.softness), self._at(chain, self.rest)
        slots = {offset: chain.at(offset) for offset in chain.offsets}
        joint, m = len(chain.joint), states.shape[1]
        tables = torch.empty(len(states), *[m] * joint)
        for start in range(0, len(states), ROWS):
            part = slice(start, start + ROWS)
            tau, output = softness[part, None], torch.from_numpy(chain.drawn)[part]
            drawn = output.clamp(min=0)[:, None]
            tail = torch.zeros(len(tau), self.rows.shape[1])
            for offset in chain.offsets:
                if offset not in chain.joint:
                    place, weight, _ = slots[offset]
                    tail.addcmul_(expected[place[part]], weight[part, None])
            # all states of the window are rivals of the released row, each once
            rival = torch.cat([states[slots[offset][0][part]] for offset in chain.joint], dim=1)
            inside = torch.from_numpy(np.stack([slots[offset][2][part] for offset in chain.joint], axis=1))
            once = _first_of_each(torch.where(inside.repeat_interleave(m, dim=1), rival, -1))
            vectors = self.rows[torch.cat([rival, drawn], dim=1)]
            base = (torch.einsum("brd,bd->br", vectors, tail) - self.offset[torch.cat([rival, drawn], dim=1)]) / tau
            base[:, :-1].masked_fill_(~once, -torch.inf)
            numerator, terms = _axis(base[:, -1:].double(), joint, None), []
            for axis, offset in enumerate(chain.joint):
                own = slice(axis * m, (axis + 1) * m)
                weight = slots[offset][1][part, None] / tau
                products = torch.bmm(vectors[:, own], vectors.transpose(1, 2)) * weight[:, None]
                if self.exclude and offset == 0:
                    products.masked_fill_(rival[:, own, None] == torch.cat([rival, drawn], dim=1)[:, None], -torch.inf)
                numerator = numerator + _axis(products[:, :, -1].double(), joint, axis)
                terms.append(products[:, :, :-1].double())
            log = numerator - torch.logaddexp(
                _log_sum(base[:, :-1].double(), terms), _axis(rest[part, None], joint, None)
            )
            log = torch.where(_axis(output[:, None] >= 0, joint, None), log, 0.0)
            for axis, offset in enumerate(chain.joint):
                flat = torch.zeros(len(tau), m)
                unary = torch.where(inside[:, axis, None], log_prior[part] if offset == 0 else flat, _only_first(flat))
                log = log + _axis(unary, joint, axis)
            tables[part] = (log - log.flatten(1).amax(dim=1).view(-1, *[1] * joint)).exp().float()
        return tables


def _softness(scores: torch.Tensor, drawn: torch.Tensor, low: float, high: float) -> float:
    """The tau of greatest likelihood of drawn rows [b] given scores [b, V]: the likelihood is concave in 1 / tau."""
    reached = scores.gather(1, drawn[:, None]).mean()
    finite = scores.clamp(min=-1e30)
    for _ in range(12):
        middle = (low * high) ** 0.5
        mean = ((scores / middle).softmax(dim=1) * finite).sum(dim=1).mean()
        low, high = (low, middle) if mean < reached else (middle, high)
    return high


def _only_first(prior: torch.Tensor) -> torch.Tensor:
    """Certainty of the first state: for words that passed, and where a text has ended."""
    certain = torch.full_like(prior, -torch.inf)
    certain[:, 0] = 0
    return certain


def _first_of_each(rows: torch.Tensor) -> torch.Tensor:
    """Whether an entry [b, r] is not negative and the first of its kind in its line."""
    ordered, order = rows.sort(dim=1, stable=True)
    first = torch.ones_like(rows, dtype=torch.bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    return torch.zeros_like(first).scatter_(1, order, first) & (rows >= 0)


def _axis(values: torch.Tensor, joint: int, axis: int | None) -> torch.Tensor:
    """Values [b, m] along one of the axes of tables [b, m, ...]; [b, 1] along none."""
    shape = [1] * joint
    if axis is not None:
        shape[axis] = values.shape[1]
    return values.reshape(-1, *shape)


def _log_sum(base: torch.Tensor, terms: list[torch.Tensor]) -> torch.Tensor:
    """log sum_v exp(base_v + sum_k terms_k[state_k, v]) for all combinations of states: a product of matrices.

    Args:
        base: float64 [b, r].
        terms: for each word, float64 [b, m, r].
    """
    peak = base.amax(dim=1, keepdim=True)
    total = (base - peak).exp()[:, None]
    scale = _axis(peak, len(terms), None)
    for axis, term in enumerate(terms):
        highest = term.amax(dim=2)
        scale = scale + _axis(highest, len(terms), axis)
        factor = (term - highest[:, :, None]).exp()
        if axis < len(terms) - 1:
            total = (total[:, :, None] * factor[:, None]).flatten(1, 2)
        else:
            total = torch.bmm(total, factor.transpose(1, 2))
    return total.clamp(min=1e-300).log().view(-1, *[term.shape[1] for term in terms]) + scale


def _sum_product(tables: torch.Tensor, chain: Chain) -> torch.Tensor:
    """The marginals of all words [M, m], from messages along the texts, all at once, `MESSAGES` times.

    A message is about the words that two neighbouring tables share, as in a hidden Markov model of higher order.
    """
    count, m = tables.shape[:2]
    shared = tables[0].numel() // m
    linked = torch.from_numpy(chain.text[1:] == chain.text[:-1])[:, None]
    right, left = torch.ones(count, shared), torch.ones(count, shared)  # coming from the left, from the right
    by_last, by_first = tables.view(count, shared, m), tables.view(count, m, shared)
    for _ in range(MESSAGES):
        passed = (by_last * right[:, :, None]).view(count, m, shared).sum(dim=1)[:-1]
        back = (by_first * left[:, None]).view(count, shared, m).sum(dim=2)[1:]
        right[1:] = torch.where(linked, _normalized(passed), 1.0)
        left[:-1] = torch.where(linked, _normalized(back), 1.0)
    whole = (by_last * right[:, :, None]).view(count, m, shared) * left[:, None]
    others = [axis + 1 for axis, offset in enumerate(chain.joint) if offset != 0]
    whole = whole.view(tables.shape)
    return _normalized(whole.sum(dim=others) if others else whole)


def _normalized(values: torch.Tensor) -> torch.Tensor:
    return values / values.sum(dim=1, keepdim=True).clamp(min=1e-30) + 1e-30
