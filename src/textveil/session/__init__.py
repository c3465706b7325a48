"""Sessions: what has been replaced by what, kept between calls, so that answers can be restored.

In: releases; answers that mention what was replaced. Out: the originals, put back.
Not here: what is replaced (`pipeline`), and who answers (`gateway`).
"""

from textveil.session.restore import Restorer, fold
from textveil.session.state import Session

__all__ = [
    "Restorer",
    "Session",
    "fold",
]
