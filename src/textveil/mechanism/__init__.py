"""Mechanisms: the only room that randomizes words and spends epsilon.

In: a block of table rows, budgets, a source of randomness. Out: released rows, and the epsilon
really spent.
Not here: what passes or is replaced (`protect`, `budget`), and how statements read (`guarantee`).
"""

from textveil.mechanism.block import PLACEHOLDER, Block, Layout, Role
from textveil.mechanism.book_mechanism import BookMechanism, unwrap_books, wrap_books
from textveil.mechanism.buckets import BucketRule, Buckets, compute_losses
from textveil.mechanism.cells import NoisyCount, RandomizedResponse, SubsetSelection
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
from textveil.mechanism.drawn_names import NameSampler
from textveil.mechanism.fill import Fill
from textveil.mechanism.guess import build_success_rate
from textveil.mechanism.information import (
    compute_fitting_codes,
    compute_information,
    compute_information_limit,
    compute_keep_rate,
    entropy,
)
from textveil.mechanism.moved_figures import FigureSampler
from textveil.mechanism.noise import (
    CoordinateLaplace,
    MultivariateLaplace,
    NoiseName,
    NoNoise,
    VonMisesFisher,
)
from textveil.mechanism.oov import WordRule, has_bypass_rule
from textveil.mechanism.papers import cape
from textveil.mechanism.perturb import Perturb
from textveil.mechanism.reserved_identifiers import RESERVED_TYPES, find_range
from textveil.mechanism.rule import Exponential
from textveil.mechanism.select import Placeholder, Select, compute_exact_loss
from textveil.mechanism.staircase import Staircase
from textveil.mechanism.token_draw import TokenDraw, find_temperature
from textveil.mechanism.utility import Distance, Hybrid
from textveil.mechanism.window import SINKHORN_ROUNDS, Mixing, Window

__all__ = [
    "PLACEHOLDER",
    "RESERVED_TYPES",
    "SINKHORN_ROUNDS",
    "Backward",
    "Block",
    "BookMechanism",
    "BucketRule",
    "Buckets",
    "Capped",
    "Conditional",
    "Confined",
    "Context",
    "Contextual",
    "CoordinateLaplace",
    "Distance",
    "Exponential",
    "FigureSampler",
    "Fill",
    "Hybrid",
    "Law",
    "Layout",
    "Mechanism",
    "Mixing",
    "MultivariateLaplace",
    "NameSampler",
    "NoNoise",
    "NoiseName",
    "Noisy",
    "NoisyCount",
    "Perturb",
    "Placeholder",
    "Published",
    "RandomizedResponse",
    "Restricting",
    "Role",
    "Select",
    "Staircase",
    "SubsetSelection",
    "TokenDraw",
    "VonMisesFisher",
    "Window",
    "Windowed",
    "WordRule",
    "build_success_rate",
    "cape",
    "compute_exact_loss",
    "compute_fitting_codes",
    "compute_information",
    "compute_information_limit",
    "compute_keep_rate",
    "compute_losses",
    "entropy",
    "find_range",
    "find_temperature",
    "has_bypass_rule",
    "unwrap_books",
    "wrap_books",
]
