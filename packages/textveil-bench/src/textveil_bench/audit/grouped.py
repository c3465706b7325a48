"""Audits of codebooks by group, each with its own budget.

In: a build of a privatizer. Out: that build, or one for each group if it has books by group.
Not here: the checks (`run`). That each word uses the book of its group is covered by the tests.
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
    """Builds the privatizer of groups that share a book and budget.

    Attributes:
        name: the mechanism and the groups, under which findings are reported.
        privatizer: without a seed.
    """

    name: str
    privatizer: Privatizer

    def __call__(self, *, seed: int | None = None) -> Privatizer:
        """Returns the privatizer with this seed, or none."""
        return (
            self.privatizer
            if seed is None
            else self.privatizer.with_parts(randomness=SeededRandomness(seed))
        )


def split_by_group(build: Build, privatizer: Privatizer) -> Iterator[tuple[Build, Privatizer]]:
    """Yields the build; with books by group, one build per group.

    Groups without draws are left out.
    """
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
