"""Mechanisms: the only room that randomizes words and spends epsilon.

In: a block of table rows, budgets, a source of randomness. Out: released rows, and the epsilon
really spent.
Not here: what passes or is replaced (`protect`, `budget`), and how statements read (`guarantee`).
"""

from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.mechanism.buckets import Bucketized, Buckets, losses
from textveil.mechanism.confined import Confined
from textveil.mechanism.context import Context
from textveil.mechanism.contract import (
    Backward,
    Capped,
    Conditional,
    Contextual,
    Law,
    Mechanism,
    Noisy,
    Published,
    Restricting,
    Windowed,
)
from textveil.mechanism.drawn_names import Names
from textveil.mechanism.fill import Fill
from textveil.mechanism.guess import guessing
from textveil.mechanism.information import entropy, fitting, information, kept, limit
from textveil.mechanism.moved_figures import Figures
from textveil.mechanism.noise import (
    CoordinateLaplace,
    MultivariateLaplace,
    NoiseName,
    NoNoise,
    VonMisesFisher,
)
from textveil.mechanism.oov import WordRule, apart
from textveil.mechanism.papers import cape
from textveil.mechanism.perturb import Perturb
from textveil.mechanism.resolutions import Resolved, resolved, single
from textveil.mechanism.rule import Exponential
from textveil.mechanism.select import Placeholder, Select, exact_loss
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.utility import Distance, Hybrid
from textveil.mechanism.window import SINKHORN_ROUNDS, Mixing, Window

__all__ = [
    "PLACEHOLDER",
    "SINKHORN_ROUNDS",
    "Backward",
    "Block",
    "Bucketized",
    "Buckets",
    "Capped",
    "Conditional",
    "Confined",
    "Context",
    "Contextual",
    "CoordinateLaplace",
    "Distance",
    "Exponential",
    "Figures",
    "Fill",
    "Hybrid",
    "Law",
    "Layout",
    "Mechanism",
    "Mixing",
    "MultivariateLaplace",
    "Names",
    "NoNoise",
    "NoiseName",
    "Noisy",
    "Perturb",
    "Placeholder",
    "Published",
    "Resolved",
    "Restricting",
    "Role",
    "Select",
    "Staircase",
    "VonMisesFisher",
    "Window",
    "Windowed",
    "WordRule",
    "apart",
    "cape",
    "entropy",
    "exact_loss",
    "fitting",
    "guessing",
    "information",
    "kept",
    "limit",
    "losses",
    "resolved",
    "single",
]
