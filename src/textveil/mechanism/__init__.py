"""Mechanisms: the only room that randomizes words, and the only one that spends epsilon.

In: a block of table rows, budgets, a source of randomness. Out: released rows, and the epsilon really spent.
Not here: what passes or is replaced (`protect`, `budget`), and how statements read (`guarantee`).
"""

from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.mechanism.contract import Law, Mechanism, Published, Restricting
from textveil.mechanism.noise import CoordinateLaplace, MultivariateLaplace, NoNoise, VonMisesFisher
from textveil.mechanism.perturb import Perturb
from textveil.mechanism.rule import Exponential
from textveil.mechanism.select import Distance, Placeholder, Select
from textveil.mechanism.window import Mixing, Window

__all__ = [
    "PLACEHOLDER",
    "Block",
    "CoordinateLaplace",
    "Distance",
    "Exponential",
    "Law",
    "Layout",
    "Mechanism",
    "Mixing",
    "MultivariateLaplace",
    "NoNoise",
    "Perturb",
    "Placeholder",
    "Published",
    "Restricting",
    "Role",
    "Select",
    "VonMisesFisher",
    "Window",
]
