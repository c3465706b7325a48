"""Typed names: a name is replaced by a name of its type.

A person's name becomes another person's, a place a place, an organization an organization.
In: words that are names, by their type, as rows of the table. Out: rows of public lists, and the
loss of each word.
Not here: the detection of names (`protect`), the lists (`text.name_lists`), and how a release shows
them (`release`).
"""

from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from textveil.config import NameOptions
from textveil.errors import BudgetError, ConfigError
from textveil.mechanism.block import Block, Layout
from textveil.mechanism.rule import Exponential
from textveil.mechanism.select import Select
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Distance
from textveil.protect import Protection
from textveil.randomness import Ids, Randomness, Values
from textveil.table import EmbeddingTable
from textveil.text import load_names

NAME_LABELS = {
    "PERSON": ("PERSON", ("given", "family", "both")),
    "PERSON given": ("PERSON", ("given", "both")),
    "PERSON family": ("PERSON", ("family", "both")),
    "LOCATION": ("LOCATION", None),
    "ORGANIZATION": ("ORGANIZATION", None),
}
"""Every label of a name: its type, and the kinds listed.

None stands for all kinds.
"""

MIN_LISTED_NAMES = 20
"""Smallest number of listed names in a table.

With fewer a name would hide among too few.
"""


class NameListing(NamedTuple):
    """The names of one label as a table, and their rows.

    The rows are those of the whole table.
    """

    table: EmbeddingTable
    rows: Ids


@dataclass(frozen=True, kw_only=True, eq=False)
class NameSampler:
    """Draws names from public lists. Make one with `build`.

    A word becomes a row of its list by a public function: the name on the list that is nearest to
    the word's row. Then the mechanism draws one of the list, so that what is promised holds for any
    two words of the same label: local DP.

    Attributes:
        options: the rule and its epsilon.
        table: the whole table.
        lists: the names of every label.
        mechanism: what draws.
    """

    options: NameOptions
    table: EmbeddingTable
    lists: dict[str, NameListing] = field(repr=False)
    mechanism: Select

    @classmethod
    def build(cls, options: NameOptions, types: frozenset[str], table: EmbeddingTable) -> Self:
        """Builds the lists of these types, if the table has them.

        Raises:
            ConfigError: the table has hardly any name of a list, or the budget is below what
                rounding costs.
        """
        rule = Staircase(sizes=(options.k,)) if options.rule == "rankcape" else Exponential()
        lists = {
            label: _build_listing(label, table)
            for label, (type_, _) in NAME_LABELS.items()
            if type_ in types
        }
        if (
            options.k >= min(len(listing.rows) for listing in lists.values())
            and options.rule == "rankcape"
        ):
            raise ConfigError("names.k must be smaller than the shortest list of names")
        mechanism = Select(name=options.rule, utility=Distance(), rule=rule)
        for listing in lists.values():  # refuse now what a draw would refuse later
            epsilons = np.array([_convert_epsilon(options.epsilon, mechanism, listing.table)])
            mechanism.calibrate(listing.table, Layout.build(1), epsilons)
        return cls(options=options, table=table, lists=lists, mechanism=mechanism)

    def draw(
        self, protection: Protection, rows: Ids, documents: Ids, *, rng: Randomness
    ) -> tuple[Ids, Values]:
        """Draws a row of the whole table for every name.

        Also returns its local DP.

        Args:
            protection: the names among the N words, and their labels.
            rows: int64 [N], the rows of the words; secret.
            documents: int64 [B + 1], where each text starts.
            rng: opened for every list in turn, whatever the texts hold.

        Returns:
            int64 [N], -1 where nothing was drawn; float64 [N], 0 there.
        """
        name_rows, losses = np.full(len(rows), -1, np.int64), np.zeros(len(rows))
        # Lists without a name open their streams, too: what is drawn later must not depend on the
        # text.
        for label, listing in self.lists.items():
            where = np.flatnonzero(
                protection.named & (protection.group == protection.get_index(label))
            )
            layout = Layout.build(*np.diff(np.searchsorted(where, documents)).tolist())
            block = Block(layout=layout, rows=self.find_nearest(label, rows[where]))
            parameter = self.compute_parameter(label, layout)
            listing_rows = self.mechanism.privatize(listing.table, block, parameter, rng=rng)
            name_rows[where] = listing.rows[listing_rows]
            local_losses = self.mechanism.claim(listing.table).compute_ldp(
                self.mechanism.spend(listing.table, layout, parameter)
            )
            losses[where] = np.minimum(
                local_losses, self.mechanism.compute_local_dp_cap(listing.table, layout, parameter)
            )
        return name_rows, np.minimum(losses, self.options.epsilon)

    def find_nearest(self, label: str, rows: Ids) -> Ids:
        """Maps each row of the whole table to its nearest name.

        Returned as a row of the list.
        """
        distinct_rows, inverse = np.unique(rows, return_inverse=True)
        nearest_rows = self.lists[label].table.nearest(self.table.take(distinct_rows))
        return nearest_rows[inverse]

    def compute_parameter(self, label: str, layout: Layout) -> Values:
        """Returns the mechanism's parameter at every protected position of a layout.

        For names of one list.
        """
        table = self.lists[label].table
        epsilons = np.full(
            len(layout.positions), _convert_epsilon(self.options.epsilon, self.mechanism, table)
        )
        return self.mechanism.calibrate(table, layout, epsilons)


def _convert_epsilon(epsilon: float, mechanism: Select, table: EmbeddingTable) -> float:
    """Returns the mechanism's epsilon under which local DP is `epsilon`.

    Local DP over the list.
    """
    claim = mechanism.claim(table)
    if claim.kind == "ldp":
        return epsilon
    converted = (epsilon - claim.additive) / claim.diameter
    if converted < 1e-6:
        raise BudgetError(
            "names.epsilon is too small for the rule exponential: take a larger one, or rankcape"
        )
    return converted


def _build_listing(label: str, table: EmbeddingTable) -> NameListing:
    type_, kinds = NAME_LABELS[label]
    names = load_names(type_)
    candidates = (
        table.row_of.get(word.lower(), table.row_of.get(word, -1))
        for word, kind in zip(names.words, names.kinds, strict=True)
        if kinds is None or kind in kinds
    )
    rows = np.array(sorted({row for row in candidates if row >= 0}), np.int64)
    if len(rows) < MIN_LISTED_NAMES:
        raise ConfigError(
            f"names.types needs a table with at least {MIN_LISTED_NAMES} names of {type_}; "
            f"{table.name} has {len(rows)}"
        )
    return NameListing(
        EmbeddingTable.build(
            name=f"{table.name}, {label}",
            words=[table.words[row] for row in rows.tolist()],
            vectors=table.take(rows),
            metric=table.metric,
            device=table.device,
        ),
        rows,
    )
