"""What is promised about an output: statements, and their composition.

In: a mechanism's claim, the budget spent per word, the mask. Out: `Guarantee`, printed or as JSON.
Not here: how a mechanism earns its claim (`mechanism`), and what attackers get.
"""

from textveil.guarantee.accounting import compose, condense, summarize
from textveil.guarantee.statements import Claim, Group, Guarantee, Restricted

__all__ = ["Claim", "Group", "Guarantee", "Restricted", "compose", "condense", "summarize"]
