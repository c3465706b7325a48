"""References: numbers that point to a patient, booking, order, case, contract, member or device, told by words near.

In: nothing. Out: `RULES`.
Not here: national numbers (`people`), vehicles (`vehicles`), accounts (`accounts`).
"""

from collections.abc import Sequence

import regex

from textveil.detect.patterns import checksums as sums
from textveil.detect.patterns.rules import LINK, Expression, Rule, has_digit, keyed, linked, words
from textveil.text.lexicon import all_ordinary, lists

_FORM = (
    r"(?=[A-Z\-]{0,5}\d) [A-Z0-9]{1,20}+"
    r" (?: (?: [.\-/] | [ ](?=[A-Z]{0,2}\d\w) ) [A-Z0-9]{1,20}+ ){0,6}"
)
_CODE = r"""
    (?: (?! (?: IP | MAC | OS | TEL | FAX | EXT | PIN | CET | UTC ) [ ] ) (?-i:[A-Z]{1,4}) [ ] (?=\d)
      | (?= [\p{L}.\-/_]{0,14} \d ) ) [\p{L}\d]{1,36}+
    (?: [.\-/_] [\p{L}\d]{1,36}+ | [ ] (?= (?-i:[A-Z]{0,3}) \d [\dA-Z]{2} ) (?-i:[A-Z\d]{3,20}+) ){0,8}
"""
"""Letters and digits in groups, with a digit near the start; a group after a space must begin like a number."""
_BRANCH = regex.compile(r"\d{1,6}-([a-z]{2,20}(?:-[a-z]{2,20}){1,8})")
"""What follows the key of a ticket in the name of a branch: 1234-login-fix."""
_DATE = regex.compile(
    r"\d{1,2}[./]\d{1,2} | \d{1,2}[./\-]\d{1,2}[./\-](?:19|20)?\d\d | (?:19|20)\d\d[./\-]\d{1,2}[./\-]\d{1,2}",
    regex.VERBOSE,
)
_THOUSANDS = regex.compile(r"\d{1,3}(?:\.\d{3})+")
_DECIMAL = regex.compile(r"\d+\.\d{1,2}|v\d+(?:\.\d+){1,3}|\d+(?:\.\d+){2,3}", regex.IGNORECASE)
_LAW = regex.compile(
    r"\d{1,5}/(?:\p{L}{1,4}/)?(?:19|20)\d\d|(?:19|20)\d\d/\d{1,4}|\d+-(?:ФЗ|ФКЗ|П|р)|[\d.]+",
    regex.I,
)
_MEASURE = regex.compile(
    r"\d+(?:st|nd|rd|th|x|k|m|s|h|d|kg|g|mg|ml|km|cm|mm|gb|mb|kb|pm|am|eur|usd|years?|days?)",
    regex.I,
)
_TECHNICAL = regex.compile(
    r"0x[\dA-Fa-f]{1,16}|v\d+(?:\.\d+){1,3}|\d+(?:\.\d+){1,3}-(?:rc|alpha|beta|dev|pre)\.?\d*"
)
"""Codes of errors and numbers of versions."""


def is_reference(value: str) -> bool:
    """Whether it has two digits, and is no date, measure, decimal figure, code of an error, version or branch."""
    digits = sum(c.isdigit() for c in value)
    return (
        digits >= 2
        and sum(c.isalnum() for c in value) >= 3
        and not any(form.fullmatch(value) for form in (_DATE, _DECIMAL, _MEASURE, _TECHNICAL))
        and not (value.isdigit() and len(value) == 4 and value[:2] in ("19", "20"))
        and not ((branch := _BRANCH.fullmatch(value)) and _are_words(branch[1].split("-")))
    )


def is_range(value: str) -> bool:
    """Whether it is what is normal for a measured value: 4.5-11.0, 70-99, 150,000-450,000; no number that was issued.

    Whole numbers count up by a factor of 20 at most, and have three figures at most, or thousands.
    """
    ends = regex.split(r"[ ]?[\-–—][ ]?", value)
    if len(ends) != 2 or not all(map(_MEASURED.fullmatch, ends)):
        return False
    decimal = any(map(_WITH_PLACES.search, ends))
    low, high = (float(regex.sub(r"[.,](?=\d{3})", "", end).replace(",", ".")) for end in ends)
    short = all(len(end) <= 3 or not end.isdigit() for end in ends)
    return low < high and (decimal or (short and high <= 20 * max(low, 1)))


_MEASURED = regex.compile(r"\d{1,3}(?:[.,]\d{3}){1,2}|(?:0|[1-9]\d{0,3})(?:[.,]\d{1,2})?")
_WITH_PLACES = regex.compile(r"[.,]\d{1,2}(?!\d)")


def _are_words(parts: Sequence[str]) -> bool:
    """Whether all are ordinary words, and none may be a name besides."""
    return all_ordinary(" ".join(parts)) and lists()[0].isdisjoint(parts)


def is_telling(value: str) -> bool:
    """Whether it is a reference that is no plain figure: six digits, or four with letters or separators."""
    digits = sum(c.isdigit() for c in value)
    return (
        is_reference(value)
        and not _THOUSANDS.fullmatch(value)
        and (digits >= 6 or (digits >= 3 and not value.isdigit() and len(value) >= 5))
    )


def is_marked(value: str) -> bool:
    """Whether it is telling, has letters or separators, and is no law and no kind of standard."""
    return is_telling(value) and not value.isdigit() and not _LAW.fullmatch(value)


def is_locator(value: str) -> bool:
    """Whether it can be the record locator of a booking: six capitals and digits."""
    return len(value) == 6


def is_imei(value: str) -> bool:
    """Whether it has the digits of an IMEI."""
    return len(sums.digits(value)) in (15, 16)


_BOOKINGS = (
    "booking reference|booking ref|booking code|booking no|booking number|booking id|booking|reservation number"
    "|reservation code|reservation no|reservation|confirmation number|confirmation code|confirmation no|e-ticket"
    "|ticket number|flight ref|record locator|locator|pnr|airline reference|buchungsnummer|buchungscode"
    "|buchungsnr|buchung|reservierungsnummer|reservierung|filekey|vorgangsnummer|numéro de réservation"
    "|n° de réservation|réservation|dossier voyage|código de reserva|número de reserva|localizador|reserva"
    "|codice prenotazione|numero prenotazione|prenotazione|reserveringsnummer|boekingsnummer|boekingscode"
    "|numer rezerwacji|kod rezerwacji|nr rezerwacji|rezerwacj*|rezervasyon*|mã đặt chỗ|mã đặt phòng|mã vé"
    "|预订号|预定号|订座|订票|酒店订单|予約番号|予約コード|確認番号|예약번호|예약 번호|номер брони"
    "|номер бронирования|бронь|брони*"
    "|رقم الحجز|الحجز|رمز الحجز|बुकिंग|पीएनआर|आरक्षण"
)
_NUMBERED = (
    "account id|customer number|customer no|customer id|customer #|client number|client no|client id|user id"
    "|member no"
    "|member number|member id|membership number|membership no|membership|loyalty no|frequent flyer|frequent flyer no"
    "|employee no|employee number|employee id|employee #|emp id|emp. no|staff no|staff id|staff number|personnel no"
    "|personnel number|payroll no|payroll number|worker id|badge no|badge number|badge id|badge|collar no|shoulder no"
    "|student id|student no|student number|student #|matriculation no|enrolment no|enrollment number|roll no"
    "|candidate number|candidate no|exam no|applicant id|application number|application no|application id"
    "|order number"
    "|order no|order id|order #|order nr|purchase order|po number|po no|po #|invoice number|invoice no|invoice #"
    "|invoice id|receipt no|receipt number|contract number|contract no|contract id|policy number|policy no|policy #"
    "|policy id|claim number|claim no|claim #|claim id|claim ref|case number|case no|case #|case id|case ref|hr-case"
    "|docket no|docket number|file no|file number|file ref|matter no|warrant no|crime number|crime ref|incident no"
    "|incident number|ticket number|ticket no|ticket id|ticket #|our ref|your ref|case reference|incident ref"
    "|serial|serial number|serial no|s/n|sn|serial #|asset tag"
    "|asset no|asset id|device id|device no|scanner number|machine no|plant no|meter no|meter number|meter id|mpan"
    "|mprn"
    "|imsi|iccid|sim no|sim number|udid|tracking|tracking number|tracking no|tracking id|tracking #|waybill|awb"
    "|parcel"
    "|parcel no|consignment|consignment no|shipment id|shipment no|docket|tenancy ref|tenancy no|registration no"
    "|registration number|licence key|certificate no|certificate number|permit no|permit number|locker no|visa no"
    "|visa number|uscis|a-number|alien number|receipt #|penalty notice|charge notice|pcn|fine no|notice no|lot no"
    "|insurance no|insurance number|insurance id|group number|subscriber id|rx number|rx #|prescription no"
    "|specimen no"
    "|sample id|accession no|accession number|lab no|study id|subject id|ticket ref|job no|work order|wo #"
    # German
    "|kundennummer|kundennr|kunden-nr|kd.-nr|kdnr|kd-nr|bestellnummer|bestell-nr|bestellnr|auftragsnummer|auftrags-nr"
    "|auftragsnr|vorgangsnummer|vorgangs-nr|vorgang|rechnungsnummer|rechnungs-nr|rechnungsnr|rg.-nr|vertragsnummer"
    "|vertrags-nr|vertragsnr|vertragskonto|mitgliedsnummer|mitglieds-nr|mitgliedsnr|personalnummer|personal-nr"
    "|pers.-nr"
    "|personalnr|mitarbeiternummer|matrikelnummer|matrikel-nr|matr.-nr|matrikel|aktenzeichen|az|az.|akz"
    "|geschäftszeichen|unser zeichen|ihr zeichen|seriennummer|serien-nr|seriennr|gerätenummer|geräte-nr"
    "|inventarnummer"
    "|inventar-nr|inv.-nr|sendungsnummer|sendungs-nr|sendungsverfolgung|paketnummer|trackingnummer|ticketnummer"
    "|ticket-nr|fallnummer|schadennummer|schaden-nr|schadensnummer|policennummer|versicherungsschein"
    "|versicherungsscheinnummer|vs-nr|zählernummer|zähler-nr|zählernr|referenznummer|ref.-nr|antragsnummer"
    "|teilnehmernummer|dienstausweis|kassenzeichen|betriebsnummer|ausweisnr|bibliotheksausweis"
    # French
    "|numéro client|n° client|no client|client n°|numéro de commande|n° de commande|commande n°|n° commande"
    "|numéro de facture"
    "|facture n°|n° facture|n° de facture|numéro de contrat|contrat n°|n° de contrat|n° contrat|numéro de dossier"
    "|dossier n°|n° dossier|n° de dossier|dossier|numéro de sinistre|sinistre n°|n° sinistre|sinistre|numéro de suivi"
    "|n° de suivi|numéro de série|n° de série|n° série|matricule|n° adhérent|numéro d'adhérent|n° étudiant"
    "|numéro étudiant|ine|vos réf|nos réf|n° allocataire|numéro d'abonné|n° abonné|rpps|adeli"
    "|n° de police"
    # Spanish, Portuguese
    "|número de cliente|n.º de cliente|nº cliente|nº de cliente|número de pedido|nº pedido|nº de pedido|pedido nº"
    "|pedido n.º|pedido|factura nº|nº de factura|número de factura|contrato nº|nº de contrato|número de contrato"
    "|expediente|nº de expediente|número de expediente|ref. catastral|nº de serie|número de serie"
    "|nº de seguimiento|número de seguimiento|seguimiento|póliza|nº de póliza|siniestro|legajo|matrícula nº|nhc"
    "|historia clínica|nº historia|nº de empleado|número de empleado|nº de socio|número de socio|colegiado|col"
    "|incidencia"
    "|número do pedido|nº do pedido|encomenda nº|encomenda|protocolo|prontuário|número do cliente|nº de cliente"
    "|número do contrato|nº do contrato|processo|processo nº|número do processo|fatura nº|apólice|sinistro"
    "|código de rastreio|rastreio|código de rastreamento|rastreamento|número de série|nº de série|nº de aluno"
    "|número de aluno|matrícula|nº mecanográfico|incidente|chamado|número de utente|nº utente"
    # Italian
    "|numero cliente|codice cliente|n. cliente|numero ordine|n. ordine|ordine n|ordine n.|numero d'ordine|fattura n"
    "|fattura n.|numero pratica|pratica n|pratica n.|pratica|polizza n|polizza n.|polizza|numero polizza|sinistro n"
    "|numero di serie|n. di serie|seriale|matricola|matr|n. matricola|protocollo|prot|prot. n|numero di spedizione"
    "|spedizione n|codice tracking|tracciamento|segnalazione|ticket n|contratto n|numero contratto|tessera n|tessera"
    "|badge n|postazione|cartella|cartella clinica n"
    # Dutch
    "|klantnummer|klantnr|ordernummer|bestelnummer|factuurnummer|factuurnr|contractnummer|polisnummer|polisnr"
    "|dossiernummer"
    "|dossiernr|zaaknummer|zaaknr|zaak|schadenummer|referentienummer|kenmerk|ons kenmerk|uw kenmerk"
    "|serienummer|personeelsnummer|personeelsnr|studentnummer|lidnummer|lidmaatschapsnummer|relatienummer"
    "|trackingnummer|patiëntnummer|patiëntnr|meldingsnummer|melding|meternummer|track & trace"
    # Polish
    "|numer klienta|nr klienta|numer zamówienia|nr zamówienia|zamówienie nr|zamówienie|zamówienia nr|faktura nr"
    "|nr faktury"
    "|numer faktury|nr umowy|numer umowy|umowa nr|umowa zlecenie nr|umowy nr|nr polisy|numer polisy|polisa nr"
    "|nr szkody"
    "|numer szkody|szkoda nr|sygnatura|sygn. akt|sygn|nr sprawy|numer sprawy|sprawa nr|nr seryjny|numer seryjny"
    "|nr przesyłki|numer przesyłki|nr albumu|numer albumu|nr legitymacji|legitymacja|nr pracownika|zgłoszenie"
    "|zgłoszenia"
    "|zgłoszenie nr|nr zgłoszenia|pwz|nr pwz|ks. wieczysta|kw nr"
    # Turkish
    "|müşteri no|müşteri numarası|sipariş no|sipariş numarası|sipariş|fatura no|sözleşme no|poliçe no|poliçe|dosya no"
    "|dosya numarası|esas no|karar no|dava no|sicil no|sicil|personel no|öğrenci no|seri no|cihaz no|takip no"
    "|gönderi takip"
    "|takip numarası|kargo takip|kargo no|talep|talep no|başvuru no|başvuru numarası|protokol no|abone no|tesisat no"
    "|üye no|üyelik no|referans no|hasta no|kayıt no"
    # Vietnamese
    "|mã khách hàng|mã kh|mã đơn hàng|mã đơn|đơn hàng số|mã vận đơn|vận đơn|mã hợp đồng|hợp đồng số|số hợp đồng"
    "|mã nhân viên|mã nv|mã số nhân viên|mã sinh viên|mssv|mã sv|mã số sinh viên|mã học sinh|mã hồ sơ|hồ sơ số"
    "|số hồ sơ"
    "|mã bệnh nhân|mã bn|số bhyt|mã bhyt|thẻ bhyt|bhyt|bhxh|mã số bhxh|số seri|sê-ri|serial|mã thẻ|mã đặt|mã phiếu"
    "|mã yêu cầu|mã ticket|số hóa đơn|hóa đơn số|mã hóa đơn"
    # Chinese, Japanese, Korean
    "|订单号|订单编号|訂單編號|訂單號|客户编号|客户号|会员号|会员编号|會員編號|会员卡号|工号|员工号|员工编号|学号"
    "|學號|考号|准考证号"
    "|合同号|合同编号|合約編號|保单号|保单编号|案号|案件编号|案件號|工单号|工单编号|受理编号|流水号|单号|运单号"
    "|快递单号|物流单号|顺丰|圆通"
    "|中通|韵达|申通|序列号|序號|设备号|设备编号|资产编号|病历号|病案号|住院号|门诊号|就诊卡号|医保号|医保卡号"
    "|发票号|发票号码|编号|編號|sn码"
    "|注文番号|ご注文番号|注文書|お客様番号|顧客番号|会員番号|会員id|社員番号|従業員番号|学籍番号|受験番号|契約番号"
    "|証券番号|保険証番号"
    "|保険証記号|記号番号|診察券番号|患者番号|患者id|問い合わせ番号|問合せ番号|お問い合わせ番号|受付番号|整理番号"
    "|伝票番号|追跡番号|送り状番号"
    "|製造番号|シリアル番号|シリアルナンバー|シリアル|管理番号|事件番号|請求書番号|チケット番号|案件番号|登録番号"
    "|免許番号"
    "|주문번호|주문 번호|고객번호|고객 번호|회원번호|회원 번호|사번|사원번호|직원번호|학번|수험번호|계약번호"
    "|증권번호|사건번호|접수번호"
    "|접수 번호|문의번호|관리번호|운송장|운송장번호|송장번호|송장 번호|일련번호|시리얼|시리얼번호|제조번호|환자번호"
    "|등록번호|차트번호|병록번호"
    "|티켓번호|민원번호|보험번호"
    # Russian
    "|номер заказа|заказ №|заказ*|№ заказа|номер договора|договор*|№ договора|договор №|номер клиента|лицевой счет"
    "|лицевой счёт|л/с|полис|полис №|полис омс|омс|номер полиса|дело|дело №|дела №|дела|номер дела|акт|акт №"
    "|счет-фактура"
    "|счёт-фактура|накладная|накладная №|трек-номер|трек|серийный номер|серийный №|сер. номер|инв. №|инв.№"
    "|инвентарный номер|табельный номер|табельный №|таб. №|таб.№|студенческий билет|зачетка|зачётка|номер обращения"
    "|обращение|обращение №|заявка|заявка №|заявки|номер заявки|тикет|карта|амб. карта|медкарта|медицинская карта"
    "|№ карты"
    "|история болезни|и/б|протокол №|удостоверение"
    # Arabic, Hindi
    "|رقم الطلب|رقم الطلبية|رقم العميل|رقم العضوية|رقم الموظف|الرقم الوظيفي|رقم الطالب|الرقم الجامعي|رقم العقد"
    "|رقم البوليصة|رقم الوثيقة"
    "|رقم القضية|رقم الدعوى|رقم السجل|رقم التسجيل|رقم الإقامة|رقم القيد|رقم الملف|ملف رقم|رقم التتبع|رقم الشحنة"
    "|رقم البوليصة|الرقم التسلسلي|رقم الجهاز|رقم التذكرة"
    "|تذكرة رقم|رقم الفاتورة|فاتورة رقم"
    "|رقم المريض|رقم المعاملة|رقم البلاغ|رقم المرجع|مرجع"
    "|ऑर्डर|आदेश संख्या|ग्राहक संख्या|ग्राहक आईडी|सदस्य संख्या|कर्मचारी संख्या|कर्मचारी आईडी|रोल नंबर|अनुक्रमांक"
    "|नामांकन|अनुबंध|पॉलिसी|केस|मामला"
    "|शिकायत|शिकायत क्र|आवेदन|आवेदन क्रमांक|मीटर|सीरियल|ट्रैकिंग|बिल संख्या|चालान|खाता आईडी|आईवीआरएस|उपभोक्ता"
    "|उपभोक्ता संख्या|पंजीकरण|पंजीयन|खसरा|खाता"
)
"""What announces a number that points to somebody's order, case, contract or device."""
_REFERENCES = "ref|refs|reference|reference number|ref no|reference no|referenz|référence|réf|referencia|referentie|rif"
"""What announces a reference, or the range in which a measured value is normal."""
_BARE = (
    "order|ticket|case|invoice|claim|policy|incident|employee|student|customer|patient|matter|docket|contract"
    "|application"
    "|bestellung|auftrag|rechnung|vertrag|police|fall|commande|facture|contrat|caso|factura|contrato|ordine|fattura"
    "|contratto|bestelling|factuur|zamówienie|umowa|sprawa|fatura|dava|đơn hàng|hợp đồng|订单|合同|工单|注文|契約"
    "|주문|계약|заявк*|طلب|عقد|user|account|serial|device|laptop|phone|asset|machine|pc|пк|hostname|maszyna"
    "|máquina|rechner|gerät|equipo|poste|ordinateur|dispositivo|computador|ordenador|apparaat|urządzenie"
    "|komputer|cihaz"
    "|bilgisayar|máy tính|устройство|компьютер|ноутбук|جهاز*|डिवाइस|设备|設備|端末|기기|노트북|tenancy|cheque"
    "|delivery note"
    "|tracker|jira|acc|parcel|shipment|mã|बिल|रसीद|पावती|टिकट|शिकायत|티켓|차량|회선|بلاغ|حجز|حاوية|الحاوية|معاملة"
    "|فاتورة"
    "|طلبية|إيصال|nid|fir|chassis|rego|matric|reg|policy_no in|delivery|chip|pas|quote|quoting|token|voucher"
    "|inventaris"
)
_NUMBER_OF = (
    "رقم|नंबर|संख्या|क्रमांक|नं|कोड|номер|номером|numer|numero|numéro|nº|n°|mã số|số hiệu|số|numara|numarası|numarali"
    "|番号|編號|编号|單號|单号|证号|證號|號碼|号码|번호|カード|carte d'adhérent|nr|nr.|no|no."
)
"""What says that a number follows, not of what."""

RULES = (
    keyed(
        "MEDICAL_RECORD",
        "mrn|m.r.n|medical record|medical records|health record|patient id|patient number|patient no|patient #"
        "|patient-id|chart number|chart no|chart #|hospital number|hospital no|case number|case no|health plan"
        "|health insurance|member id|medicaid|patientennummer|patienten-nr|fallnummer|krankenversichertennummer"
        "|versichertennummer|numéro de dossier|dossier médical|historia clínica|número de paciente|cartella clinica",
        _FORM,
        digits=3,
        check=has_digit,
    ),
    Rule(
        "ID",
        Expression(r"(?<!\w) \d (?:[ \-/]?\d){14,15} (?!\w)"),
        check=is_imei,
        digits=15,
        **words("imei*"),
    ),
    linked("BOOKING", _BOOKINGS, r"(?-i: (?=[A-Z]*\d) [A-Z\d]{6} )", check=is_locator, score=0.85),
    linked("BOOKING", _BOOKINGS, _CODE, check=is_telling),
    linked("ID", _NUMBERED, _CODE, check=is_reference, score=0.72),
    linked(
        "ID",
        _REFERENCES,
        rf"{_CODE} (?!,\d)",
        check=lambda value: is_reference(value) and not is_range(value),
        score=0.72,
    ),
    linked("ID", _BARE, _CODE, check=is_telling, score=0.65),
    linked("ID", _NUMBER_OF, _CODE, check=is_marked, score=0.62),
    linked(
        "ID", "chip|microchip|chipnummer|chip no|nr chipa|칩번호|芯片|чип", r"\d{15}", digits=15
    ),
    # words of Germanic languages that end so: Mieternummer 40-2281, studentnr. 5118204
    Rule(
        "ID",
        Expression(
            rf"(?<!\w) (?! (?:artikel|modell?|produkt|product|teile|fehler|fout|versions?|haus|huis|zimmer|kamer|seiten"
            rf" |kapitel|port|telefon|telefoon|atom|ordnungs|stammprodukt|isbn|ean|raum|spiel|glücks)-?"
            rf" (?:nummer|nr) )"
            rf" \p{{L}}{{3,20}} -? (?:\p{{L}}{{1,12}})? (?:nummer|nr\.?) {LINK} (?P<value>{_CODE}) (?!\w)"
        ),
        score=0.65,
        check=is_telling,
        digits=4,
        signs=("nummer", "nr"),
        reach=(40, 90),
    ),
    # tickets in brackets or with a hash sign: [HELP-20871], #TCK-77120
    Rule(
        "ID",
        Expression(
            r"(?<![\w\#\[]) [\[\#] [ ]? (?P<value> (?! (?i:cve|rfc|iso|pep|cwe|sha|utf|iec|ecma|kb|gh|bcp|std)- )"
            r" [A-Z]{2,8} - \d{3,8} ) (?![\w.\-])",
            regex.VERBOSE,
        ),
        score=0.75,
        signs=("[", "#"),
        digits=3,
    ),
    # the readable zone of a passport, cars of Ireland
    Rule(
        "NATIONAL_ID",
        Expression(
            r"(?<![\w<]) (?=[A-Z0-9<]{0,40}<<) (?= (?:<*[A-Z0-9]){8} ) [A-Z0-9<]{28,44}+ (?![\w<])",
            regex.VERBOSE,
        ),
        score=0.95,
        signs=("<<",),
        reach=(46, 46),
    ),
    Rule(
        "PLATE",
        Expression(
            r"(?<![\w\-]) (?:9\d|0\d|1[0-2]|(?:1[3-9]|2\d)[12]) -"
            r" (?: [CDGLTW] | C[ENW] | DL | K[EKY] | L[DHMSK] | M[HNO] | OY | RN | SO | T[NS] | W[HWX] ) -"
            r" \d{1,6} (?![\w\-])",
            regex.VERBOSE,
        ),
        0.8,
        leads=True,
        digits=4,
    ),
    # extensions, and the last digits of a number
    linked(
        "PHONE",
        "ext|extn|extension|durchwahl|dw|poste|interno|anexo|ramal|toestel|tst|wewn|wew|dahili|máy lẻ|nhánh"
        "|nội bộ|poste téléphonique"
        "|分机|分機|内線|내선|доб|вн|внутр|تحويلة|داخلي|एक्सटेंशन|एक्स",
        r"\d{2,3}-\d\d | \d{3,6}",
        digits=3,
    ),
    linked("PHONE", "尾号|尾號|末尾|下4桁|下四桁|뒷자리|끝자리", r"\d{4}", digits=4),
    Rule(
        "ID",
        Expression(r"(?<![\w/]) (?:19|20)\d\d/\d{1,6} (?![\w/])"),
        0.75,
        before=True,
        digits=5,
        **words("sayılı|esas|karar|esas sayılı"),
    ),
    # tickets of usual systems, and of others at the start of a text
    Rule(
        "ID",
        Expression(
            r"(?<![\w\-]) (?: inc | req | ritm | chg | prb | sctask | tkt | cs | csr | sr ) -?0?\d{5,12} (?!\w)"
        ),
        0.75,
        leads=True,
        digits=5,
    ),
    Rule(
        "ID",
        Expression(
            r"(?<![\w\-]) (?: inc | req | ritm | chg | prb | sctask | tkt | case ) -\d{4,12} (?!\w)"
        ),
        0.75,
        leads=True,
        digits=4,
    ),
    Rule(
        "ID",
        Expression(r"\A \s{0,3} \[? \# (?P<value>\d{5,10}) (?!\w)"),
        0.7,
        signs=("#",),
        digits=5,
    ),
    Rule(
        "ID",
        Expression(r"(?<!\w) 1Z[ ]?[\dA-Z]{3}[ ]?[\dA-Z]{3}[ ]?\d\d[ ]?\d{4}[ ]?\d{4} (?!\w)"),
        0.85,
        leads=True,
        digits=8,
    ),
)
"""Numbers of patients, bookings, orders, cases, contracts, members and devices."""
