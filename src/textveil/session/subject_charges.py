"""Charges for releases of whole texts, which are made of many subjects at once.

In: whose texts they are, the statement. Out: reservations in the ledger, for all subjects or none.
Not here: what one subject spends (`spending`), and accounts and limits (`sql.ledger`).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from textveil.guarantee import TextGuarantee
from textveil.session.spending import Spend, spend_texts, sum_spends
from textveil.session.stores import SessionStore

if TYPE_CHECKING:
    from textveil.session.sql.ledger import Reservation


def charge_subjects(
    store: SessionStore,
    subjects: Iterable[str],
    guarantee: TextGuarantee,
    *,
    key: str | None = None,
) -> "list[Reservation]":
    """Charges every subject of a release of whole texts, or nobody.

    Call it before anything is drawn. Each subject is charged in the account of the library, and in
    local DP in the account of all tables. After the release call `store.ledger.confirm_all`; if it
    failed before any draw, `store.ledger.release_all`.

    Args:
        store: a store with a ledger.
        subjects: the subject of every document or sentence in the release, so that who has three
            documents is named three times. Where the unit is a subject, naming one again changes
            nothing.
        guarantee: the statement about this release.
        key: an idempotency key, as the name of the release: who is charged again under the same
            key for the same sum pays nothing.

    Raises:
        LimitReached: a subject has a limit that would be passed; nobody was charged.
        ConfigError: the store keeps no ledger, or a subject has no printable name.
        GuaranteeError: the statement is about several releases.
    """
    ledger, charges = store.ledger, list_charges(subjects, guarantee)
    return ledger.reserve_many(charges, key=key) if charges else []


def list_charges(
    subjects: Iterable[str], guarantee: TextGuarantee
) -> Mapping[str, tuple[Spend, Spend]]:
    """Lists what each subject spends, in the library's account and in all."""
    counts = Counter(subjects)
    if guarantee.unit == "subject":
        counts = Counter(counts.keys())
    spends = {units: spend_texts(guarantee, units) for units in set(counts.values())}
    return {
        subject: (spends[units], sum_spends([spends[units]])) for subject, units in counts.items()
    }
