"""Numbers that no rule knows: the rest of detection hides them."""

import pytest

from textveil import Protector

TOLD = (
    "kart no ⟦9792 0310 4477 2180⟧",
    "카드는 ⟦5409 3329 0618 4027⟧입니다",
    "расчёт ⟦40817810500012233445⟧, БИК",
    "पता: ⟦27/3, नेपियर टाउन, जबलपुर 482001⟧",
    "license plate ⟦7ABC123⟧",
    "registration ⟦AB12CDE⟧,2 owners",
    "Mieternummer ⟦51-3307-02⟧",
    "studentnr. ⟦4417702⟧)",
    "Solicitante: ⟦BADD110313HCMLNS09⟧, Jalisco",
    "IMEI ⟦86 501204 883002 1⟧",
    "نحن في العنوان: ⟦حي النزهة، مبنى 14⟧",
    "residence: ⟦Casa 12, Barrio Los Pinos, Heredia⟧",
    "studio, ⟦Shop 2, 19 Hindmarsh Lane, Fremantle WA 6160⟧; alarm off",
    "Our address is ⟦Level 4, Quartermain House, 30 Tabernacle Walk, London EC2⟧.",
)


@pytest.fixture(scope="module")
def guard():
    return Protector()


@pytest.mark.parametrize("text", TOLD)
def test_what_words_tell_is_hidden(guard, text):
    start, end = text.index("⟦"), text.index("⟧") - 1
    plain = text.replace("⟦", "").replace("⟧", "")
    spans = [each for each in guard.find(plain) if each.hidden]
    shown = [
        plain[i]
        for i in range(start, end)
        if plain[i].isalnum() and not any(each.start <= i < each.end for each in spans)
    ]
    assert shown == []
