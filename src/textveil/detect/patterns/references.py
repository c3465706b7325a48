"""References: numbers of patients, bookings, orders, cases, contracts, members and devices.

They are recognised by words nearby.

In: nothing. Out: `RULES`.
Not here: national numbers (`people`), vehicles (`vehicles`), accounts (`accounts`).
"""

from collections.abc import Sequence

import regex

from textveil.detect.patterns.rules import (
    Expression,
    Rule,
    build_context,
    guard_rules,
    has_digits,
    make_linked_rule,
    make_word_set,
)
from textveil.text import LazyPattern
from textveil.text.lexicon import is_all_ordinary, read_lists

_CODE = r"""
    (?: (?! (?: IP | MAC | OS | TEL | FAX | EXT | PIN | CET | UTC | GB | ISO | RFC | DIN ) [ ] )
        (?-i:[A-Z]{1,4}) [ ] (?=\d)
      | (?= [\p{L}.\-/_]{0,14} \d ) ) [\p{L}\d]{1,36}+
    (?: [.\-/_] [\p{L}\d]{1,36}+ | [ ] (?= (?-i:[A-Z]{0,3}) \d [\dA-Z]{2} ) (?-i:[A-Z\d]{3,20}+) ){0,8}
"""
"""Letters and digits in groups, with a digit near the start.

A group after a space must begin like a number.
"""
_BRANCH = LazyPattern(r"\d{1,6}-([a-z]{2,20}(?:-[a-z]{2,20}){1,8})")
"""The name of a branch that begins with a ticket: 1234-login-fix."""
_DATE = LazyPattern(
    r"\d{1,2}[./]\d{1,2} | \d{1,2}[./\-]\d{1,2}[./\-](?:19|20)?\d\d | (?:19|20)\d\d[./\-]\d{1,2}[./\-]\d{1,2}",
    regex.VERBOSE,
)
_YEAR = LazyPattern(r"(?:19|20)\d\d")
_YEARLY = LazyPattern(r"/(?:19|20)\d\d(?:/|\Z)")
_THOUSANDS = LazyPattern(r"\d{1,3}(?:\.\d{3})+")
_DECIMAL = LazyPattern(r"\d+\.\d{1,2}|v\d+(?:\.\d+){1,3}|\d+(?:\.\d+){2,3}", regex.IGNORECASE)
_MEASURE = LazyPattern(
    r"\d+(?:st|nd|rd|th|x|k|m|s|h|d|kg|g|mg|ml|km|cm|mm|gb|mb|kb|pm|am|eur|usd|years?|days?)",
    regex.I,
)
_TECHNICAL = LazyPattern(
    r"0x[\dA-Fa-f]{1,16}|v\d+(?:\.\d+){1,3}|\d+(?:\.\d+){1,3}-(?:rc|alpha|beta|dev|pre)\.?\d*"
)
"""Codes of errors and numbers of versions."""


def is_reference(value: str) -> bool:
    """True if a value can be a reference number.

    It has two digits, and is no date, measure, decimal number, error code, version or branch.
    """
    return (
        sum(map(str.isdigit, value)) >= 2
        and sum(c.isalnum() for c in value) >= 3
        and not any(
            form.fullmatch(value) for form in (_YEAR, _DATE, _DECIMAL, _MEASURE, _TECHNICAL)
        )
        and not _is_branch(value)
    )


def is_issued(value: str) -> bool:
    """True if a value is a reference and no normal range."""
    return is_reference(value) and not is_range(value)


def is_ticket(value: str) -> bool:
    """True if a value is the key of a ticket.

    It is no number of a standard or a public weakness: RFC-2119, CVE-2024-1234.
    """
    return value.partition("-")[0] not in _STANDARDS


_STANDARDS = make_word_set("CVE RFC ISO PEP CWE SHA UTF IEC ECMA KB GH BCP STD")


def is_range(value: str) -> bool:
    """True if a value is the normal range of a measured value.

    Examples are 4.5-11.0, 70-99 and 150,000-450,000; an issued number is none. Whole numbers differ
    by a factor of 20 at most, and have three digits at most, or thousands.
    """
    ends = regex.split(r"[ ]?[\-–—][ ]?", value)
    if len(ends) != 2 or not all(map(_MEASURED.fullmatch, ends)):
        return False
    decimal = any(map(_WITH_PLACES.search, ends))
    low, high = (float(regex.sub(r"[.,](?=\d{3})", "", end).replace(",", ".")) for end in ends)
    short = all(len(end) <= 3 or not end.isdigit() for end in ends)
    return low < high and (decimal or (short and high <= 20 * max(low, 1)))


_MEASURED = LazyPattern(r"\d{1,3}(?:[.,]\d{3}){1,2}|(?:0|[1-9]\d{0,3})(?:[.,]\d{1,2})?")
_WITH_PLACES = LazyPattern(r"[.,]\d{1,2}(?!\d)")


def _is_branch(value: str) -> bool:
    """True if a value is a branch name in ordinary words."""
    branch = _BRANCH.fullmatch(value)
    return branch is not None and _are_words(branch[1].split("-"))


def _are_words(parts: Sequence[str]) -> bool:
    """True if all parts are ordinary words and no names."""
    return is_all_ordinary(" ".join(parts)) and read_lists()[0].isdisjoint(parts)


def is_telling(value: str) -> bool:
    """True if a reference is distinctive without a clear key.

    It has six digits, or three with letters or separators and five characters in all.
    """
    digits = sum(c.isdigit() for c in value)
    return (
        is_reference(value)
        and not _THOUSANDS.fullmatch(value)
        and (digits >= 6 or (digits >= 3 and not value.isdigit() and len(value) >= 5))
    )


def is_dateless(value: str) -> bool:
    """True if a value has an issued number's digits, and no date.

    A number with letters and a year between slashes is a paper's: FV/2024/03/0047.
    """
    dated = _DATE.fullmatch(value) or (not value[0].isdigit() and _YEARLY.search(value))
    return has_digits(value) and not dated


def is_booking(value: str) -> bool:
    """True if a value can be the number of a booking.

    Its locator, six capitals and digits, counts, too.
    """
    return (len(value) == 6 and value == value.upper()) or is_dateless(value)


_BOOKINGS = (
    "booking reference|booking ref|booking code|booking no|booking number|booking "
    "id|booking|reservation number"
    "|reservation code|reservation no|reservation|confirmation number|confirmation "
    "code|confirmation no|e-ticket"
    "|ticket number|flight ref|record locator|locator|pnr|airline "
    "reference|buchungsnummer|buchungscode"
    "|buchungsnr|buchung|reservierungsnummer|reservierung|filekey|vorgangsnummer|numéro de "
    "réservation"
    "|n° de réservation|réservation|dossier voyage|código de reserva|número de "
    "reserva|localizador|reserva"
    "|codice prenotazione|numero "
    "prenotazione|prenotazione|reserveringsnummer|boekingsnummer|boekingscode"
    "|numer rezerwacji|kod rezerwacji|nr rezerwacji|rezerwacj*|rezervasyon*|mã đặt chỗ|mã đặt "
    "phòng|mã vé"
    "|预订号|预定号|订座|订票|酒店订单|予約番号|予約コード|確認番号|예약번호|예약 번호|номер брони"
    "|номер бронирования|бронь|брони*"
    "|رقم الحجز|الحجز|رمز الحجز|बुकिंग|पीएनआर|आरक्षण"
)
_NUMBERED = (
    "ref|refs|reference|reference number|ref no|reference "
    "no|referenz|référence|referencia|referentie|rif"
    "|imei|imei1|imei2|plate"
    "|account id|customer number|customer no|customer id|customer #|client number|client "
    "no|client id|user id"
    "|member no"
    "|member number|member id|membership number|membership no|membership|loyalty no|frequent "
    "flyer|frequent flyer no"
    "|employee no|employee number|employee id|employee #|emp id|emp. no|staff no|staff id|staff "
    "number|personnel no"
    "|personnel number|payroll no|payroll number|worker id|badge no|badge number|badge "
    "id|badge|collar no|shoulder no"
    "|student id|student no|student number|student #|matriculation no|enrolment no|enrollment "
    "number|roll no"
    "|candidate number|candidate no|exam no|applicant id|application number|application "
    "no|application id"
    "|order number"
    "|order no|order id|order #|order nr|purchase order|po number|po no|po #|invoice "
    "number|invoice no|invoice #"
    "|invoice id|receipt no|receipt number|contract number|contract no|contract id|policy "
    "number|policy no|policy #"
    "|policy id|claim number|claim no|claim #|claim id|claim ref|case number|case no|case #|case "
    "id|case ref|hr-case"
    "|docket no|docket number|file no|file number|file ref|matter no|warrant no|crime "
    "number|crime ref|incident no"
    "|incident number|ticket number|ticket no|ticket id|ticket #|our ref|your ref|case "
    "reference|incident ref"
    "|serial|serial number|serial no|s/n|sn|serial #|asset tag"
    "|asset no|asset id|device id|device no|scanner number|machine no|plant no|meter no|meter "
    "number|meter id|mpan"
    "|mprn"
    "|imsi|iccid|sim no|sim number|udid|tracking|tracking number|tracking no|tracking id|tracking "
    "#|waybill|awb"
    "|parcel"
    "|parcel no|consignment|consignment no|shipment id|shipment no|docket|tenancy ref|tenancy "
    "no|registration no"
    "|registration number|licence key|certificate no|certificate number|permit no|permit "
    "number|locker no|visa no"
    "|visa number|uscis|a-number|alien number|receipt #|penalty notice|charge notice|pcn|fine "
    "no|notice no|lot no"
    "|insurance no|insurance number|insurance id|group number|subscriber id|rx number|rx "
    "#|prescription no"
    "|specimen no"
    "|sample id|accession no|accession number|lab no|study id|subject id|ticket ref|job no|work "
    "order|wo #"
    # German
    "|kundennummer|kundennr|kunden-nr|kd.-nr|kdnr|kd-nr|bestellnummer|bestell-nr|bestellnr|auftragsnummer|auftrags-nr"
    "|auftragsnr|vorgangsnummer|vorgangs-nr|vorgang|rechnungsnummer|rechnungs-nr|rechnungsnr|rg.-nr|vertragsnummer"
    "|vertrags-nr|vertragsnr|vertragskonto|mitgliedsnummer|mitglieds-nr|mitgliedsnr|personalnummer|personal-nr"
    "|pers.-nr"
    "|personalnr|mitarbeiternummer|matrikelnummer|matrikel-nr|matr.-nr|matrikel|aktenzeichen|az|az.|akz"
    "|geschäftszeichen|unser zeichen|ihr "
    "zeichen|seriennummer|serien-nr|seriennr|gerätenummer|geräte-nr"
    "|inventarnummer"
    "|inventar-nr|inv.-nr|sendungsnummer|sendungs-nr|sendungsverfolgung|paketnummer|trackingnummer|ticketnummer"
    "|ticket-nr|fallnummer|schadennummer|schaden-nr|schadensnummer|policennummer|versicherungsschein"
    "|versicherungsscheinnummer|vs-nr|zählernummer|zähler-nr|zählernr|referenznummer|ref.-nr|antragsnummer"
    "|teilnehmernummer|dienstausweis|kassenzeichen|betriebsnummer|ausweisnr|bibliotheksausweis"
    # French
    "|numéro client|n° client|no client|client n°|numéro de commande|n° de commande|commande "
    "n°|n° commande"
    "|numéro de facture"
    "|facture n°|n° facture|n° de facture|numéro de contrat|contrat n°|n° de contrat|n° "
    "contrat|numéro de dossier"
    "|dossier n°|n° dossier|n° de dossier|dossier|numéro de sinistre|sinistre n°|n° "
    "sinistre|sinistre|numéro de suivi"
    "|n° de suivi|numéro de série|n° de série|n° série|matricule|n° adhérent|numéro d'adhérent|n° "
    "étudiant"
    "|numéro étudiant|ine|vos réf|nos réf|n° allocataire|numéro d'abonné|n° abonné|rpps|adeli"
    "|n° de police"
    # Spanish, Portuguese
    "|número de cliente|n.º de cliente|nº cliente|nº de cliente|número de pedido|nº pedido|nº de "
    "pedido|pedido nº"
    "|pedido n.º|pedido|factura nº|nº de factura|número de factura|contrato nº|nº de "
    "contrato|número de contrato"
    "|expediente|nº de expediente|número de expediente|ref. catastral|nº de serie|número de serie"
    "|nº de seguimiento|número de seguimiento|seguimiento|póliza|nº de "
    "póliza|siniestro|legajo|matrícula nº|nhc"
    "|historia clínica|nº historia|nº de empleado|número de empleado|nº de socio|número de "
    "socio|colegiado|col"
    "|incidencia"
    "|número do pedido|nº do pedido|encomenda nº|encomenda|protocolo|prontuário|número do "
    "cliente|nº de cliente"
    "|número do contrato|nº do contrato|processo|processo nº|número do processo|fatura "
    "nº|apólice|sinistro"
    "|código de rastreio|rastreio|código de rastreamento|rastreamento|número de série|nº de "
    "série|nº de aluno"
    "|número de aluno|matrícula|nº mecanográfico|incidente|chamado|número de utente|nº utente"
    # Italian
    "|numero cliente|codice cliente|n. cliente|numero ordine|n. ordine|ordine n|ordine n.|numero "
    "d'ordine|fattura n"
    "|fattura n.|numero pratica|pratica n|pratica n.|pratica|polizza n|polizza n.|polizza|numero "
    "polizza|sinistro n"
    "|numero di serie|n. di serie|seriale|matricola|matr|n. matricola|protocollo|prot|prot. "
    "n|numero di spedizione"
    "|spedizione n|codice tracking|tracciamento|segnalazione|ticket n|contratto n|numero "
    "contratto|tessera n|tessera"
    "|badge n|postazione|cartella|cartella clinica n"
    # Dutch
    "|klantnummer|klantnr|ordernummer|bestelnummer|factuurnummer|factuurnr|contractnummer|polisnummer|polisnr"
    "|dossiernummer"
    "|dossiernr|zaaknummer|zaaknr|zaak|schadenummer|referentienummer|kenmerk|ons kenmerk|uw kenmerk"
    "|serienummer|personeelsnummer|personeelsnr|studentnummer|lidnummer|lidmaatschapsnummer|relatienummer"
    "|trackingnummer|patiëntnummer|patiëntnr|meldingsnummer|melding|meternummer|track & trace"
    # Polish
    "|numer klienta|nr klienta|numer zamówienia|nr zamówienia|zamówienie nr|zamówienie|zamówienia "
    "nr|faktura nr"
    "|nr faktury"
    "|numer faktury|nr umowy|numer umowy|umowa nr|umowa zlecenie nr|umowy nr|nr polisy|numer "
    "polisy|polisa nr"
    "|nr szkody"
    "|numer szkody|szkoda nr|sygnatura|sygn. akt|sygn|nr sprawy|numer sprawy|sprawa nr|nr "
    "seryjny|numer seryjny"
    "|nr przesyłki|numer przesyłki|nr albumu|numer albumu|nr legitymacji|legitymacja|nr "
    "pracownika|zgłoszenie"
    "|zgłoszenia"
    "|zgłoszenie nr|nr zgłoszenia|pwz|nr pwz|ks. wieczysta|kw nr"
    # Turkish
    "|müşteri no|müşteri numarası|sipariş no|sipariş numarası|sipariş|fatura no|sözleşme "
    "no|poliçe no|poliçe|dosya no"
    "|dosya numarası|esas no|karar no|dava no|sicil no|sicil|personel no|öğrenci no|seri no|cihaz "
    "no|takip no"
    "|gönderi takip"
    "|takip numarası|kargo takip|kargo no|talep|talep no|başvuru no|başvuru numarası|protokol "
    "no|abone no|tesisat no"
    "|üye no|üyelik no|referans no|hasta no|kayıt no"
    # Vietnamese
    "|mã khách hàng|mã kh|mã đơn hàng|mã đơn|đơn hàng số|mã vận đơn|vận đơn|mã hợp đồng|hợp đồng "
    "số|số hợp đồng"
    "|mã nhân viên|mã nv|mã số nhân viên|mã sinh viên|mssv|mã sv|mã số sinh viên|mã học sinh|mã "
    "hồ sơ|hồ sơ số"
    "|số hồ sơ"
    "|mã bệnh nhân|mã bn|số bhyt|mã bhyt|thẻ bhyt|bhyt|bhxh|mã số bhxh|số seri|sê-ri|serial|mã "
    "thẻ|mã đặt|mã phiếu"
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
    "|номер заказа|заказ №|заказ*|№ заказа|номер договора|договор*|№ договора|договор №|номер "
    "клиента|лицевой счет"
    "|лицевой счёт|л/с|полис|полис №|полис омс|омс|номер полиса|дело|дело №|дела №|дела|номер "
    "дела|акт|акт №"
    "|счет-фактура"
    "|счёт-фактура|накладная|накладная №|трек-номер|трек|серийный номер|серийный №|сер. "
    "номер|инв. №|инв.№"
    "|инвентарный номер|табельный номер|табельный №|таб. №|таб.№|студенческий "
    "билет|зачетка|зачётка|номер обращения"
    "|обращение|обращение №|заявка|заявка №|заявки|номер заявки|тикет|карта|амб. "
    "карта|медкарта|медицинская карта"
    "|№ карты"
    "|история болезни|и/б|протокол №|удостоверение"
    # Arabic, Hindi
    "|رقم الطلب|رقم الطلبية|رقم العميل|رقم العضوية|رقم الموظف|الرقم الوظيفي|رقم الطالب|الرقم "
    "الجامعي|رقم العقد"
    "|رقم البوليصة|رقم الوثيقة"
    "|رقم القضية|رقم الدعوى|رقم السجل|رقم التسجيل|رقم الإقامة|رقم القيد|رقم الملف|ملف رقم|رقم "
    "التتبع|رقم الشحنة"
    "|رقم البوليصة|الرقم التسلسلي|رقم الجهاز|رقم التذكرة"
    "|تذكرة رقم|رقم الفاتورة|فاتورة رقم"
    "|رقم المريض|رقم المعاملة|رقم البلاغ|رقم المرجع|مرجع"
    "|ऑर्डर|आदेश संख्या|ग्राहक संख्या|ग्राहक आईडी|सदस्य संख्या|कर्मचारी संख्या|कर्मचारी आईडी|रोल "
    "नंबर|अनुक्रमांक"
    "|नामांकन|अनुबंध|पॉलिसी|केस|मामला"
    "|शिकायत|शिकायत क्र|आवेदन|आवेदन क्रमांक|मीटर|सीरियल|ट्रैकिंग|बिल संख्या|चालान|खाता "
    "आईडी|आईवीआरएस|उपभोक्ता"
    "|उपभोक्ता संख्या|पंजीकरण|पंजीयन|खसरा|खाता"
)
"""Words before the number of an order, case, contract or device."""
_WORDS_BY_TYPE = {
    "NATIONAL_ID": "dni|nie|rg|rut|ci|tin|ein|ssn|nin|siret|siren|vat|ust-idnr|ust-id|uid|cuit"
    "|cuil|curp|nric|pps|ppsn|nik|gstin|rvnr|tckn|kimlik no|sgk no|epic no|voter id|emirates id"
    "|passport|passports|reisepass|reisepassnummer|passeport|pasaporte|passaporto|passaporte"
    "|paspoort|paszport|paszportu|pasaport|паспорт|护照*|護照*|旅券*|パスポート*|여권*|hộ chiếu"
    "|جواز السفر|पासपोर्ट*|national id|identity card|identity number|id card|id number"
    "|personalausweis|personalausweisnummer|ausweisnummer|steuer-id|steuernummer|st.-nr"
    "|carte d'identité|carta d'identità|codice fiscale|partita iva|cédula|cartão de cidadão"
    "|identiteitskaart|dowód|dowodu|cmnd|mã số thuế|身份证*|身份證*|社保*|マイナンバー"
    "|在留カード*|주민등록번호*|полис|رقم الهوية|आधार*|पैन*|मतदाता*",
    "LICENCE": "driver license|drivers license|driver's license|driving licence|driving license"
    "|license number|licence number|license no|licence no|dl no|dl #|dl number|gmc|bar number"
    "|führerschein|führerscheinnummer|permis de conduire|permiso de conducir|carné de conducir"
    "|licencia de conducir|patente di guida|rijbewijs|rijbewijsnummer|carta de condução|cnh"
    "|habilitação|prawo jazdy|prawa jazdy|ehliyet|bằng lái xe|gplx|giấy phép lái xe|驾驶证*|驾照*"
    "|駕照*|免許*|운전면허*|водительское удостоверение|رخصة القيادة|ड्राइविंग लाइसेंस|crm|npwp",
    "MEDICAL_RECORD": "mrn|medical record|health record|patient id|patient number|patient no"
    "|patient #|chart number|chart no|chart #|hospital number|hospital no"
    "|medicaid|patientennummer|patienten-nr|fallnummer|versichertennummer|numéro de dossier"
    "|dossier médical|historia clínica|número de paciente|cartella clinica",
}
"""Words before a number, by the type of the number."""
_CARDS = (
    "identity card|personalausweis|carte d'identité|carta d'identità|documento de identidad|bilhete de identidade"
    "|dowód osobisty|dowod osobisty|dowodu osobistego|dowodem osobistym|dowodem o numerze|občanský průkaz"
)
"""Identity cards by their full names, behind which further words may stand."""
_VEHICLES = (
    "vin|vehicle identification|chassis|fahrgestellnummer|fahrgestell-nr|fahrgestell|fin|châssis"
    "|n° de châssis|bastidor|chassi|telaio|chassisnummer|nadwozia|nr vin|şasi no|số khung|车架号*"
    "|車架號*|車台番号*|차대번호*|номер кузова|الشاسيه|चेसिस*"
)
_BARE = (
    "order|ticket|case|invoice|claim|policy|incident|employee|student|customer|patient|matter|docket|contract"
    "|application"
    "|bestellung|auftrag|rechnung|vertrag|police|fall|commande|facture|contrat|caso|factura|contrato|ordine|fattura"
    "|contratto|bestelling|factuur|zamówienie|umowa|sprawa|fatura|dava|đơn hàng|hợp "
    "đồng|订单|合同|工单|注文|契約"
    "|주문|계약|заявк*|طلب|عقد|user|account|serial|device|laptop|phone|asset|machine|pc|пк|hostname|maszyna"
    "|máquina|rechner|gerät|equipo|poste|ordinateur|dispositivo|computador|ordenador|apparaat|urządzenie"
    "|komputer|cihaz"
    "|bilgisayar|máy tính|устройство|компьютер|ноутбук|جهاز*|डिवाइस|设备|設備|端末|기기|노트북|tenancy|cheque"
    "|delivery note"
    "|tracker|jira|acc|parcel|shipment|mã|बिल|रसीद|पावती|टिकट|शिकायत|티켓|차량|회선|بلاغ|حجز|حاوية|الحاوية|معاملة"
    "|فاتورة"
    "|طلبية|إيصال|nid|fir|chassis|rego|matric|reg|policy_no "
    "in|delivery|chip|pas|quote|quoting|token|voucher"
    "|inventaris"
)

RULES = (
    *guard_rules(
        "six letters and figures open a booking",
        make_linked_rule("BOOKING", _BOOKINGS, _CODE, check=is_booking, score=0.85),
    ),
    *guard_rules(
        "nothing else tells the kind of number",
        *(
            make_linked_rule(kind, names, _CODE, check=is_dateless, score=0.86)
            for kind, names in _WORDS_BY_TYPE.items()
        ),
        make_linked_rule(
            "NATIONAL_ID", _CARDS, _CODE, digits=4, check=is_dateless, score=0.86, wordy=True
        ),
        make_linked_rule(
            "VIN",
            _VEHICLES,
            r"[A-HJ-NPR-Z\d] (?: [ \-]? [A-HJ-NPR-Z\d] ){16}",
            check=has_digits,
            score=0.88,
            wordy=True,
        ),
    ),
    make_linked_rule("ID", _NUMBERED, rf"{_CODE} (?!,\d)", check=is_issued, score=0.72),
    *guard_rules(
        "a number that its words call one, also where no tagger reads",
        make_linked_rule("ID", _BARE, _CODE, check=is_telling, score=0.65),
    ),
    # extensions, and the last digits of a number
    make_linked_rule(
        "PHONE",
        "ext|extn|extension|durchwahl|dw|poste|interno|anexo|ramal|toestel|tst|wewn|wew|dahili|máy lẻ|nhánh"
        "|nội bộ|poste téléphonique"
        "|分机|分機|内線|내선|доб|вн|внутр|تحويلة|داخلي|एक्सटेंशन|एक्स",
        r"\d{2,3}-\d\d | \d{3,6}",
        digits=3,
    ),
    *guard_rules(
        "four figures that tell a telephone or a card",
        make_linked_rule("PHONE", "尾号|尾號|末尾|下4桁|下四桁|뒷자리|끝자리", r"\d{4}", digits=4),
    ),
    Rule(
        "ID",
        Expression(r"(?<![\w/]) (?:19|20)\d\d/\d{1,6} (?![\w/])"),
        0.75,
        can_precede=True,
        digits=5,
        **build_context("sayılı|esas|karar|esas sayılı"),
    ),
    *guard_rules(
        "a form that a system of tickets or parcels gives",
        # [HELP-20871], #TCK-77120, and at the start of a text [#448120]
        Rule(
            "ID",
            Expression(
                r"(?<![\w\#\[]) [\[\#] [ ]? (?P<value> (?-i:[A-Z]{2,8}) - \d{3,8} ) (?![\w.\-])"
                r" | \A \s{0,3} \[? \# (?P<value>\d{5,10}) (?!\w)"
            ),
            score=0.75,
            check=is_ticket,
            triggers=("[", "#"),
            digits=3,
        ),
        Rule(
            "ID",
            Expression(
                r"(?<![\w\-]) (?: inc | req | ritm | chg | prb | sctask | tkt | cs | csr | sr )"
                r" -?0?\d{5,12} (?!\w)"
            ),
            0.75,
            numeric_prefix=True,
            digits=5,
        ),
        Rule(
            "ID",
            Expression(r"(?<!\w) 1Z[ ]?[\dA-Z]{3}[ ]?[\dA-Z]{3}[ ]?\d\d[ ]?\d{4}[ ]?\d{4} (?!\w)"),
            0.85,
            numeric_prefix=True,
            digits=8,
        ),
    ),
)
"""Numbers of patients, bookings, orders, cases, contracts, members and devices."""
