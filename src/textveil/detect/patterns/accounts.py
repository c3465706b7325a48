"""Accounts: payment cards, bank accounts and cryptocurrency addresses.

In: nothing. Out: `RULES`.
Not here: check digits (`checksums`).
"""

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import (
    NUMBER_END,
    NUMBER_START,
    Expression,
    Rule,
    guard_rules,
    make_keyed_rule,
    make_linked_rule,
)
from textveil.text import LazyPattern, is_ordinary

_BBAN = {
    11: "NO", 12: "BE", 14: "DK|FO|FI|GL|NL|SD|FK", 15: "MK|SI", 16: "AT|BA|EE|KZ|XK|LT|LU|MN|SR",
    17: "HR|LV|LI|CH", 18: "BG|BH|CR|DE|GE|GB|IE|ME|RS|VA", 19: "AE|GI|IL|IQ|OM|TL|SO",
    20: "AD|CZ|MD|PK|RO|SA|SK|ES|SE|TN|VG", 21: "LY|PT|ST", 22: "IS|TR|BI|DJ", 23: "FR|GR|IT|MC|MR|SM",
    24: "AL|AZ|CY|DO|GT|HU|LB|PL|BY|SV|NI", 25: "BR|EG|PS|QA|UA", 26: "JO|KW|MU|YE", 27: "MT|SC", 28: "LC", 29: "RU",
}  # fmt: skip
"""Countries by the length of an IBAN behind its check digits (IBAN registry)."""
_IBAN = "|".join(
    rf"(?:{names}) [ ]?\d [ ]?\d (?: [ .\-]?[A-Z0-9] ){{{n}}}" for n, names in _BBAN.items()
)
_CARD = r"(?: 4 | 5[0-8] | 6 | 2[0-7] | 3[04-9] | 1800 | 8600 | 9792 | 9860 ) (?: [ .\-]{0,2}+ \d ){10,18}"
_EXPIRY = r"(?: (?:0[1-9]|1[0-2]) [ ]? [/\-.] [ ]? (?:20)?[2-4]\d )"
_UNTIL = rf"(?: {_EXPIRY} | (?<= \b exp\w{{0,8}} [ :.]{{1,3}} ) (?:0[1-9]|1[0-2])[2-4]\d )"
_GAP = r"(?!\d) [^\d\n]{0,30}+ (?: \n [^\d\n]{0,20}+ )?"

_CARDS = (
    "card|visa|mastercard|amex|karte|kreditkarte|carte|cb|tarjeta|cartão|carta|kaart|karta|kartą|kartę|kart|kartı"
    "|thẻ*|卡|カード*|카드*|карта|карты|карте|карту|картой|بطاقة|البطاقة|कार्ड"
)
_ACCOUNTS = (
    "account number|account no|acct number|acct no|acct|acc|a/c|account|bank "
    "account|checking|savings|direct deposit"
    "|kontonummer|konto-nr|kontonr|kto|kto-nr|konto|numéro de compte|compte|número de cuenta|cuenta"
    "|cuenta corriente|cuenta bancaria|cuenta rut|conta|conta corrente|conta bancária|conta "
    "poupança|conto"
    "|conto corrente|n. conto|c/c|rekeningnummer|rekening|numer konta|numer rachunku|nr "
    "konta|rachunek|rachunku"
    "|konta|hesap no|hesap numarası|số tài khoản|tài khoản|stk|账号|账户|帳號|开户行|口座番号|普通|当座|계좌"
    "|계좌번호|номер счета|счет|счёт|лицевой счет|р/с|к/с|رقم الحساب|حساب|खाता संख्या|खाता|खाते|loan "
    "a/c|户口号码"
)
_BANKS = (
    "*bank|banco|banca|banque|zenith|gtbank|gtb|opay|palmpay|kuda|moniepoint|uba|fcmb|ecobank|fps|payid|osko"
    "|iban|überweisung auf|überweisen auf|virement sur|transferir a|transferencia a|bonifico "
    "su|przelew na"
    "|przelać na|havale|eft|chuyển khoản|chuyển vào|vietcombank|techcombank|匯入|汇入|匯到|汇到|汇款|匯款|转账|轉帳"
    "|转到|打到|存入|户口|户名|轉數快|银行|銀行|은행|뱅크|농협|신협|수협|우체국|통장|송금|перевод на|перевести на"
    "|сбербанк|тинькофф|на счет|на счёт|बैंक|بنك|البنك|مصرف|تحويل|حسابي|حسابه|حسابها"
)
"""Words before a bank account's number where money is sent."""


def is_card(value: str) -> bool:
    """True if a number can be that of a payment card.

    The check digit is right, the length fits the issuer, and it is no row of years or measures.
    """
    return (
        sums.luhn(value)
        and _ISSUED.fullmatch(sums.compact(value)) is not None
        and not _YEARS.fullmatch(value)
    )


_ISSUED = LazyPattern(
    r"""4(?:\d{12}|\d{15}|\d{18}) | 5[1-5]\d{14} | 2[2-7]\d{14} | 220[0-4]\d{12,15} | 3[47]\d{13} | 3[0689]\d{12,17}
    | 35\d{14,17} | 1800\d{11} | (?:8600|9792|9860)\d{12} | 6\d{11,18} | 5[0678]\d{10,17} | 2[01]\d{13}""",
    regex.VERBOSE,
)
"""Numbers of cards by their first digits, after ISO/IEC 7812."""


BIC = r"(?-i: [A-Z]{4} [ ]? [A-Z]{2} [ ]? [A-Z\d]{2} (?: [ ]? [A-Z\d]{3} )? (?!\w) )"
"""The code of a bank after ISO 9362, together or in groups."""
_BICS = (
    "bic|swift|swift code|bic code|bic swift|swift bic|bank identifier code|swift adresse|swift "
    "address|swift nummer"
    "|código swift|código bic|code swift|code bic|codice swift|codice bic|kod swift|kod bic|kodu "
    "swift|swift kodu"
    "|mã swift|swift代码|bicコード|swiftコード|swift 코드|код swift|свифт|سويفت|स्विफ्ट"
)


def is_bic(value: str) -> bool:
    """True if a value can be the code of a bank.

    It has a country in the right place, and is no ordinary word in capitals.
    """
    import phonenumbers

    code = value.replace(" ", "")
    return code[4:6] in phonenumbers.SUPPORTED_REGIONS | {"XK"} and not is_ordinary(code.lower())


def has_account_length(value: str) -> bool:
    """True if a value has an account's length and is no date."""
    return 5 <= len(sums.list_digits(value)) <= 26 and not _DATE.fullmatch(value)


_DATE = LazyPattern(
    r"(?:19|20)\d\d-\d\d(?:-\d\d.*)?|\d{1,2}[./\- ]\d{1,2}[./\- ]\d{2,4}"
    r"|\d{4}[./\- ]\d{1,2}[./\- ]\d{1,2}|\d{1,3}(?:[. ]\d{3}){1,3}"
)
"""Dates, with what follows them, and thousands."""
_YEARS = LazyPattern(r"(?:(?:19|20)\d\d[ .\-]{0,2}){3,4}")


def make_card_rule(pattern: str) -> Rule:
    """Makes a rule for the text behind the number of a card."""
    return Rule(
        "CARD",
        Expression(rf"{NUMBER_START} {_CARD} (?!\w) {_GAP} {pattern}"),
        score=0.85,
        numeric_prefix=True,
        digits=12,
    )


RULES = (
    Rule(
        "CARD",
        Expression(rf"{NUMBER_START} {_CARD} {NUMBER_END}"),
        score=0.98,
        check=is_card,
        numeric_prefix=True,
        digits=12,
    ),
    Rule(
        "IBAN",
        Expression(rf"(?<!\w) (?:{_IBAN}) (?!\w)"),
        check=sums.mod97,
        numeric_prefix=True,
        digits=4,
    ),
    # Poland, without the country
    Rule(
        "ACCOUNT",
        Expression(rf"{NUMBER_START} \d\d (?: [ \-]? \d{{4}} ){{6}} {NUMBER_END}"),
        check=lambda value: sums.mod97(f"PL{value}"),
        numeric_prefix=True,
        digits=26,
    ),
    # codes of banks: behind their name, behind an IBAN, and with the office XXX
    make_linked_rule("ACCOUNT", _BICS, BIC, digits=0, check=is_bic, score=0.97, wordy=True),
    Rule(
        "ACCOUNT",
        Expression(
            rf"(?-i: [A-Z]{{2}} ) \d\d (?: [ ]?[A-Z\d] ){{11,30}} [\s,;/|\"'(]{{1,6}}+ (?<!\w) (?P<value> {BIC} )"
        ),
        score=0.97,
        check=is_bic,
        numeric_prefix=True,
        digits=8,
    ),
    Rule(
        "ACCOUNT",
        Expression(r"(?<![\w.\-]) (?-i: [A-Z]{6} [A-Z\d]{2} XXX ) (?![\w\-])"),
        score=0.97,
        check=is_bic,
        triggers=("xxx",),
        window=(12, 4),
    ),
    # the expiry date and the check code behind a card's number, whatever words are between
    *guard_rules(
        "with the number of a card they pay",
        make_card_rule(rf"(?P<value> {_UNTIL} ) (?![\w/])"),
        make_card_rule(
            rf"{_UNTIL}"
            r" (?!\d) (?! [^\d\n]{0,30} (?: amt | amount | total | sum | price | reason ) )"
            r" [^\d\n]{0,30}+"
            r" (?P<value> \d{3,4} )"
            r" (?! [\w/:%\-] | [.,]\d | [ ]?[€$£₹¥] )"
        ),
    ),
    # the last digits of a card: **** 4242, Visa *4242
    *guard_rules(
        "receipts name cards so",
        Rule(
            "CARD",
            Expression(r"(?<![\w*•]) (?: [*•x]{4} [ \-]? ){1,3} (?P<value> \d{4} ) (?![\w*])"),
            score=0.8,
            digits=4,
            triggers=("*", "•", "x"),
        ),
    ),
    make_keyed_rule("CARD", f"{_CARDS}|visa*", r"[*•·]{1,12} [ ]? \d{4}", digits=4, score=0.8),
    *guard_rules(
        "nothing else tells the kind of number",
        make_linked_rule(
            "ACCOUNT",
            _ACCOUNTS,
            r"(?: [A-Z]{2,6}(?=\d{6}) )? \d (?: [ .\-/]? \d ){4,25} (?:-x)?",
            digits=5,
            check=has_account_length,
            score=0.87,
        ),
        # where money goes: a bank, an app or a transfer, and the number at once
        make_linked_rule(
            "ACCOUNT", _BANKS, r"\d (?: [ \-]? \d ){7,19}", digits=8, check=has_account_length
        ),
    ),
    make_keyed_rule("ACCOUNT", "routing|aba|rtn", r"\d{9}", digits=9, check=sums.is_routing_number),
    Rule(
        "CRYPTO",
        Expression(r"(?<!\w)[13][1-9A-HJ-NP-Za-km-z]{25,34}+(?!\w)", 0),
        check=sums.is_base58check,
        numeric_prefix=True,
        digits=1,
    ),
    Rule(
        "CRYPTO",
        Expression(r"(?<!\w) (?:bc|tb|ltc)1 [02-9ac-hj-np-z]{8,87}+ (?!\w)"),
        check=sums.is_bech32,
    ),
    *guard_rules(
        "the form of an address of Ethereum",
        Rule(
            "CRYPTO", Expression(r"(?<!\w) 0x [0-9a-f]{40}+ (?!\w)"), score=0.95, triggers=("0x",)
        ),
    ),
)
