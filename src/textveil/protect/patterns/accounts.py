"""Accounts: payment cards, bank accounts and cryptocurrency addresses.

In: nothing. Out: `RULES`.
Not here: check digits (`checksums`).
"""

from textveil.protect.patterns import checksums as sums
from textveil.protect.patterns.rules import AFTER, BEFORE, Expression, Rule, has_digits, keyed

_BBAN = {
    11: "NO", 12: "BE", 14: "DK|FO|FI|GL|NL|SD|FK", 15: "MK|SI", 16: "AT|BA|EE|KZ|XK|LT|LU|MN|SR",
    17: "HR|LV|LI|CH", 18: "BG|BH|CR|DE|GE|GB|IE|ME|RS|VA", 19: "AE|GI|IL|IQ|OM|TL|SO",
    20: "AD|CZ|MD|PK|RO|SA|SK|ES|SE|TN|VG", 21: "LY|PT|ST", 22: "IS|TR|BI|DJ", 23: "FR|GR|IT|MC|MR|SM",
    24: "AL|AZ|CY|DO|GT|HU|LB|PL|BY|SV|NI", 25: "BR|EG|PS|QA|UA", 26: "JO|KW|MU|YE", 27: "MT|SC", 28: "LC", 29: "RU",
}  # fmt: skip
"""Countries by the number of characters after the check digits of an IBAN (IBAN registry)."""
_IBAN = "|".join(rf"(?:{names}) [ ]?\d [ ]?\d (?: [ .\-]?[A-Z0-9] ){{{n}}}" for n, names in _BBAN.items())
_CARD = r"(?: 4 | 5[0-8] | 6 | 2[0-7] | 3[04-9] | 1800 ) (?: [ .\-]{0,2}+ \d ){10,18}"

RULES = (
    Rule("CARD", Expression(rf"{BEFORE} {_CARD} {AFTER}"), check=sums.luhn, leads=True, digits=12),
    Rule("IBAN", Expression(rf"(?<!\w) (?:{_IBAN}) (?!\w)"), check=sums.mod97, leads=True, digits=4),
    keyed(
        "IBAN",
        "account number|account no|acct no|bank account|checking account|savings account|routing number|kontonummer"
        "|konto-nr|numéro de compte|número de cuenta|numero di conto|conto corrente",
        r"\d (?: [ \-]? \d ){4,19}",
        digits=5,
        check=has_digits,
    ),
    keyed("IBAN", "sort code|bankleitzahl|blz", r"\d\d[ \-]?\d\d[ \-]?\d\d(?:[ ]?\d\d)?", digits=6),
    Rule(
        "CRYPTO",
        Expression(r"(?<!\w)[13][1-9A-HJ-NP-Za-km-z]{25,34}+(?!\w)", 0),
        check=sums.is_base58check,
        leads=True,
        digits=1,
    ),
    Rule("CRYPTO", Expression(r"(?<!\w) (?:bc|tb|ltc)1 [02-9ac-hj-np-z]{8,87}+ (?!\w)"), check=sums.is_bech32),
    Rule("CRYPTO", Expression(r"(?<!\w) 0x [0-9a-f]{40}+ (?!\w)"), score=0.95, signs=("0x",)),
)
