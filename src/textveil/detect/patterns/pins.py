"""PINs: PINs, card codes, and codes of doors, alarms and safes.

They are written in digits or spelled out in words.

In: nothing. Out: `RULES`.
Not here: passwords and keys (`secrets`).
"""

import regex

from textveil.detect.patterns.rules import Expression, Rule, build_context, has_digit

_NUMBERS = (
    "zero|oh|one|two|three|four|five|six|seven|eight|nine|null|eins|zwo|zwei|drei|vier|fünf|sechs|sieben|acht|neun"
    "|zéro|un|deux|trois|quatre|cinq|sept|huit|neuf|cero|uno|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|um|dois|três"
    "|quatro|sete|oito|nove|due|tre|quattro|cinque|sei|sette|otto|nul|een|twee|drie|vijf|zes|zeven|negen|jeden|dwa"
    "|trzy|cztery|pięć|sześć|siedem|osiem|dziewięć|sifir|bir|iki|üç|dört|beş|alti|yedi|sekiz|dokuz|không|một|hai|ba"
    "|bốn|năm|sáu|bảy|tám|chín|ноль|один|два|три|четыре|пять|шесть|семь|восемь|девять|meia"
)
_SPELLED = rf"""(?: (?:star|hash|pound|double|triple|doppel|doble|double)[ ,\-]{{1,2}} )? (?:{_NUMBERS}) (?!\w)
    (?: [ ,\-]{{1,3}}+ (?: (?:then|and|und|et|y|e|en|i|double|triple|star|hash|pound|doppel) [ ]){{0,2}}
      (?:{_NUMBERS}) (?!\w) ){{2,11}}+"""
_FIGURES = (
    r"(?: (?:star|\*|\#)[ ]? )? \d (?: [ .\-]? \d ){2,9} "
    r"(?: [ ]? [\#*] | [ ]? (?:hash|pound|star|[A-Z]) (?!\w) )?"
)
_MIXED = r"(?-i: (?=[A-Z]{0,8}\d) (?=\d{0,8}[A-Z]) [A-Z0-9]{3,10}+ ) [\#*]?"
_NO_INDEX = r"(?<! [\w)] \[ )"
"""No bracket behind a name: that holds a process or an index, sshd[4471]."""
_VALUE = (
    rf"(?<![\w.,:\-/]) {_NO_INDEX} (?P<value> {_FIGURES} | {_MIXED} | {_SPELLED} ) (?!\w)"
    r" (?![.:/,]\d | [ ]?[€$£%°] | -\w)"
)
_TURNS = r"(?P<value> (?: (?:left|right|links|rechts|clockwise|l|r)[ ]? (?:to[ ])? \d{1,2} [ ,;>\-]{0,4}+ ){2,5} )"


def is_no_year_or_time(value: str) -> bool:
    """True if a value is no current year and no hour."""
    return (
        not regex.fullmatch(r"20[12]\d|\d{1,2}[.]\d\d|\d{1,2}-\d{1,2}|\d{1,3}[ ]\d{1,3}", value)
        or value.isalpha()
    )


_PINS = (
    "pin|pin code|pin number|pincode|cvv|cvv2|cvc|cvc2|otp|mtan|sms tan|puk|verification "
    "code|security code"
    "|access code|one time code|passcode|geheimzahl|geheimnummer|sicherheitscode|prüfnummer|code "
    "pin|code secret"
    "|código pin|código de verificación|código de seguridad|código de verificação|codice "
    "pin|codice di sicurezza"
    "|codice di verifica|kod pin|kod weryfikacyjny|doğrulama kodu|onay kodu|güvenlik kodu|mã "
    "pin|mã otp|mã xác nhận"
    "|пин код|пин|код подтверждения|код из смс|ваш код|твой код|验证码|驗證碼|校验码|認証コード|確認コード|暗証番号"
    "|인증번호|핀번호"
    "|رمز التحقق|رمز الأمان|رمزك|الرقم السري|पिन कोड|पिन नंबर|पिन है|का पिन|मेरा पिन|नया "
    "पिन|कार्ड पिन"
    "|एटीएम पिन|पिन:|ओटीपी|सीवीवी|आपका कोड|安全码"
    "|安全碼|末三碼|末三码|セキュリティコード|보안코드|your code|login code"
    "|one time password|ihr code|dein code|votre code|ton code|tu código|su código|seu código|tuo "
    "codice"
    "|uw code|je code"
    "|twój kod|twoj kod|kod to|kodunuz|mã của bạn|confirmation code|backup code|recovery "
    "code|unlock code"
    "|entsperrcode"
    "|freischaltcode|voicemail pin|boot pin"
)
_DOORS = (
    "door code|gate code|alarm code|entry code|entrance code|garage code|safe code|lock "
    "code|locker code|lockbox*"
    "|key safe|keysafe|keypad|keypad code|buzzer code|lift code|shed code|padlock|disarm "
    "code|code lock"
    "|combination lock|combination|combo|alarm off with|gate pin|door pin|alarm pin|wifi code|wi "
    "fi code"
    "|burglar alarm|code for the|code to the|new code|old code|*türcode|*tor code|*torcode|tür "
    "code|alarmcode"
    "|alarm code|zugangscode|eingangscode|zutrittscode|tresorcode|tresor|*schlosscode|schlüsselbox|schlüsselsafe"
    "|schlüsselkasten|schlüsseltresor|schließfach|zahlenschloss|zahlenkombination|zahlencode|code "
    "für|code fürs"
    "|code zum|code zur|kombination|alarmanlage|code de la porte|code de l'immeuble|code "
    "immeuble|code du portail"
    "|code portail|code d'entrée|code entrée|code d'accès|code de l'alarme|code alarme|code du "
    "coffre|code du cadenas"
    "|digicode|code porte|code wifi|code du garage|code du bas|code de la boîte|code de "
    "l'interphone"
    "|código de la puerta|código del portal|código de la alarma|código de acceso|código de "
    "entrada|código de la caja"
    "|código del candado|código del garaje|clave de la alarma|clave de la puerta|clave del "
    "portal|clave de la caja"
    "|combinación|la alarma es|código de la verja|código da porta|código do portão|código do "
    "alarme|código do cofre"
    "|código da portaria|código de acesso|código do cadeado|código do prédio|senha da porta|senha "
    "do portão"
    "|senha do alarme|senha do cofre|senha da portaria|combinação|codice del cancello|codice "
    "cancello"
    "|codice della porta|codice porta|codice del portone|codice portone|codice "
    "dell'allarme|codice allarme"
    "|codice della cassaforte|codice d'ingresso|codice di accesso|codice del "
    "lucchetto|combinazione|codice citofono"
    "|deurcode|poortcode|toegangscode|sleutelkluis*|kluiscode|kluisje|hekcode|cijferslot|code van "
    "de|code van het"
    "|code voor de|kluis|kod do|kod do drzwi|kod do bramy|kod do furtki|kod domofonu|kod "
    "alarmu|kod do alarmu"
    "|kod do sejfu|szyfr|kod dostępu|kod wejściowy|kod na|kapi şifresi|kapinin şifresi|alarm "
    "şifresi|alarmin şifresi"
    "|kasa şifresi|kasanin şifresi|giriş kodu|kapi kodu|site kodu|şifre|şifresi|şifremiz|kilit "
    "şifresi|mã cửa|mã cổng"
    "|mã khóa|mã khoá|mã mở|mã két|mã báo động|mật mã|mã tủ|mã thang máy|mã vào|mật "
    "khẩu|门禁码|门禁密码|门锁密码"
    "|大门密码|密码锁|保险箱|保险柜|取件码|提取码|开门码|门码|密码|暗号|口令|門禁|門鎖|解錠番号|解錠コード|ロック番号"
    "|キーボックス|金庫|オートロック|ダイヤル|開錠|暗証|ナンバーロック|パスコード|玄関|비밀번호|비번|도어락|공동현관"
    "|출입번호|금고 비밀번호|금고 번호|현관|열쇠함|код домофона|код от домофона|домофон|домофона|код двери"
    "|код от двери|код подъезда"
    "|код от подъезда|код сигнализации|код от сейфа|код сейфа|код замка|код от замка|код "
    "калитки|код ворот|шифр"
    "|код доступа|кодовый замок|код на|رمز الباب|رمز البوابة|رمز الدخول|رمز الإنذار|رمز "
    "الخزنة|رمز القفل|كود الباب"
    "|كود البوابة|كود|رمز|الرمز السري|दरवाज़े का कोड|दरवाजे का कोड|गेट का कोड|गेट कोड|अलार्म "
    "कोड|लॉक कोड|ताले का कोड"
    "|कोड"
)
_PLACES = r"""(?: door | gate | buzzer | alarm | lock | safe | shed | entrance | lobby | bell | intercom | garage
    | keys? | locker | flat | apartment | stairwell | elevator | kluisje | kluis | tür | haustür | tor | klingel
    | eingang
    | tresor | schlüssel | porte | portail | immeuble | interphone | puerta | portal | porta | portão | citofono
    | cancello | deur | poort | drzwi | bramy? | domofonu? | kapi | дверь | двери | домофон | подъезд )"""

RULES = (
    Rule(
        "SECRET",
        Expression(
            rf"(?<!\w) (?<!\d[.,]) {_NO_INDEX}"
            r" (?P<value> \d(?:[ \-]?\d){2,7} (?: [\#*] | (?!\w) ) | "
            + _SPELLED
            + r" ) (?!/|\w|[.,]\d)"
        ),
        score=0.87,
        **build_context(_PINS),
    ),
    Rule(
        "SECRET", Expression(_VALUE), score=0.86, check=is_no_year_or_time, **build_context(_DOORS)
    ),
    # alarm: 4471, gate *1908#, Wifi 77110422
    Rule(
        "SECRET",
        Expression(
            r"[ ]{0,2} [:=]? [ ]{0,2} (?P<value> [*\#]? \d{4,10} [*\#]? )"
            r" (?! [\w%€$£/:\-] | [.,]\d | [ ]?(?:eur|usd)\b )"
        ),
        score=0.8,
        check=is_no_year_or_time,
        adjacent=True,
        **build_context(
            "alarm|alarme|alarma|allarme|gate|safe|keysafe|wifi|wi "
            "fi|wlan|сигнализация|будка|الإنذار|警报|アラーム"
            "|알람"
        ),
    ),
    Rule(
        "SECRET",
        Expression(_TURNS),
        score=0.86,
        check=has_digit,
        **build_context("combination|combo|kombination|lock|safe"),
    ),
    Rule(
        "SECRET",
        Expression(
            rf"(?<!\w) {_PLACES} (?!\w) [^\n]{{0,60}}? (?<!\w)"
            r" (?: codes? | kode | código | codice | kod | код | number | pin )"
            rf" (?!\w) [^\d\n]{{0,25}}? {_VALUE}"
        ),
        score=0.85,
        check=is_no_year_or_time,
        triggers=("code", "kod", "código", "codice", "код", "number"),
        window=(90, 120),
        keep_scripts=True,
    ),
    Rule(
        "SECRET",
        Expression(
            rf"(?<!\w) {_PLACES} (?!\w) [^\n.]{{0,30}}? (?<!\w)"
            r" (?: type | press | enter | dial | punch | tippen? | tape[rz]? | marca )"
            rf" (?: [ ]in )? [ ] {_VALUE}"
        ),
        score=0.85,
        check=is_no_year_or_time,
        triggers=("type", "press", "enter", "dial", "punch", "tipp", "tape", "marca"),
        window=(60, 90),
        keep_scripts=True,
    ),
)
