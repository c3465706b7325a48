"""Audits of books by group: each group for itself, over the book of its own and with its own budget.

In: what builds a privatizer. Out: the same, or for one with books by group what builds one for each
group.
Not here: the checks (`run`). That a word goes through the book of its group is for the tests.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from textveil.mechanism import unwrap_books
from textveil.pipeline import Privatizer
from textveil.protect import GROUPS, Budget, Grouped, Uniform
from textveil.randomness import SeededRandomness
from textveil.table import Books
from textveil_bench.audit.audit_target import Build


@dataclass(frozen=True, kw_only=True)
class GroupBuild:
    """Builds the privatizer of one or several groups that have the same book and budget.

    Attributes:
        name: under which findings are reported: the mechanism's, and the groups.
        privatizer: without a seed.
    """

    name: str
    privatizer: Privatizer

    def __call__(self, *, seed: int | None = None) -> Privatizer:
        """The privatizer with this seed, or none."""
        return (
            self.privatizer
            if seed is None
            else self.privatizer.with_parts(randomness=SeededRandomness(seed))
        )


def split_by_group(build: Build, privatizer: Privatizer) -> Iterator[tuple[Build, Privatizer]]:
    """The build itself, or where its table has books by group those of the groups that something is drawn for."""
    book, budget = privatizer.table.book, privatizer.budget
    if not isinstance(book, Books):
        yield build, privatizer
        return
    groups: dict[tuple[int, Budget | None], list[str]] = {}
    for i, (label, number) in enumerate(zip(GROUPS, book.book_numbers, strict=True)):
        group_budget = Uniform(budget.budgets[i]) if isinstance(budget, Grouped) else budget
        if not isinstance(group_budget, Uniform) or 0 < group_budget.epsilon < math.inf:
            groups.setdefault((number, group_budget), []).append(label)
    for (number, group_budget), labels in groups.items():
        table = privatizer.table.views[number]
        group_privatizer = Privatizer(
            unwrap_books(privatizer.mechanism),
            budget=group_budget,
            table=table,
            words=privatizer.words,
        )
        yield (
            GroupBuild(
                name=f"{privatizer.claim.mechanism}: {', '.join(labels)}",
                privatizer=group_privatizer,
            ),
            group_privatizer,
        )
