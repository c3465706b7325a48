"""Keys: what a name of a field, column, element or header says about its value, in many languages.

In: a key as it stands, `customerFirstName`, `date_of_birth`, `Geburtsdatum`, `お客様名`. Out: the kind of its value.
Not here: whether a value fits its key (`values`), and how keys are found (`pairs`, `tables`).
"""

import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

import regex

from textveil.detect.patterns.secrets import secret_check

LONGEST = 64
"""Characters: longer keys are no keys."""

_TABLE = {
    "given": """first name|given name|forename|fname|first names|given names|christian name|middle name
        |nickname|called name|firstname|givenname|middlename|preferred name|vorname|vornamen|rufname|prenom|prenoms
        |primer nombre|segundo nombre|nombre de pila|primeiro nome|nome proprio|nome di battesimo|voornaam|voornamen
        |roepnaam|imie|imiona|drugie imie|ten goi|ten dem|名字|отчество|الاسم الأول|पहला नाम|first|middle""",
    "family": """last name|family name|surname|lname|lastname|familyname|maiden name|second name|nachname
        |familienname|geburtsname|nom de famille|nom de naissance|nom d'usage|apellido|apellidos|primer apellido
        |segundo apellido|apellido1|apellido2|sobrenome|apelido|ultimo nome|cognome|achternaam|tussenvoegsel
        |nazwisko|nazwisko rodowe|soyad|soyadi|soyisim|ho|姓氏|苗字|성씨|фамилия|девичья фамилия|اسم العائلة|اللقب
        |उपनाम|कुलनाम|last""",
    "full": """full name|fullname|real name|realname|legal name|name on card|cardholder
        |card holder|account holder|name and surname|names of|person name|your name|my name|contact name|signed
        |signed by|signature|signatory|vor und nachname|vor- und nachname|name vorname|nachname vorname
        |nom et prenom|nom prenom|nom complet|nombre completo|nombre y apellidos|nombre y apellido|nombres
        |nome completo|nome e cognome|cognome e nome|volledige naam|naam en voornaam|imie i nazwisko|nazwisko i imie
        |ad soyad|adi soyadi|ad soyadi|ho ten|ho va ten|ho ten day du|姓名|氏名|お名前|名前|フリガナ|ふりがな|カナ
        |이름|성명|성함|예금주|фио|ф.и.о|имя и фамилия|фамилия имя отчество|полное имя|الاسم|الاسم الكامل
        |الاسم رباعيا|الاسم ثلاثي|नाम|पूरा नाम|hasta adi|voorletters|also known as""",
    "name": "name|display name|nombre|nom|nome|naam|ten|isim|ad|adi|имя|nafn|navn|naziv|cn|fn|nominativo|voller name",
    "author": """author|artist|written by|creator|photographer|composer|editor|translator|autor|autorin|auteur
        |autore|yazar|tac gia|作者|著者|저자|글쓴이|автор|المؤلف|लेखक|copyright|maintainer|committer|maintained by""",
    "role": "@persons",
    "org": """company|company name|employer|employer name|organisation|organization|organization name
        |business name|firm|school|school name|university|college|clinic|hospital|hospital name|practice|insurer
        |insurance company|insurance provider|bank name|landlord company|law firm|agency|place of work|workplace
        |works at|nursery|kindergarten|firma|firmenname|unternehmen|arbeitgeber|schule|universitat|klinik
        |krankenhaus|praxis|versicherung|krankenkasse|entreprise|societe|employeur|ecole|etablissement|hopital
        |clinique|assureur|mutuelle|empresa|empleador|razon social|escuela|colegio|instituto|universidad|clinica
        |aseguradora|empregador|escola|faculdade|seguradora|azienda|ditta|societa|datore di lavoro|scuola|ospedale
        |assicurazione|bedrijf|werkgever|ziekenhuis|verzekeraar|pracodawca|szkola|szpital|przychodnia|ubezpieczyciel
        |sirket|isveren|okul|hastane|is yeri|isyeri|cong ty|noi lam viec|truong|truong hoc|benh vien|don vi|公司
        |单位|工作单位|学校|医院|雇主|会社名|勤務先|会社|病院|お勤め先|学校名|회사|회사명|직장|학교|병원|근무처|소속
        |компания|организация|работодатель|место работы|школа|больница|поликлиника|вуз|الشركة|جهة العمل|صاحب العمل
        |المدرسة|الجامعة|المستشفى|कंपनी|फर्म|नियोक्ता|विद्यालय|स्कूल|अस्पताल|org|gp practice|surgery|parish""",
    "place": """city|town|village|birthplace|place of birth|birth place|born in|hometown|home town
        |city of birth|suburb|locality|city of residence|stadt|ort|wohnort|geburtsort|gemeinde|ville|commune
        |lieu de naissance|ville de naissance|localite|ciudad|municipio|localidad|lugar de nacimiento|poblacion
        |cidade|localidade|naturalidade|local de nascimento|bairro|citta|comune|luogo di nascita|nato a|nata a
        |residenza|stad|woonplaats|plaats|geboorteplaats|gemeente|miasto|miejscowosc|miejsce urodzenia|sehir|il|ilce
        |dogum yeri|semt|thanh pho|noi sinh|que quan|quan|huyen|城市|籍贯|出生地|市|市区町村|出身地|도시|출생지
        |город|место рождения|населенный пункт|المدينة|مكان الميلاد|शहर|जन्म स्थान|जन्मस्थान|गाँव|municipality
        |city name|geboren in|procedencia""",
    "street": """street|street name|street address|address line|address line 1|address line 2|address1|address2
        |line1|line2|road|strasse|str|strasse nr|strasse hausnummer|rue|voie|calle|rua|logradouro|via|straat|ulica
        |cadde|sokak|duong|街道|路|番地|도로명|улица|الشارع|सड़क|housename""",
    "house": """house number|house no|housenumber|street number|building number|flat number|apartment number
        |apt|flat|unit number|hausnummer|hausnr|numero de rue|numero exterior|numero civico|huisnummer|toevoeging
        |huisnummertoevoeging|nr domu|nr mieszkania|kapi no|so nha|门牌号|дом|квартира""",
    "postcode": """postcode|postal code|post code|zip|zip code|zipcode|plz|postleitzahl|code postal
        |codigo postal|cep|cap|codice postale|kod|kod pocztowy|posta kodu|ma buu dien|ma buu chinh|邮编|邮政编码
        |郵便番号|우편번호|индекс|почтовый индекс|الرمز البريدي|पिन कोड|पिनकोड""",
    "address": """address|home address|postal address|mailing address|shipping address|billing address
        |delivery address|residence|current address|permanent address|ship to|shipto|bill to|deliver to
        |home postal address|flat address|residential address|premises|adresse|anschrift|wohnanschrift|lieferadresse
        |rechnungsadresse|wohnhaft|adresse postale|domicile|adresse de livraison|direccion|domicilio
        |direccion postal|endereco|morada|residencia|indirizzo|residente in|adres|woonadres|adres zamieszkania
        |adres zameldowania|zamieszkaly|ikametgah|ev adresi|dia chi|dia chi nha|cho o hien nay|thuong tru|地址|住址
        |家庭住址|现住址|收货地址|联系地址|住所|現住所|ご住所|주소|배송지|거주지|адрес|адрес проживания
        |место жительства|прописка|العنوان|محل الإقامة|السكن|पता|स्थायी पता|निवास|vive en|lives at|home""",
    "phone": """phone|phone number|telephone|telephone number|tel|tel no|phone no|mobile|mobile number
        |mobile no|mobile phone|cell|cell phone|cellphone|cellular|fax|fax number|contact number|contact no|whatsapp
        |landline|home phone|work phone|msisdn|ph|callback|call back number|telefon|telefonnummer|handy|handynummer
        |mobil|mobilnummer|rufnummer|festnetz|telefax|portable|numero de telephone|telefono|movil|celular
        |numero de telefono|tfno|tlf|telefone|telemovel|fone|cellulare|recapito|telefoonnummer|telefoon|mobiel|gsm
        |komorka|nr telefonu|numer telefonu|tel kom|cep telefonu|cep|telefon numarasi|veli tel|dien thoai
        |so dien thoai|sdt|di dong|dt|电话|手机|手机号|手机号码|联系电话|联系方式|电话号码|電話|電話番号|携帯
        |携帯電話|連絡先|ご連絡先|전화|전화번호|휴대폰|핸드폰|연락처|휴대전화|телефон|тел|номер телефона|мобильный
        |моб|الهاتف|رقم الهاتف|الجوال|المحمول|رقم الجوال|هاتف|फोन|फ़ोन|मोबाइल|फोन नंबर|मोबाइल नंबर|संपर्क|दूरभाष""",
    "extension": "ext|extension|ext no|durchwahl|poste|interno|toestel|wewn|вн|доб",
    "email": """email|e mail|email address|mail|mail address|e mail address|emailaddress|from email
        |reply to email|mailadresse|mail adresse|email adresse|courriel|adresse e mail|adresse mail
        |adresse electronique|correo|correo electronico|endereco de email|posta elettronica|indirizzo email|pec
        |e mailadres|mailadres|adres e mail|adres email|eposta|e posta|e posta adresi|thu dien tu|hop thu|邮箱
        |电子邮箱|电子邮件|邮件|メール|メールアドレス|이메일|메일|전자우편|почта|эл почта|электронная почта
        |البريد الإلكتروني|البريد|ईमेल|ई मेल""",
    "handle": """username|user name|user id|userid|login|login name|handle|screen name|nick|account name|logon
        |user|uid|samaccountname|twitter|instagram|telegram|discord|skype|github username|benutzername|benutzer
        |anmeldename|nutzername|identifiant|nom d'utilisateur|utilisateur|usuario|nombre de usuario|utilizador
        |nome de usuario|nome utente|utente|gebruikersnaam|gebruiker|nazwa uzytkownika|uzytkownik|kullanici adi
        |kullanici|ten dang nhap|tai khoan|用户名|登录名|账号|ユーザー名|ユーザー|会員id|아이디|사용자명|계정|логин
        |имя пользователя|пользователь|اسم المستخدم|उपयोगकर्ता नाम|ansible user|db user|auteur handle
        |مستخدم|المستخدم|auth user|remote user|remote username|cs username|sc username|client username|sasl username
        |authuser|authenticated user|kullaniciadi|nguoi dung""",
    "secret": """password|passwd|pass|passphrase|passcode|pwd|psk|secret|token|api key|apikey|access key
        |secret key|auth token|access token|refresh token|private key|client secret|user password|db pass|pin
        |pin code|door code|gate code|alarm code|security answer|recovery code|csrf|wifi password|become pass
        |app password|kennwort|passwort|zugangscode|turcode|geheimzahl|mot de passe|mdp|code d'acces|code porte
        |code du portail|contrasena|clave|codigo de acceso|senha|palavra passe|codigo da porta|codice di accesso
        |wachtwoord|toegangscode|haslo|kod do drzwi|sifre|parola|mat khau|密码|口令|初始密码|パスワード|暗証番号
        |비밀번호|비번|암호|пароль|كلمة المرور|كلمة السر|पासवर्ड|kod bramy|wachtwoord wifi""",
    "birth": """dob|date of birth|birth date|birthdate|birthday|born|d o b|birth day|bday|born on|geburtsdatum
        |geburtstag|geb|geboren|geb datum|geboren am|date de naissance|date naissance|naissance|ne le|nee le
        |fecha de nacimiento|fecha nacimiento|f nac|nac|nacimiento|nacido|data de nascimento|data nascimento
        |nascimento|dn|nascido em|data di nascita|nato il|nata il|nascita|geboortedatum|data urodzenia|urodzony
        |dogum tarihi|d tarihi|ngay sinh|sinh ngay|nam sinh|出生日期|生日|出生年月|生年月日|誕生日|생년월일|생일
        |дата рождения|дата рожд|д р|تاريخ الميلاد|تاريخ الولادة|जन्म तिथि|जन्मतिथि|जन्म दिनांक
        |تاريخ الازدياد|تولد|ddn|mavlid""",
    "age": """age|alter|edad|idade|eta|leeftijd|wiek|yas|tuoi|年龄|年齢|나이|연령|возраст|العمر|السن|आयु|उम्र
        |age years
        |umr""",
    "date": """appointment|appointment date|next appointment|admission date|date of admission|discharge date
        |hire date|start of employment|move in|move in date|visit date|date of visit|surgery date|termin
        |nachster termin|aufnahmedatum|einstellungsdatum|einzug|rendez vous|date rdv|rdv|date d'embauche|cita
        |proxima cita|fecha alta|fecha de alta|fecha ingreso|consulta|retorno|data de admissao|appuntamento
        |data ricovero|data assunzione|afspraak|opnamedatum|data szczepienia|data wizyty|termin wizyty|randevu
        |randevu tarihi|ngay kham|ngay hen|预约|入院日期|就诊日期|予約|予約日|入院日|다음예약|예약일|입원일
        |дата приема|дата визита|موعد|تاريخ الزيارة|vaccination date|date of loss|accident date|admitted|discharged
        |admission|discharge|hired|hire|joined|follow up|next visit|entlassung|aufnahme|eintritt|nachster besuch
        |entree|sortie prevue
        |fecha de ingreso|proximo control|ricovero|dimissione|opname|ontslag|przyjecie|wypis|yatis|yatis tarihi
        |taburcu
        |ngay nhap vien|ngay xuat vien|入院|退院|退院日|次回|입원|퇴원일|дата поступления|дата выписки|تاريخ الدخول
        |تاريخ الخروج|تاريخ التعيين|موعد المراجعة|भर्ती|छुट्टी|नियुक्ति""",
    "national": """ssn|social security number|social security no|social security|national id|national insurance
        |national insurance number|ni number|ni no|nino|nhs number|nhs no|nhs|passport|passport number|passport no
        |id card|identity number|id number|tax id|tin|tfn|taxpayer id|sin|itin|ein|vat id|aadhaar|aadhaar number|pan
        |pan number|pps|ppsn|personalausweis|ausweisnummer|passnummer|reisepass|steuer id|idnr|steuernummer|st nr
        |sozialversicherungsnummer|svnr|nir|numero de securite sociale|n secu|securite sociale|siret|siren|passeport
        |carte d'identite|dni|nie|nif|cif|nuss|pasaporte|cpf|cnpj|rg|cartao de cidadao|nis|codice fiscale|c f|cf
        |p iva|partita iva|carta d'identita|passaporto|bsn|burgerservicenummer|paspoort|paspoortnummer|pesel|nip
        |regon|dowod osobisty|nr dowodu|tckn|tc kimlik no|t c kimlik no|tc no|kimlik no|vergi no|pasaport no|cccd
        |cmnd|so cccd|so cmnd|can cuoc|ma so thue|身份证|身份证号|身份证号码|护照号|个人番号|個人番号|マイナンバー
        |パスポート番号|주민번호|주민등록번호|여권번호|инн|снилс|паспорт|серия и номер паспорта|номер паспорта
        |الرقم القومي|رقم الهوية|رقم الجواز|البطاقة الوطنية|आधार|आधार संख्या|आधार नंबर|पैन|पासपोर्ट|जीएसटीआईएन|curp
        |rfc|cuil|cuit""",
    "medical": """mrn|medical record|medical record number|patient id|patient number|patient no|chart number
        |hospital number|member id|health card|patientennummer|fallnummer|versichertennummer
        |krankenversichertennummer|numero de dossier medical|nhc|historia clinica|prontuario|cartella clinica
        |patientnummer|numer pacjenta|hasta no|ma benh nhan|病历号|住院号|診察券番号|患者番号|환자번호
        |номер карты пациента|рقم الملف""",
    "licence": """driver license|driving licence|driver licence|drivers license|license number|licence number
        |dl number|licence no|fuhrerschein|fuhrerscheinnummer|permis de conduire|licencia de conducir|cnh
        |patente di guida|rijbewijs|prawo jazdy|ehliyet no|bang lai xe|驾照号|驾驶证|免許番号|운전면허
        |водительское удостоверение|col|crm|agb|npi|dea|gmc number|bar number""",
    "plate": """plate|license plate|licence plate|number plate|registration|vehicle registration|reg no
        |registration number|reg plate|kennzeichen|immatriculation|plaque|plaque d'immatriculation|matricula|placa
        |targa|kenteken|nr rejestracyjny|numer rejestracyjny|plaka|servis plaka|bien so|bien so xe|车牌|车牌号
        |お車の番号|車両番号|차량번호|번호판|госномер|номер авто|رقم السيارة|رقم اللوحة|वाहन|वाहन संख्या
        |गाड़ी नंबर""",
    "vin": """vin|vehicle identification number|chassis|chassis number|fahrgestellnummer|fin|bastidor
        |numero de chasis|chassi|telaio""",
    "iban": "iban|rib|iban number",
    "bic": """bic|swift|bic code|swift code|bic swift|swift bic|bank identifier code|bank code swift|swift address
        |codigo swift|codigo bic|code swift|code bic|codice swift|codice bic|kod swift|kod bic|swift kodu|swift nummer
        |ma swift|swift代码|bicコード|бик swift|код swift""",
    "account": """account number|account no|acct|acct no|bank account|routing number|sort code|kontonummer
        |konto|bankverbindung|blz|numero de compte|compte bancaire|cuenta|numero de cuenta|cuenta bancaria|ccc|clabe
        |conta|numero da conta|conta bancaria|numero di conto|conto corrente|coordinate bancarie|rekeningnummer
        |rekening|numer konta|nr konta|rachunek|hesap no|so tai khoan|stk|银行账号|银行卡号|工资卡|账户|口座番号
        |振込先|계좌|계좌번호|변경 계좌|номер счета|расчетный счет|р с|رقم الحساب|खाता संख्या|खाता नंबर|wallet
        |wallet address
        |खाता|खाते|khata|बैंक खाता|iban no|cuenta vista|konto bankowe|kontonr|口座|счет|счёт|الحساب|الحساب البنكي""",
    "card": """card|card number|card no|credit card|credit card number|debit card|cc number|cc|cc num|card num
        |primary account number|payment card|kreditkarte
        |kartennummer|kreditkartennummer|carte bancaire|numero de carte|tarjeta|numero de tarjeta|cartao
        |numero do cartao|carta di credito|numero carta|kaartnummer|creditcard|numer karty|nr karty|kart no
        |kart numarasi|so the|信用卡|卡号|クレジットカード|カード番号|카드번호|결제 카드|номер карты|карта
        |رقم البطاقة|कार्ड नंबर|कार्ड|pan number card""",
    "cvc": """cvc|cvv|cvc2|cvv2|cvn2|ccv|cvn|cav|csc|security code|card code|card security code|card verification
        |card verification code|card verification value|card verification number|verification value|cvv code|cvc code
        |kartenprufnummer|kartenprufziffer|prufnummer|sicherheitscode|cryptogramme|cryptogramme visuel|code de securite
        |codigo de seguridad|codigo de seguranca|codice di sicurezza|codice sicurezza|beveiligingscode|veiligheidscode
        |kod bezpieczenstwa|guvenlik kodu|ma bao mat|код безопасности|安全码|安全碼|セキュリティコード|보안코드
        |보안 코드|رمز الأمان|सीवीवी""",
    "expiry": """exp|expiry|expiry date|expiration|expiration date|exp date|valid thru|card expiry|gultig bis
        |ablaufdatum|date d'expiration|caducidad|fecha de caducidad|validade|scadenza|vervaldatum|data waznosci
        |son kullanma|skt|有效期|有効期限|유효기간|срок действия""",
    "ip": """ip|ip address|ipaddress|client ip|remote addr|ip adresse|adresse ip|direccion ip|アイピー|아이피
        |ip地址|ansible host""",
    "mac": "mac|mac address|mac adresse|hwaddr|bssid",
    "latitude": "lat|latitude|breitengrad|latitud|纬度|緯度|위도|широта",
    "longitude": "lon|lng|long|longitude|langengrad|longitud|经度|経度|경도|долгота",
    "coordinates": """gps|gps position|coordinates|gps coordinates|geo|home location|koordinaten
        |coordonnees gps|coordenadas|coordinate""",
    "booking": """pnr|booking reference|booking code|booking ref|record locator|reservation code
        |confirmation number|buchungscode|buchungsnummer|localizador|codigo de reserva|boekingsnummer
        |numer rezerwacji|rezervasyon no|ma dat cho|予約番号|예약번호""",
    "ssid": "ssid|network name|wlan name|wifi name",
    "people": """present|attendees|apologies|participants|witnesses|in attendance|absent|teilnehmer|anwesend
        |presents|asistentes|presentes|presenti|aanwezig|obecni|katilanlar|出席者|참석자|присутствовали|الحضور
        |उपस्थित|kids|children names|guests|members""",
    "party": "to|from|caller id|dest|msisdn to",
    "id": """serial|serial number|serial no|s n|imei|imsi|device id|asset tag|seriennummer|numero de serie
        |numero di serie|serienummer|numer seryjny|seri no|序列号|シリアル番号|order number|order no|order id
        |order ref|case number|case no|case id|ticket number|ticket no|ticket id|policy number|policy no|policy id
        |claim number|claim no|claim id|customer number|customer no|customer id|invoice number|invoice no
        |contract number|contract no|employee number|employee no|employee id|staff no|staff id|badge number|badge no
        |student id|student number|matriculation number|membership number|reference number|tracking number
        |tracking no|tracking|applicant id|reservation number|tenancy ref|loyalty number|frequent flyer|kundennummer
        |kundennr|kd nr|bestellnummer|auftragsnummer|rechnungsnummer|versicherungsnummer|policennummer|aktenzeichen
        |az|mitarbeiternummer|personalnummer|matrikelnummer|vertragsnummer|vorgangsnummer|ticketnummer|schadennummer
        |sendungsnummer|mitgliedsnummer|numero de client|numero client|n client|numero de commande|numero de dossier
        |numero de contrat|numero de police|numero de suivi|matricule|id client|numero de cliente|numero de pedido
        |numero de poliza|numero de expediente|expediente|id cliente|numero do pedido|rastreio|protocolo
        |numero cliente|codice cliente|numero ordine|numero pratica|polizza|klantnummer|ordernummer|bestelnummer
        |polisnummer|zaaknummer|dossiernummer|personeelsnummer|numer klienta|nr klienta|numer zamowienia
        |nr zamowienia|numer polisy|numer szkody|numer sprawy|nr umowy|musteri no|siparis no|police no|basvuru no
        |basvuruno|ogrenci no|sicil no|takip no|gonderi takip|ma khach hang|ma kh|ma don hang|ma nv|ma nhan vien
        |ma so sinh vien|客户编号|订单号|工号|学号|保单号|工单编号|快递单号|合同编号|お客様番号|注文番号|ご注文番号
        |社員番号|会員番号|問い合わせ番号|受付番号|주문번호|사번|고객번호|학번|접수번호|운송장|номер заказа
        |табельный номер|таб номер|номер договора|номер полиса|номер клиента|رقم الطلب|رقم العميل|الرقم الوظيفي
        |ग्राहक संख्या|आवेदन क्रमांक|खसरा|समग्र आईडी|शिकायत क्र|order|case|ticket|claim|policy|dossier|sinistre
        |pedido|zaak|our ref|your ref|ref|reference no|ref no|file ref|case ref|sn
        |伝票番号|整理番号|顧客番号|管理番号|등록번호|티켓|티켓번호|차트번호|رقم الملف|رقم الدعوى|رقم البلاغ
        |शिकायत संख्या|शिकायत|टिकट|shikayat
        |mieternummer|patientnr|studentnr|studentnummer|ticketnr|meter no|meter number""",
}
"""Kinds of values, with the keys that announce them; folded as `folded` does when the table is built."""

_NOTHING = """user agent|useragent|file name|host name|domain name|table name|user type|order by|sort order
        |access token url|token type|id token hint|contact form|card type|card title|phone type|email type
        |email template|password policy|user interface|home page|home screen|home team|order status|client side
        |customer service|customer support|customer care|support agent|travel agent|real estate agent|parent company
        |parent class|parent directory|child process|host address|memory address|base address|start address
        |ip version|business card|credit card type|report card|id type|ad type"""
"""Keys that hold the words of others but mean nothing private."""

_PERSONS = """patient|customer|client|employee|tenant|manager|doctor|physician|teacher|student|owner|assignee|reporter
        |contact|contact person|emergency contact|next of kin|person|applicant|candidate|caller|driver|passenger
        |guest|borrower|beneficiary|nominee|insured|policyholder|policy holder|holder|landlord|landlady|lessee
        |lessor|buyer|seller|purchaser|vendor contact|recipient|sender|addressee|consignee|attendee|organizer
        |organiser|participant|member|mother|father|parent|parents|guardian|spouse|husband|wife|partner|child
        |children|kids|son|daughter|sister|brother|grandmother|grandfather|witness|victim|defendant|plaintiff
        |claimant|complainant|suspect|accused|petitioner|respondent|contractor|subcontractor|author of record
        |supervisor|line manager|team lead|lead|director|secretary|accountant|nurse|gp|surgeon|consultant|therapist
        |attorney|lawyer|solicitor|counsel|judge|officer|reporting officer|agent|agent name|representative|sales rep
        |technician|requester|requestor|requested by|submitted by|reported by|opened by|created by|updated by
        |modified by|approved by|reviewed by|prepared by|signed by|assigned to|author name|interviewer|interviewee
        |supervised by|user full name|resident|occupant|donor|injured|injured person|deceased|bride|groom|pupil
        |referee|signed off by|co authored by|acked by|tested by|referred by|booked by|paid by|sold to
        |attn|attention|delivered to|payee|payer|billing contact|patientin|kunde|kundin|mitarbeiter|mitarbeiterin
        |mieter|mieterin|vermieter|vermieterin|arzt|arztin|hausarzt|behandelnder arzt|lehrer|lehrerin|schuler
        |schulerin|inhaber|kontoinhaber|ansprechpartner|ansprechpartnerin|kontakt|notfallkontakt|antragsteller
        |antragstellerin|versicherungsnehmer|versicherter|versicherte|halter|fahrer|bewerber|bewerberin|bearbeiter
        |sachbearbeiter|sachbearbeiterin|mutter|vater|kind|ehepartner|ehefrau|ehemann|sohn|tochter|zeuge|absender
        |empfanger|auftraggeber|kaufer|verkaufer|melder|vorgesetzter|auftragnehmer|auftragnehmerin|gemeldet von
        |betreuer|patiente|cliente|salarie|salariee|locataire|proprietaire|bailleur|medecin|medecin traitant|docteur
        |professeur|eleve|etudiant|assure|assuree|beneficiaire|titulaire|demandeur|contact urgence|mere|pere|enfant
        |conjoint|epouse|epoux|fils|fille|temoin|expediteur|destinataire|vendeur|acheteur|responsable|gestionnaire
        |tiers|conducteur|paciente|pac|pcte|empleado|empleada|inquilino|inquilina|arrendatario|arrendador
        |propietario|propietaria|medico|profesor|profesora|alumno|alumna|estudiante|titular|solicitante|asegurado
        |beneficiario|contacto|contacto de emergencia|madre|padre|hijo|hija|conyuge|esposa|esposo|testigo|outorgante
        |remitente|destinatario|vendedor|vendedora|comprador|compradora|encargado|tutor|tutora|conductor|doente
        |utente nome|funcionario|funcionaria|senhorio|proprietario|professor|professora|aluno|aluna|requerente
        |segurado|contato|mae|pai|filho|filha|conjuge|testemunha|remetente|atendente|motorista|colaborador|paziente
        |dipendente|impiegato|affittuario|locatario|locatore|dottore|insegnante|studente|studentessa|richiedente
        |assicurato|referente|mittente|figlio|figlia|coniuge|moglie|marito|testimone|venditore|acquirente|genitore
        |intestatario|klant|medewerker|werknemer|huurder|verhuurder|eigenaar|huisarts|arts|behandelaar|leraar
        |leerling|aanvrager|verzekerde|contactpersoon|moeder|vader|zoon|dochter|getuige|afzender|ontvanger|koper
        |verkoper|kinderen|pacjent|pacjentka|klient|klientka|pracownik|najemca|wynajmujacy|wlasciciel|lekarz
        |nauczyciel|uczen|wnioskodawca|ubezpieczony|poszkodowany|poszkodowana|sprawca|osoba kontaktowa|matka|ojciec
        |syn|corka|maz|zona|swiadek|nadawca|odbiorca|kupujacy|sprzedajacy|opiekun|kierowca|zglaszajacy|hasta|musteri
        |calisan|kiraci|ev sahibi|sahibi|doktor|ogretmen|ogrenci|veli|basvuran|sigortali|anne|baba|tanik|gonderen
        |alici|satici|surucu|yetkili|benh nhan|khach hang|nhan vien|nguoi thue|chu nha|chu so huu|bac si|giao vien
        |hoc sinh|sinh vien|nguoi lien he|nguoi nhan|nguoi gui|phu huynh|nguoi giam ho|患者|客户|员工|租客|房东|医生
        |老师|学生|联系人|紧急联系人|申请人|借款人|出借人|见证人|被保险人|投保人|收件人|寄件人|收货人|母亲|父亲|配偶
        |家长|监护人|负责人|经办人|甲方|乙方|顧客|お客様|お客様名|社員|担当|担当者|担当者名|医師|主治医|先生|生徒
        |保護者|緊急連絡先|申込者|契約者|被保険者|送り主|お届け先|母|父|配偶者|上長|名義|名義人|代表者|환자|환자명
        |고객|고객명|직원|임차인|임대인|담당의|담당|담당자|의사|교사|선생님|학생|보호자|신청인|피보험자|계약자
        |수취인|발신인|받는 사람|배우자|어머니|아버지|пациент|пациентка|пац|клиент|сотрудник|арендатор|арендодатель
        |владелец|врач|учитель|ученик|студент|заявитель|застрахованный|контактное лицо|мать|отец|муж|жена|сын|дочь
        |свидетель|отправитель|получатель|покупатель|продавец|ответственный|исполнитель|водитель|руководитель|мама
        |المريض|العميل|الموظف|المستأجر|المالك|الطبيب|المعلم|الطالب|ولي الأمر|جهة الاتصال|مقدم الطلب|المؤمن عليه|الأم
        |الأب|الزوج|الزوجة|المرسل|المستلم|البائع|المشتري|मरीज|मरीज़|रोगी|ग्राहक|उपभोक्ता|कर्मचारी|किरायेदार
        |मकान मालिक|मालिक|डॉक्टर|शिक्षक|छात्र|छात्रा|अभिभावक|आवेदक|सह आवेदक|पिता|माता|पति|पत्नी|पुत्र|पुत्री|गवाह
        |बीमाधारक|प्रेषक|हस्ताक्षर|संरक्षक"""
"""Roles that only people have; with `name`, `id`, `number` behind them, or alone."""

_GROUPS = """user|users|people|staff|team member|account|author|artist|contributor|speaker|profile|individual|shipping
        |billing|delivery|invitee|kontoinhaber|nutzer|benutzer|personne|persona|pessoa|persoon|osoba|kisi
        |nguoi|人|사람|человек|user profile|card|civilite|self|me"""
"""Words that make a person's name of a `name` behind them, but whose value alone need not be one."""

_ORDERS = """order|case|ticket|claim|policy|invoice|contract|booking|reservation|file|reference|ref|account|member
        |membership|badge|staff|tracking|shipment|parcel|loan|application|tenancy|serial|device|asset|auftrag
        |bestellung|rechnung|vertrag|dossier|commande|contrat|facture|police|suivi|pedido|poliza|expediente|factura
        |contrato|ordine|pratica|polizza|fattura|contratto|klant|zaak|polis|zamowienia|umowy|sprawy|polisy|szkody
        |siparis|fatura|dosya|basvuru|don hang|hop dong|ho so|заказа|договора|полиса|дела|карты|incident|pcn
        |vehicle"""

_NAME_HEADS = "name|nom|nombre|nome|naam|ten|adi|имя|اسم|नाम|nazwisko|imie|namen|names"
_NUMBER_HEADS = """number|no|nr|num|id|ref|reference|code|nummer|numero|n|numer|so|ma|номер|رقم|संख्या|नंबर|क्रमांक|क्र|#"""
_JOINTS = (
    "of|the|des|der|du|de|del|do|da|della|dello|"
    "van|von|di|la|le|el|e|y|et|und|and|and|l|d|का|की|के|на|в"
)
_NO_ROLES = (
    "id|ids|type|status|count|class|page|list|table|model|"
    "service|role|group|team|view|form|schema|field|key"
)
_ENDS = ("name", "namen", "nummer", "number", "adresse", "anschrift", "naam", "phone")
_MARKS = regex.compile("[\u0300-\u036f\u064b-\u0652\u0640]")
_PLAIN = str.maketrans(
    {"ß": "ss", "ø": "o", "đ": "d", "ł": "l", "ı": "i", "æ": "ae", "œ": "oe", "ё": "е", "й": "и"}
)
_ELIDED = regex.compile(r"\b[ldn]'(?=\p{L})")
_HUMP = regex.compile(r"(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})")
_WORD = regex.compile(r"[\p{L}\p{M}'’]+\d?|#")
_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー々\p{Hangul}]{2,}")


def folded(key: str) -> str:
    """A key's words in small letters without accents, joined by spaces: `dateOfBirth` and `Date-of-birth` are alike."""
    humps = _HUMP.sub(" ", unicodedata.normalize("NFKC", key))
    plain = _MARKS.sub("", unicodedata.normalize("NFD", humps.lower())).translate(_PLAIN)
    return " ".join(
        _WORD.findall(_ELIDED.sub("", unicodedata.normalize("NFC", plain).replace("’", "'")))
    )


def _each(listed: str) -> Iterator[str]:
    return (folded(each) for each in listed.replace("\n", " ").split("|"))


@cache
def _words(name: str) -> frozenset[str]:
    lists = {
        "persons": _PERSONS,
        "groups": _GROUPS,
        "orders": _ORDERS,
        "names": _NAME_HEADS,
        "numbers": _NUMBER_HEADS,
        "joints": _JOINTS,
        "no roles": _NO_ROLES,
    }
    return frozenset(_each(lists[name])) - {""}


@cache
def _table() -> dict[str, str]:
    table = dict.fromkeys(_words("persons"), "role")
    for kind, listed in _TABLE.items():
        if kind != "role":
            table |= dict.fromkeys(_each(listed), kind)
    table |= dict.fromkeys(_each(_NOTHING), "")
    table.pop("", None)
    return table


@cache
def _tails() -> tuple[str, ...]:
    """Keys in scripts without spaces, longest first: any characters may stand before them."""
    return tuple(sorted(filter(_UNSPACED.fullmatch, _table()), key=len, reverse=True))


@cache
def _glued() -> dict[str, str]:
    """Keys of several words, written as one."""
    return {
        word: kind
        for key, kind in _table().items()
        if kind and len(word := key.replace(" ", "")) >= 8
    }


_HEXADECIMAL = regex.compile(r"0[xX][\da-fA-F]+")


@lru_cache(maxsize=4096)
def kind_of(key: str) -> str | None:
    """The kind of value that a key announces; None if it says nothing.

    The last words count, whatever stands before them ("shipping city"); a `name`, `number` or `id` needs a person or an
    order beside it ("patient name", "nom du client"), or stands alone.
    """
    if len(key) > LONGEST or _HEXADECIMAL.fullmatch(key):
        return None
    words = folded(key).split()
    if not words or len(words) > 8:
        return None
    table = _table()
    if (found := table.get(" ".join(words))) is not None:
        return found or None
    if "/" in key:
        return next((kind for part in key.split("/") if (kind := kind_of(part))), None)
    joined = "".join(words)
    return _single(joined) if len(words) == 1 or _UNSPACED.fullmatch(joined) else _of_several(words)


def is_person(key: str) -> bool:
    """Whether a key that holds other keys stands for a person: `customer: {name: ...}`, `patients: [...]`."""
    words = folded(key).split()
    if not words or words[-1] in _words("no roles"):
        return False
    last = words[-1]
    forms = {" ".join(words), last, last.removesuffix("s"), last.removesuffix("es")}
    return bool(forms & (_words("persons") | _words("groups")))


def is_number(key: str) -> bool:
    """Whether a key asks for the number of what is around it: `order: {number: ...}`, `customer: {id: ...}`."""
    return folded(key) in _words("numbers")


_PAIR_KEYS = """name|key|id|field|field name|label|variable|variable name|var|parameter|parameter name|parameter key
    |param|property|property name|setting|option|attribute|header|key name|env name|env|k|n|schlussel|nom|nombre|nome
    |naam|cle|clave|chave|chiave|parametre|parametro|variavel|zmienna|nazwa|bezeichnung|eigenschaft|variabele|变量|变量名|键|名称|변수
    |ключ|параметр|переменная|имя"""
_PAIR_VALUES = """value|val|v|parameter value|string value|value string|secret value|secret string
    |secure value|property value|plain text
    |wert|valeur|valor|valore|waarde|wartosc|deger|gia tri|值|値|값|значение|القيمة|मान"""
_PAIR_DEFAULTS = "default|default value|initial value|example value"


@cache
def _parts() -> dict[str, str]:
    lists = {"key": _PAIR_KEYS, "value": _PAIR_VALUES, "default": _PAIR_DEFAULTS}
    return {word: part for part, listed in lists.items() for word in _each(listed)}


def part_of_pair(key: str) -> str | None:
    """Which part of a pair a key announces: its key, its value, or a value by default; None: no part.

    So do `name` and `value` of `{"name": "DB_PASSWORD", "value": ...}`.
    """
    return _parts().get(folded(key)) if len(key) <= LONGEST else None


def is_secret(key: str) -> bool:
    """Whether a key is that of a password or token, as `patterns.secrets` knows them."""
    return len(key) <= LONGEST and secret_check(folded(key)) is not None


def _single(word: str) -> str | None:
    if kind := _glued().get(word):
        return kind
    if len(word) > 1 and _UNSPACED.fullmatch(word):
        return next((_table()[tail] for tail in _tails() if word.endswith(tail)), None)
    for end in _ENDS:
        if word.endswith(end) and len(word) > len(end) + 2:
            before = word.removesuffix(end)
            for form in (
                before,
                before.removesuffix("s"),
                before.removesuffix("n"),
                before.removesuffix("en"),
            ):
                if form in _words("persons"):
                    return "full" if end in ("name", "namen", "naam") else _kind_of_end(end)
            return None
    singular = word.removesuffix("s")
    found = _table().get(singular) if singular != word else None
    return found if found in ("role", "email", "phone", "given") else None


def _kind_of_end(end: str) -> str:
    """What the last part of a compound says that it holds: Kundenadresse, Kundennummer."""
    return {"adresse": "address", "anschrift": "address", "phone": "phone"}.get(end, "id")


def _of_several(words: list[str]) -> str | None:
    table, last = _table(), words[-1]
    heads, numbers, joints = _words("names"), _words("numbers"), _words("joints")
    rest = [word for word in words if word not in joints]
    who = _words("persons") | _words("groups")
    if len(rest) > 1:
        before, after = " ".join(rest[:-1]), " ".join(rest[1:])
        if rest[0] in heads and (after in who or rest[-1] in who):
            return "full"
        if rest[-1] in heads and (before in who or rest[-2] in who):
            return "full"
        orders = _words("orders") | _words("persons")
        if rest[0] in numbers and (after in orders or rest[-1] in orders):
            return "id"
        if rest[-1] in numbers and (before in orders or rest[-2] in orders):
            return "id"
    first = table.get(words[0])
    if first in ("given", "family") and words[1] in joints:
        return first
    if (
        first == "secret"
        and len(words) <= 6
        and words[0] in ("password", "passwort", "contrasena", "senha", "haslo", "пароль")
    ):
        return first
    for start in range(1, len(words)):
        found = table.get(" ".join(words[start:]))
        if not found:
            continue
        if start < len(words) - 1 or found not in _ALONE:
            return found
        return found if found == "role" and last in _words("persons") and len(words) <= 3 else None
    if len(last) > 1 and _UNSPACED.fullmatch(last):
        return _single(last)
    return None


_ALONE = (
    "name",
    "given",
    "family",
    "role",
    "author",
    "org",
    "id",
    "age",
    "account",
    "card",
    "handle",
    "street",
    "home",
    "house",
    "postcode",
)
"""Kinds whose single words mean something else behind other words: `file name`, `grid age`, `dashboard card`."""
