"""The audit: tests a mechanism's claims against its law, samples and behaviour.

In: callables that build a `Privatizer`, or two worlds of whole texts. Out: one `AuditFinding` per
check, as it is made.
Not here: the success of adversaries (`attack`), and the printing of findings (`cli`).
"""

from textveil_bench.audit.configured import ConfiguredBuild
from textveil_bench.audit.finding import AuditFinding
from textveil_bench.audit.run import CHECKS, audit
from textveil_bench.audit.worlds import audit_worlds

__all__ = [
    "CHECKS",
    "AuditFinding",
    "ConfiguredBuild",
    "audit",
    "audit_worlds",
]
