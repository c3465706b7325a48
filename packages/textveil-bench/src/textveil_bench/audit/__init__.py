"""The audit: what a mechanism claims, held against its law, its samples and its behaviour.

In: callables that build a `Privatizer`. Out: one `AuditFinding` per check, as it is made.
Not here: what an adversary gets (`attack`), and how findings are printed (`cli`).
"""

from textveil_bench.audit.configured import ConfiguredBuild
from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.run import CHECKS, audit

__all__ = [
    "CHECKS",
    "AuditFinding",
    "ConfiguredBuild",
    "audit",
]
