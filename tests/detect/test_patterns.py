"""Structured identifiers: found whole where they are, and nothing that only looks like them."""

import socket
import sys
import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from textveil.detect.patterns import (
    RULES,
    Patterns,
    RuleMatch,
    _resolve_overlaps,
    checksums,
    convert_to_plain,
)
from textveil.detect.patterns.rules import RuleIndex
from textveil.detect.patterns.times import extend_date
from textveil.detect.spans import IDENTIFIERS, Detector
from textveil.errors import ConfigError

PATTERNS = Patterns()

PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq98WmPzXq1\nq0V5t9Qd8Yy==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"

# In every text, what is between the brackets ⟦ ⟧ is a span of the type. Numbers with check digits are the well-known
# examples of their issuers or encyclopedias.
FOUND = {
    "EMAIL": (
        "write to ⟦jane.doe+tag@mail.example.co.uk⟧.",
        "@@ -1 +1 @@\n-⟦jane@example.org⟧\n+nobody\n",
        "@@ -1 +1 @@\n-nobody\n+⟦ann-b+c@example.org⟧\n",
        "see ...⟦jane.doe@example.org⟧",
        "<⟦o'brien@example.ie⟧>, please",
        "⟦jürgen@müller.de⟧ is mine",
        "⟦ＪＡＮＥ＠ＥＸＡＭＰＬＥ.com⟧",
        "⟦jane [at] example [dot] com⟧ in words",
        "mailto:⟦a@b.org⟧?subject=x",
        "(1, '⟦aymeric.petit@zoreil.example⟧')",
        "(2, N'⟦tai_bk@thuviet.example⟧')",
        "email=⟦anna@example.org⟧&x=1",
        "(⟦ingrid.b%40example.net⟧)",
        "⟦gwendal[point]prigent[arobase]fastmel[point]example⟧ | 29",
        "⟦clarisse (ponto) taveira (arroba) sapomail (ponto) example⟧ | 2",
        "⟦anna(at)example.org⟧",
        "⟦anna at example dot org⟧, please",
        "⟦anna.kern ät beispiel punkt de⟧, bitte",
        "⟦pa.whit at northmoor.example⟧ or later",
        "id ⟦YW5uYS5rb3dhbHNrYUBwb2N6dGEuZXhhbXBsZQ==⟧ there",
        "카탈로그는 ⟦mina.gu@jangdok.example⟧로 주세요",
        "返事は⟦anna@beispiel.example⟧宛に",
        "⟦用户@例子.公司⟧",
        "⟦anna@mail.intern.例子.com⟧ 见",
        "⟦почта@пример.рф⟧ и",
    ),
    "PHONE": (
        "尾号⟦8821⟧的卡",
        "dzwoń: ⟦612 774 903⟧.",
        "blik na ⟦698114207⟧ albo",
        "Cel. ⟦944 218 507⟧",
        "a neta, ⟦(71) 9 8814-2207⟧.",
        "किरायेदार, ⟦8840 217 663⟧।",
        "mobile=⟦138****2217⟧}",
        "лікар ⟦(04432) 3-17-08⟧, сусідка",
        "يتصل بالبلدية على ⟦71 220 618⟧.",
        "جونيه – ⟦09 217 448⟧",
        "直線⟦2714 3308⟧。",
        "ring ⟦+44 20 7946 0958⟧ now",
        "ring ⟦+1 (415) 555-2671⟧.",
        "⟦0033 1 42 68 53 00⟧ is the desk",
        "at ⟦(415) 555-2671⟧ today",
        "at ⟦415-555-2671 ext. 12⟧ today",
        "at ⟦+49 30 901820⟧",
        "Telefon: ⟦030 901820⟧",
        "mobile ⟦06 12 34 56 78⟧",
        "⟦020 7946 0958⟧ in London",
        "call me on ⟦555-1234⟧, not later",
        "call ⟦+1\u2011415\u2011555\u20112671⟧",
        "tel:⟦+1-202-555-0143⟧",
        "call ⟦＋４４ ２０ ７９４６ ０９５８⟧",
        "call ⟦+44 20\u200b 7946 0958⟧",
        "⟦+44 (0)20 7946 0958⟧, please",
        "⟦+44 7700 900418⟧, please",
        "To=⟦+639175550283⟧",
        '"⟦042-35761188⟧"]',
        "ja genau der. ⟦0176 80 112 543⟧, wieso",
        "Büro ⟦0221/4711 0815⟧, dort",
        "Durchwahl ⟦314⟧)",
        "⟦06 12 34 56 78⟧ le soir",
        "fijo ⟦988 21 40 06⟧.",
        "al ⟦349 2217780⟧, grazie",
        "Contacto: Tânia, ⟦938 417 205⟧",
        "0;⟦693-408-172⟧;x",
        "0;⟦42 678 15 90⟧;x",
        "| ⟦(0216) 540 88 13⟧",
        "cep ⟦5446190273⟧",
        "⟦0908 553 172⟧, số em",
        "낮에는 ⟦010-7734-2086⟧으로 문자",
        "小鳥遊様は日中⟦06-6384-7702⟧なら",
        "电话：⟦１３９　５８１７　２２０４⟧",
        "打他助理施蕾，⟦18051247396⟧，微信",
        "座机⟦0532-8651 7749⟧。",
        "⟦8-924-306-51-29⟧, звоните",
        "Макс мне ⟦89024417736⟧",
        "вн. ⟦31-84⟧",
        "رقمي ⟦03 774 159⟧، أو",
        "الموبايل ⟦٠١٢٢ ٤٥٦ ٧٨٩٠⟧",
        "मोबाइल: ⟦९७५३१ ०८४६२⟧",
        "राम ⟦9412907734⟧",
    ),
    "CARD": (
        "Visa card ⟦*4417⟧ was used",
        "my •••• ⟦8120⟧ card",
        "paid with ⟦4111 1111 1111 1111⟧, thanks",
        "⟦4111-1111-1111-1111⟧",
        "⟦378282246310005⟧",
        "⟦3782 822463 10005⟧ amex",
        "⟦5555.5555.5555.4444⟧",
        "⟦4111 11111111 1111⟧ split wrongly",
        "⟦4111\u00a01111\u20131111 1111⟧",
        "⟦４１１１１１１１１１１１１１１１⟧",
        "⟦٤١١١١١١١١١١١١١١١⟧",
    ),
    "IBAN": (
        "to ⟦GB82 WEST 1234 5698 7654 32⟧ and then",
        "⟦DE89370400440532013000⟧",
        "⟦de89 3704 0044 0532 0130 00⟧",
        "⟦FR14-2004-1010-0505-0001-3M02-606⟧.",
        "⟦NO9386011117947⟧",
    ),
    "ACCOUNT": (
        "zwrot na ⟦61 1090 1014 0000 0712 1981 2874⟧.",
        "BIC ⟦DEUTDEFF⟧, please",
        "⟦COBADEFFXXX⟧ as agreed",
        "ABA ⟦021000021⟧",
        "zenith ⟦2044718830⟧, please",
        "匯入⟦016-221-004718265⟧。",
        "행복은행 ⟦2210-4471-0093⟧로",
        "conta ⟦31.882-X⟧, titular",
        "loan a/c ⟦HFL0077315540⟧, due",
        "खाते ⟦30114477219⟧ में",
        "account number: ⟦12345678⟧,",
        "Acc ⟦1058 7723⟧.",
        "routing number ⟦021000021⟧",
        "rachunek ⟦61 1090 1014 0000 0712 1981 2874⟧",
        "Kontonummer: ⟦532013000⟧",
        "계좌: 농협 ⟦352-0918-4471-63⟧ 입니다",
        "普通⟦1180637⟧ 名義",
        "开户行：⟦6217008714681978⟧，",
        "số tài khoản ⟦0071000123456⟧",
        "hesap no: ⟦6298741⟧",
        "р/с ⟦40817810099910004312⟧",
    ),
    "NATIONAL_ID": (
        "personnummer ⟦8112289874⟧",
        "dowodem osobistym nr ⟦CDM891043⟧,",
        "Dowod osobisty strony: ⟦VXR319600⟧",
        "⟦150765 00565⟧ is his",
        "aadhaar ⟦234123412346⟧",
        "⟦2123 45670 1⟧ on it",
        "Medicare ⟦2123456701⟧",
        "⟦9710131901990⟧ there",
        "⟦8001015009087⟧ there",
        "CPR ⟦150765-0056⟧",
        "⟦6183047F⟧ is hers",
        "⟦123-456-32-18⟧ on the bill",
        "NIP ⟦1234563218⟧",
        "HKID ⟦A1234563⟧",
        "my number is ⟦4651 0465 4404⟧",
        "INN ⟦500100732259⟧",
        "СНИЛС ⟦11223344595⟧",
        "⟦784-1980-1234567-8⟧ there",
        "iqama ⟦1088442296⟧",
        "⟦29/31800723/70⟧ on it",
        "NUSS ⟦293180072370⟧",
        "⟦370202198509237211⟧是他的身份证",
        "CC n.º ⟦13774283 5 ZX8⟧",
        "⟦900101-1234568⟧ on it",
        "⟦P<UTOSPECIMEN<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<⟧",
        "SSN ⟦078-05-1120⟧",
        "his number: ⟦219-09-9998⟧",
        "social security number is ⟦457555462⟧",
        "ITIN ⟦912-70-1234⟧",
        "NHS ⟦943 476 5919⟧",
        "NHS number ⟦9434765919⟧",
        "⟦AB 12 34 56 C⟧ for taxes",
        "⟦12345678Z⟧",
        "⟦X1234567L⟧",
        "⟦RSSMRA85T10A562S⟧",
        "⟦2 69 05 49 588 157 80⟧",
        "⟦86 095 742 719⟧",
        "⟦44051401359⟧",
        "BSN ⟦111222333⟧",
        "⟦811228-9874⟧",
        "⟦131052-308T⟧",
        "⟦756.9217.0769.85⟧",
        "⟦85.07.30-033.28⟧",
        "⟦2341 2341 2346⟧",
        "⟦ABCPE1234F⟧",
        "⟦S1234567D⟧",
        "TFN: ⟦123 456 782⟧",
        "⟦51 824 753 556⟧",
        "Medicare ⟦2123 45670 1⟧",
        "⟦529.982.247-25⟧",
        "⟦11.222.333/0001-81⟧",
        "⟦11010519491231002X⟧",
        "SIN ⟦046 454 286⟧",
        "my passport is ⟦C01X00T47⟧.",
        "Reisepass ⟦C01234567⟧",
        "passport number: ⟦533401372⟧, issued",
        "carte d'identité ⟦880692310285⟧",
        "RVNR ⟦15 070649 C 103⟧",
        "KVNR ⟦A123456780⟧",
        "Personalausweis ⟦L01X00T471⟧",
        "St.-Nr. ⟦249/281/40736⟧",
        "NIF ⟦123456789⟧",
        "cartão de cidadão ⟦62010270 5 ZX4⟧",
        "PPS ⟦6183047F⟧",
        "NIP ⟦123-456-32-18⟧",
        "REGON ⟦123456785⟧",
        "dowód ⟦CFR865131⟧",
        "⟦10000000146⟧",
        "CCCD ⟦079203012345⟧",
        "⟦A123456(3)⟧",
        "⟦A123456789⟧",
        "주민등록번호 ⟦900101-1234567⟧입니다",
        "マイナンバー：⟦4651 0465 4404⟧です",
        "ИНН ⟦500100732259⟧",
        "⟦112-233-445 95⟧",
        "паспорт ⟦4509 123456⟧",
        "الرقم القومي: ⟦٢٩١٠٣٠٦٠١١٣٠٨٧⟧",
        "⟦12.345.678-5⟧",
        "⟦20-05536168-2⟧",
        "NUSS ⟦29/31800723/70⟧",
        "身份证⟦370202198509237216⟧，",
        "आधार संख्या: ⟦4296 1567 3865⟧",
        "RG ⟦30.214.778-0⟧",
        "EIN ⟦12-3456789⟧",
    ),
    "IP": (
        "from ⟦192.168.0.1⟧.",
        "⟦10.0.0.0/8⟧ is private",
        "http at ⟦8.8.8.8⟧:53",
        "⟦2001:db8::8a2e:370:7334⟧",
        "on ⟦fe80::1⟧,",
        "⟦::ffff:192.0.2.128⟧",
        "TO 'shop_web'@'⟦10.12.%⟧' IDENTIFIED",
    ),
    "HOST": (
        "Mär 12 22:41:17 ⟦fs04-nord⟧ sshd[3317]: x",
        "[x] ⟦ip-10-2-3-4⟧ up",
        "from ⟦db-replica-3.int.quillmart.example⟧",
        "ssh to ⟦web01.castelnau.intra⟧ now",
        "⟦mx1.gorvodokanal.local⟧ отвечает",
        "Oct 29 03:11:48 ⟦nas-kallberg⟧ sshd[20114]: closed",
        r"auf \\\\⟦srv-fibu02⟧\\fibu liegt",
        r"auf \\⟦srv-fibu02⟧\fibu liegt",
        r'path = "\\⟦srv-fibu03⟧\fibu"',
        r'{"path": "\\\\⟦srv-fibu04⟧\\fibu"}',
        "hostname: ⟦lx-fat-0218⟧",
    ),
    "MAC": ("⟦00:1B:44:11:3A:B7⟧", "at ⟦00-1b-44-11-3a-b7⟧.", "⟦001b.4411.3ab7⟧"),
    "URL": (
        "⟦www.kern.wien/kontakt⟧ there",
        "see ⟦https://example.org/a_(b)?q=1⟧.",
        "(⟦http://example.org/x⟧)",
        "⟦www.example.de/pfad⟧, dort",
        "on ⟦example.com⟧, or",
        "⟦ftp://files.example.net⟧",
        "共有（⟦https://drive.mizu.example/s/9fKd2⟧）に入れてあります",
        "见⟦https://a.example/路径/x⟧。好",
        "见⟦https://a.example/路径⟧,请看",
        "见⟦https://a.example/路径,请看?page=zebra⟧",
    ),
    "SECRET": (
        "GET /x sid=⟦ab12cd34ef56ab78⟧ end",
        "the token is ⟦Xk77!wolm⟧ now",
        "with auth of ours ⟦d2Fk7bXq9LmZt5RwYp3HnQ8s⟧ it runs",
        "at the gate give the number, it is ⟦4471#⟧",
        "PrivateKey = ⟦qTz7bWk3Lr0pYx5NvGd8HsJ1mUc4EiOa6RfB2TqXyZs=⟧",
        'ConvertTo-SecureString "⟦Krokus,27Berg⟧" -AsPlainText',
        'connect("dbi:x", "app", "⟦Bre9men!x⟧")',
        'server.login("oharlow", "⟦seven-quiet-geese⟧")',
        'get(page, auth=("svc-report", "⟦blue elephant rides⟧"))',
        "mysql -h db -p'⟦ankle7boot⟧' -e x",
        "openssl enc -d -k '⟦Toast_and_7⟧'",
        "admin / ⟦Lynx!44ab⟧",
        "alarm: ⟦7731⟧ first",
        "gate ⟦*2206#⟧, ask for Ann",
        "واي فاي: ⟦Palm7733!x⟧",
        "Passwort lautet weiterhin ⟦D0hle!nest⟧, bitte",
        "Twój kod to ⟦771204⟧",
        "⟦https://user:pw@example.org/⟧",
        "⟦https://example.org/x?a=1&access_token=abc123⟧ works",
        "⟦https://x.blob.example.net/c?sv=2&sig=ab%2Fcd⟧",
        "key ⟦sk-proj-abcdefghijklmnop1234⟧",
        "⟦ghp_abcdefghijklmnopqrstuvwxyz0123456789⟧",
        "⟦AKIA4JQZ7WPL2MXN8RTB⟧!",
        "⟦xoxb-123456789012-abcdefghij⟧",
        "⟦AIzaSyA1234567890abcdefghijklmnopqrstuv⟧",
        f"⟦{JWT}⟧",
        f"here:\n⟦{PEM}⟧\nbye",
        "Authorization: Bearer ⟦abcdef0123456789.x-y_z⟧",
        "password: ⟦hunter2⟧",
        "my password is ⟦Tr0ub4dor&3⟧, ok",
        "das Passwort ist ⟦geheim123⟧.",
        "mot de passe : ⟦soleil42⟧",
        'api_key = "⟦9f8e7d6c5b4a⟧"',
        "DB_PASSWORD=⟦s3cr3t-pass⟧",
        "client_secret: '⟦with blanks in it⟧'",
        "PIN ⟦4921⟧",
        "cvv: ⟦123⟧",
        "the key 1 is ⟦d2Fk7bXq9LmZt5RwYp3HnQ8s⟧",
        "hook ⟦whsec_A8rc0V1xL4JSWbwC2XEbxhnBcbtSjtgf⟧",
        "root:⟦$6$Yq8vL2$k1WmZx3Qp9sT7uV5⟧ in shadow",
        "Passwort zurückgesetzt auf ⟦Rhabarber!88⟧, bitte ändern",
        "pw for the quote pdf is ⟦Interieur2024!⟧, pls",
        "staging admin pw got reset, it's ⟦otter-Lamp-9-brisk⟧, ask",
        "password provisória que me deram: ⟦Sardinha#2024⟧ (não funciona)",
        'pass = "⟦pnfz qhwe rtui mkdl⟧" // app password',
        "ansible_become_pass=⟦Vespa!giallo-1962⟧",
        'psk="⟦jollof&Plantain77⟧"',
        'headers["Authorization"] = "Basic ⟦d211dHVhOlIwYm90aWMtSGVyb24=⟧"',
        "初始密码⟦hs881205⟧。",
        '비밀번호: "⟦gamgyul!82Hs⟧"',
        "пароль: ⟦ZimaBlizko-88⟧",
        "mật khẩu wifi phòng họp ⟦8a3vuive2026⟧",
        "hasło to ⟦Zima2024!⟧ jakby co",
        "şifre: ⟦Mayis!Kiraz_77⟧",
        "contraseña: ⟦gato1234⟧",
        "a senha é ⟦Caju#77x⟧, tá",
        "パスワードは「⟦sakura2024⟧」です",
        "كلمة السر: ⟦nakhla77⟧",
        "पासवर्ड है ⟦aam1234⟧ ठीक",
        "seed phrase: ⟦ocean hidden turtle maple lamp orbit cable sunset grape river stone wolf⟧",
        "the alarm code is ⟦4471#⟧",
        "Gate. New code from Monday: ⟦C3618X⟧.",
        "alarm off with ⟦6-6-0-2⟧, ask",
        "At the side door type ⟦star 5 5 0 1⟧; then",
        'the boot PIN is "⟦double two, nine, double zero, seven⟧"',
        "the combo is ⟦left 32, right 7, left 19⟧.",
        "türcode bei ihm is ⟦4471#⟧ falls",
        "code du portail ⟦73B09⟧.",
        "mã cửa vẫn là ⟦4471#⟧.",
        "la alarma es ⟦290871⟧",
        "キーボックス暗証番号⟦2849⟧に変更",
        "код домофона ⟦4512⟧, третий этаж",
        "kod do bramy: ⟦1947#⟧",
    ),
    "HANDLE": (
        "Changing view acls to: yarn,⟦jsmith⟧",
        "opened by: ⟦tmoraes⟧",
        "insta: ⟦lea.kern.pix⟧",
        "user ⟦mholt⟧ logged in",
        "scp ⟦mholt⟧@srv-01:/home",
        "x - ⟦m holt⟧ [10/Oct/2023:13:55:36 +0000] x",
        'user "⟦mholt⟧": authentication failure',
        'git config user.name "⟦Mira Holt⟧"',
        "user: { id: ⟦mholt77⟧",
        "$ whoami\n⟦mira_holt⟧\n",
        "updated_by = '⟦fhansen⟧' WHERE",
        "mysql -u ⟦ptakahashi⟧ shop",
        "service account OFFICE\\⟦lbraun⟧, please",
        "ansible_user: ⟦jortega⟧\n",
        "⟦kcho⟧:x:1004:1004::/srv",
        "Benutzer ⟦TWEBER07⟧. Wie",
        r"in C:\Users\⟦hlehmkuhl⟧\Documents",
        r"liegt unter C:\\Users\\⟦n.hlebodarov⟧\\AppData",
        'File "/home/⟦artsin⟧/Dev/prismo/app.py"',
        "at /Users/⟦zainab.q⟧/Dev/Reminder.swift:12",
        "see ~⟦khoffmann⟧/notes",
        "her handle is ⟦@maddie.swims⟧ and",
        "is ⟦@liesbeth⟧ back yet?",
        "My login ⟦b.zielonka⟧ is blocked",
        "ansible_user=⟦pbrigandi⟧",
        'Digest username="⟦hbae⟧", realm',
        "kullanıcı=⟦hande.ozturkmen⟧ ip",
        "계정: ⟦hosik.ma⟧",
        "【会員ID】⟦yurie_tknashi⟧ さま",
        'owner="⟦kmakoa808⟧"/>',
        "Rosanna Gallo (⟦rgallo⟧), postazione",
        "Temitope Fashanu (⟦tfashanu2⟧),",
        "Хлебодаров Никодим (⟦n.hlebodarov⟧), каб.",
        "dn: uid=⟦bthapa⟧,ou=people",
        "Accepted password for ⟦sven-olof⟧ from there",
        "[21:14] ⟦tobi_h89⟧: wer fährt",
        "join ⟦Nightowl#4821⟧ on there",
        "ssh ⟦anna⟧@srv01 fails",
        "insta'dan ekliyim ⟦tunakvk_61⟧ mıydı",
    ),
    "AGE": (
        "Mi madre tiene ⟦1⟧ año",
        "Meine Tochter ist ⟦12⟧ Jahre alt",
        "die ⟦71⟧-jährige Patientin",
        "he's ⟦17⟧, not older",
        "mi hermano cumple ⟦44⟧ mañana",
        "zum ⟦70⟧. Geburtstag von Oma",
        "Pz di anni ⟦64⟧, giunge",
        "عندها ⟦16⟧ سنة",
        "Mam astmę, ⟦68⟧ lata i psa",
        "her ⟦50⟧th birthday",
        "I am ⟦34⟧ years old and",
        "i'm ⟦27⟧, what now",
        "me (⟦29F⟧) and him",
        "⟦58M⟧, known T2DM",
        "my ⟦73⟧-year-old mother",
        "she is ⟦4⟧ years old",
        "our daughter Zofia (⟦6⟧) from",
        "R.K., ⟦41⟧, accountant",
        "Xiomara Bustillo, ⟦36⟧, 8 yrs at",
        "a colleague aged ⟦47⟧.",
        "Age: ⟦31⟧",
        "Edeltraud Winter (⟦87⟧, Pflegegrad 4)",
        "Ich bin ⟦34⟧ Jahre alt",
        "j'ai ⟦34⟧ ans et",
        "mi hijo Hugo, de ⟦9⟧ años,",
        "tenho ⟦34⟧ anos",
        "ha ⟦81⟧ anni e",
        "мне ⟦34⟧ года",
        "Пац. Ожегов-мл., ⟦7⟧ лет, карта",
        "他今年⟦34⟧岁了",
        "健（⟦34⟧歳）",
        "저는 ⟦34⟧세입니다",
        "con tôi ⟦7⟧ tuổi",
        "عمره ⟦34⟧ سنة",
    ),
    "DATE": (
        "Aufnahme: ⟦04.02.2024⟧, Station",
        "Kontrola: ⟦19.05.2025⟧, godz",
        "tyres, dentist Thu ⟦5 Dec⟧ 14:10, cake",
        "Control el ⟦21 de mayo⟧.",
        "الموعد القادم ⟦12 مايو⟧.",
        "次回往診は⟦5月12日⟧",
        "भर्ती: ⟦03/11/2024⟧",
        "sera revue le ⟦14 mars⟧ à",
        "ricoverata il ⟦3 aprile⟧",
        "nhập viện ngày ⟦12/03/2024⟧",
        "поступила ⟦12.03.2024⟧",
        "taburcu ⟦03.04.2024⟧",
        "입원 ⟦2024년 3월 4일⟧",
        "my appointment on ⟦3 May 2026⟧ at",
        "will see her again on ⟦19 May⟧.",
        "Mein Termin ist am ⟦12.05.2026⟧ um",
        "Solicito una reunión el ⟦21 de noviembre⟧.",
    ),
    "CRYPTO": (
        "to ⟦1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa⟧",
        "⟦3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy⟧",
        "⟦bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4⟧.",
        "⟦0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe⟧",
    ),
    "BIRTH_DATE": (
        "dob: ⟦1990-04-02⟧ 00:00:00",
        "dob: ⟦1990-04-01⟧T22:00:00.000Z",
        "born: ⟦1990-04-02⟧ 14:25:00",
        "dob ⟦02/04/1990⟧ 14:25:36",
        "date of birth: ⟦12 May 1980⟧ 14:25:36",
        "تاريخ الازدياد: ⟦14-06-1981⟧",
        "born on ⟦12 May 1980⟧ in",
        "DOB: ⟦05/12/1980⟧",
        "D.O.B. ⟦1980-05-12⟧.",
        "date of birth ⟦May 12th, 1980⟧",
        "geboren am ⟦12. Mai 1980⟧",
        "née le ⟦3 août 1975⟧",
        "nacido el ⟦3 de agosto de 1975⟧",
        "nata il ⟦3 agosto 1975⟧",
        "⟦12.05.1980⟧ is my birthday",
        "my birthday is ⟦May 12⟧",
        "born ⟦April 13⟧",
        "she was born in ⟦March 1990⟧.",
        "I was born in ⟦1987⟧.",
        "née Kerbrat le ⟦22/07/1984⟧, à Redon",
        "DN ⟦19/10/1965⟧, prontuário",
        "(b. ⟦17/08/1989⟧)",
        "Anna (*⟦12.05.1980⟧)",
        "ur. ⟦3 maja 1975⟧ w Łodzi",
        "nascida a ⟦6 de março de 1999⟧,",
        "geboortedatum ⟦25-01-1988⟧",
        "doğum tarihi ⟦23 Kasım 1987⟧",
        "sinh ngày ⟦14/02/1988⟧",
        "родилась ⟦19 мая 1991⟧ в Омске",
        "生年月日：⟦平成３年７月２日⟧",
        "出生日期： ⟦1990年8月25日⟧",
        "⟦1988년 3월 14일⟧생 김",
        "تاريخ الميلاد: ⟦٦ / ٣ / ١٩٩١⟧",
        "जन्म तिथि: ⟦०५/०८/१९६८⟧",
    ),
    "ADDRESS": (
        "in ⟦Drottninggatan 71⟧ there",
        "⟦〒604-8571⟧ に",
        "I live at ⟦Oakfield 12⟧",
        "⟦서울시 강남구 테헤란로 152⟧로",
        "甲方将位于⟦南明区箭道街66号附3号701室⟧的房屋",
        "住在⟦上海市浦东新区世纪大道100号5楼⟧。",
        "⟦埼玉県川口市在家町12-3⟧",
        "Vive en ⟦Pl. Mayor 3, Madrid⟧",
        "⟦沈阳市于洪区黄河大街12号⟧",
        "⟦45 नेहरू गली दिल्ली⟧",
        "⟦5, C/ 2 de Mayo, 12⟧",
        "at ⟦12 Main Street, Springfield, IL 62704⟧.",
        "⟦1600 Pennsylvania Ave NW⟧",
        "⟦221B Baker Street⟧,",
        "⟦12 main st⟧",
        "⟦742 Evergreen Terrace, Apt. 4⟧",
        "⟦10 Downing Street, London SW1A 2AA⟧",
        "in der ⟦Hauptstraße 5, 10115 Berlin⟧",
        "⟦12, rue de la Paix⟧",
        "in ⟦Via Roma 5⟧",
        "⟦Calle Mayor 12⟧",
        "⟦ul. Karpacka 69⟧",
        "⟦P.O. Box 123⟧",
        "⟦Postfach 1234⟧",
        "⟦PSC 9236, Box 1684\nAPO AP 02137⟧",
        "ZIP: ⟦8592⟧",
        "code ⟦SW1A 1AA⟧",
        "⟦K1A 0B1⟧",
        "he lives at ⟦Coronilla 3599⟧",
        "⟦Flat 2, 14 Castle Street, Edinburgh EH2 3BN⟧",
        "⟦C/ Gran Vía 28, 3º B, 28013 Madrid⟧",
        "⟦ul. Marszałkowska 10/12, 00-590 Warszawa⟧",
        "⟦Prinsengracht 263, 1016 GV Amsterdam⟧",
        "attended ⟦46 Brickfield Lane, Oldham⟧ following a call",
        "Adresse: ⟦Im Winkel 3 b, Hinterhaus⟧",
        "L'adresse : ⟦14 bis, rue des Tanneurs, 35600 Redon⟧, code du portail",
        "في ⟦بيروت، فرن الشباك، شارع سامي الصلح، بناية الريم⟧ منذ ثلاثين سنة",
        "| ⟦29270 Carhaix-Plouguer⟧\n",
        "⟦Hopfengarten 9\n97456 Dittelbrunn⟧",
        "wohnt ⟦27 rue Basse, 49300 Cholet⟧, dort",
        "⟦14 bis, rue des Tanneurs, 35600 Redon⟧, code",
        "en ⟦Ronda del Carmen, 33, 1.º izq.⟧\n",
        "⟦camino de los almendros 9⟧. si no",
        "na ⟦Rua da Bandeira, n.º 210, 2.º Dto., 4900-561 Viana do Castelo⟧, adiante",
        "⟦c.so Peschiera 140, scala B⟧, mica",
        "⟦VIA DEI MILLE 6/A – 25122 BRESCIA⟧\n",
        "adres ⟦ul. Leśna 17 m. 4, 62-510 Konin⟧ jest",
        "⟦ul. Słoneczna 18/7, bl. 9, kl. C, 31-610 Kraków⟧ i",
        "na ⟦al. Jana Pawła II 43⟧ w Warszawie",
        "przy ⟦ul. 3 Maja 7⟧ w Katowicach",
        "⟦skr. poczt. 145, 00-950 Warszawa⟧;",
        "⟦Nowa Wieś 17, gmina Michałowice, powiat pruszkowski, woj. mazowieckie⟧;",
        "en ⟦C/ Mayor 5, esc. B, 3º 2ª, 28013 Madrid⟧.",
        "in ⟦Via Roma 3, scala B, int. 4, 20121 Milano⟧.",
        "in der ⟦Hauptstr. 5, Hinterhaus, 2. OG links⟧",
        "au ⟦12 rue des Lilas, bât. C, 3e étage, 75011 Paris⟧.",
        "⟦14 Elm Street, Apt 4B, Bldg 2, Floor 3, Springfield, IL 62704⟧.",
        "na ⟦Rua das Flores 12, bloco 2, apto 31, 01234-567 São Paulo⟧.",
        "⟦Strada Florilor 8, bl. C2, sc. A, et. 3, ap. 14⟧",
        "⟦Nørregade 12, 3. tv, 1165 København⟧",
        "Adres : ⟦Süleymaniye Mah. Çeşme Sk. No:3 Beylikova/ESKİŞEHİR⟧",
        "⟦Fevzi Çakmak Cad. No: 61/4⟧ idi",
        "ở ⟦12/4 đường Lê Lợi, phường 7, quận Gò Vấp⟧.",
        "住在⟦武汉市洪山区雄楚大道某小区12栋3301⟧，",
        "还寄的⟦苏州工业园区星塘街88号B座⟧……",
        "现住址：⟦杭州市西湖区翠苑街道学院北路63号翠竹苑7幢2单元501室⟧",
        "不足分を⟦岡山県倉敷市児島味野2-7-31⟧の倉庫",
        "だが、⟦大阪府吹田市千里山東４丁目１９－８－６０３⟧の宅配",
        "住所：⟦〒９３９－８２１４　富山県富山市黒崎５１２－３　メゾン樫ノ木２０５⟧",
        "배송지는 ⟦강원특별자치도 강릉시 사천면 진리항구2길 5⟧이며",
        "живёт: ⟦ул. Ленина, д. 5, кв. 12⟧",
        "⟦Ростов-на-Дону, пер. Халтуринский, 85⟧",
        "⟦١٤ شارع طومان باي، الدور الخامس، شقة ٢١⟧",
    ),
    "COORDINATES": (
        "plate, GPS ⟦52.5200, 13.4050⟧",
        "home = [⟦-33.04238, -71.61927⟧]",
        'lat="⟦21.401733⟧"',
        "GPS: ⟦35 deg 31' 42.18\" N, 108 deg 44' 5.03\" W⟧",
        "at ⟦52°31'12.0\"N 13°24'18.0\"E⟧ again",
        "geo:⟦37.786971,-122.399677⟧",
        "Koordinaten: ⟦48.137, 11.575⟧",
        "⟦8FVC9G8F+6W⟧ is the place",
    ),
    "MEDICAL_RECORD": (
        "MRN: ⟦00123456⟧",
        "medical record number ⟦A-1234567⟧.",
        "patient ID is ⟦P123456⟧",
        "patient ID is ⟦P777777⟧",
        "Patientennummer ⟦4711-08⟧",
    ),
    "LICENCE": (
        "driver's license number is ⟦D1234567⟧",
        "DEA number ⟦AB1234563⟧",
        "NPI ⟦1234567893⟧",
        "Führerschein ⟦B072RRE2I55⟧",
    ),
    "PLATE": (
        "a blue one, ⟦FX-881-QM⟧",
        "silver Yaris, ⟦221-C-903⟧",
        "a Skoda, ⟦171-D-20441⟧, grey",
        "Kennzeichen ⟦B-MW 1234⟧",
        "Numer rejestracyjny pojazdu: ⟦WX-22490D⟧.",
        "matrícula ⟦1234 BCD⟧",
        "number plate ⟦AB12 CDE⟧.",
        "⟦SK17 WPN⟧ is hers",
        "la vettura ⟦GE 482 KN⟧",
        "der Wagen mit ⟦B-MW 1234⟧",
        "voiture ⟦AB-123-CD⟧",
        "coche ⟦4821 LKM⟧",
        "plaka: ⟦34 KRB 619⟧",
        "biển số ⟦51F-482.19⟧",
        "车牌：⟦浙A·7K2M9⟧，",
        "차량 ⟦157호 8830⟧입니다",
        "رقم السيارة: ⟦ط ق ل ٦٣٤⟧",
        "⟦MP 20 CX 4417⟧ again",
    ),
    "VIN": (
        "VIN ⟦1HGCM82633A004352⟧",
        "⟦1M8GDM9AXKP042788⟧ it was",
        "bastidor ⟦VSSZZZ6JZFR118402⟧",
        "numer VIN pojazdu: ⟦WVW0 0000 04RZ PEJE C⟧.",
        "车架号⟦LSVAM4187C2184841⟧",
    ),
    "BOOKING": (
        "PNR ⟦X7QK2M⟧ if you want",
        "Buchungscode ⟦8GHT4K⟧.",
        "reservation number ⟦HM-4471920⟧",
        "予約番号は⟦JL8842017⟧です",
        "номер брони ⟦AB4482019⟧",
    ),
    "ID": (
        "[⟦OPS-40117⟧] VPN",
        "case ref: ⟦20417-anna-weber⟧",
        "case ref: ⟦20417-rose-baker⟧",
        "see #⟦TCK-20831⟧ again",
        "chip ⟦981000012345678⟧",
        "टिकट: ⟦CMP-330915⟧",
        "رقم الدعوى ⟦BX-44718⟧ أمام",
        "Ticket ⟦INC0048213⟧ | P3",
        "⟦INC0048213⟧, again",
        "order number ⟦100-2003-44⟧",
        "Ref: ⟦CR/2291/24⟧",
        "Our ref: ⟦JMcA/pt/OKA0031-2⟧",
        "Employee no. ⟦E-20917⟧",
        "Employee no.:      ⟦BT 4417⟧",
        "waybill ⟦7719 4403 2286⟧.",
        "serial ⟦PF-3XK09L⟧.",
        "IMEI ⟦356938035643809⟧",
        "Kundennummer ⟦4711-08⟧",
        "Rechnungs-Nr. ⟦RE-2024-0815⟧",
        "dossier ⟦SIN-24-006613⟧",
        "expediente ⟦2024/00817⟧",
        "protocolo ⟦20240081734⟧",
        "pratica n. ⟦48170/B⟧",
        "zaaknummer ⟦Z-2024-0077315⟧",
        "zgłoszenie nr ⟦77138⟧",
        "sipariş no: ⟦8820-71Q⟧",
        "⟦2026/318⟧ sayılı kararın",
        "mã đơn hàng: ⟦DH00817⟧",
        "工单编号：⟦GD20260311-0476⟧，",
        "追跡番号⟦4409-1827-6635⟧は",
        "운송장: ⟦6401-2297-8830⟧입니다",
        "заказ № ⟦77-40213⟧",
        "رقم الطلب: ⟦٨٨٢٠١٧⟧",
        "शिकायत क्र. ⟦JDV-0042861⟧",
        "prontuário ⟦117.402⟧",
        "光猫SN：⟦ZTEGC8A41F07⟧，",
        "【ご注文番号】⟦250-8817264-0093⟧",
        "⟦1Z999AA10123456784⟧ is on its way",
    ),
}

# More than one span in a text.
BESIDE = (
    "DE89370400440532013000 / COBADEFF",
    "visa 4111111111111111 exp 1028 x 331 total 20",
    "curl -u anna:Xk77wo-lm -s",
    "10.0.0.7 - mholt [10/Oct/2023:13:55:36 +0000] x",
    "10.0.0.7 mholt [10/Oct/2023:13:55:36 +0000] x",
    "x mholt extra [10/Oct/2023:13:55:36 +0000] x",
    "10.0.0.7 - mholt [2023-10-10 13:55:36] x",
    "TCP_MISS/200 1834 GET http://a.example/ mholt HIER_DIRECT/- x",
    "login: moraes",
    "skype\nmoraes",
    "mholt@srv-01 ~/notes",
)

# What only words near tell: found above, and not here.
ALONE = (
    "457555462", "111222333", "123 456 782", "046 454 286", "C01X00T47", "12 May 1980", "05/12/1980", "00123456",
    "A-1234567", "D1234567", "7ABC123", "4921", "8592", "Coronilla 3599", "030901820",
    "d2Fk7bXq9LmZt5RwYp3HnQ8s", "VSSZZZ6JZFR118402", "GE 482 KN", "34 KRB 619", "X7QK2M", "100-2003-44", "48213",
    "PF-3XK09L", "062-948", "1058 7723", "532013000", "5409 3329 0618 4027", "079203012345", "E-20917", "hunter2",
    "12345678", "12-34-56", "March 1990", "86 Elm 5",
)  # fmt: skip

# One digit or letter away from something valid.
WRONG = {
    "CARD": ("4111 1111 1111 1112", "378282246310006", "9111111111111111"),
    "IBAN": ("GB82 WEST 1234 5698 7654 33", "DE89370400440532013001", "XX89370400440532013000"),
    "NATIONAL_ID": (
        "000-12-3456",
        "666-12-3456",
        "123-00-4567",
        "12345678A",
        "X1234567A",
        "RSSMRA85T10A562T",
        "2 69 05 49 588 157 81",
        "44051401358",
        "811228-9875",
        "131052-308U",
        "756.9217.0769.84",
        "85.07.30-033.29",
        "2341 2341 2347",
        "S1234567E",
        "529.982.247-26",
        "11.222.333/0001-82",
        "110105194912310021",
        "943 476 5918",
        "GB 12 34 56 C",
        "BSN 111222334",
        "SIN 046 454 287",
    ),
    "CRYPTO": (
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb",
        "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5",
        "0xde0B29",
    ),
    "IP": (
        "'a'@'%'",
        "LIKE '10.%'",
        "256.1.1.1",
        "1.2.3",
        "version 1.2.3.4",
        "v1.2.3.4",
        "12:30:45",
        "std::vector",
        "1.2.3.4.5",
    ),
    "MAC": ("00:1B:44:11:3A", "00:1B:44:11:3A:B7:99", "00:1B:44-11:3A:B7"),
    "LICENCE": ("DEA number AB1234564", "NPI 1234567890"),
}

NOTHING = (
    "run 48211 times, a pan for 12000 Rs",
    "du vin 12000 bouteilles, à la fin 45000 de moins",
    "seven **** and xxxx-12 of them",
    "0x742d35Cc66 and 0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAedff",
    "the parts ABCXE1234F and ABCPE123F",
    "13774283 5 ZXX or 1377428 5 ZX8",
    "P<UTO<ANNA and <<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<",
    "a booking for eight, and a ticket for TABLE",
    "the passport is old, his licence too; patient number unknown",
    "the parts 171-X-20441 and 13-D-204",
    "尾号是奇数，末尾没有",
    "INC 12, CHG30 and REQ-7",
    "1Z999 in the maze",
    "SK57 and MH 12 D 4, or OX-881-QM",
    "97456 mal\n10 Stück",
    "the camino is 9 days long, la rue est longue",
    "the psc 9236 of an apo",
    "C4 1AB2, K1A is near",
    "code postal manquant, zip it",
    "an apt choice of 12, a flat tyre",
    "meet me at noon, she lives in peace",
    "路边有3个人，小区很大",
    "市にある3つの町",
    "시 전체에 5개",
    "भारत की गली में पाँच लोग",
    "lat is short for latitude, gps: off",
    "8FVC9G+6W and 1AVC9G8F+6W",
    "option b. 12.5 is right, 3 * 12.05 too",
    "Jahrgang zwölf, year of birth unknown",
    "I'm 34th in line",
    "eine 10-jährige Laufzeit",
    "anni fa erano 70 case",
    "a 3-year-old bug of my 5-year plan",
    "the daughter company (Figure 6)",
    "58M, sold in 2020; (29 flowers)",
    "1 0 1 1 0 1 0 0 1 1 1 0 1 0 1 1 0 0 1 0 1",
    "North 344 157 60 57.7 30.2 718 884 158 1.66 126 6.4 14.9 63.8 15.9",
    "-26.8,-39.9193022836345,-39.8534675789927,-42.0320180043",
    "131.58601678 or 131.586016786",
    "5199952453220191146, 55555555555544441",
    "NA,1.2516738426,9.9126194601,NA\n0.43982 -21.04665 -72.21337",
    '{"input_cost_per_token": 1e-07, "output_cost_per_token": 0.00012, "minipass": "^7.0.4"}',
    "pkg:github/acme/abseil@v20250127.0.1 and protobuf@v31.1.0",
    'mkdir %USERPROFILE%\\\\projects\\\\a, "\\\\bde-munge\\\\b"',
    "border: 1px solid #E1E4E5",
    "image: acme/api:1.8.1.5",
    "self._tenant_id = tenant_id",
    'author: table_of_contents, id="package_scope_and_file_extensions"',
    "10:00:01 payment-service_1: started\n10:00:04 queue_worker: took it",
    "min_depth: 3\nmax_depth: 9\nmin_depth: 4\nmax_depth: 8",
    "git push origin feature/JIRA-1234-login-fix",
    'form.login("user", "password")',
    'server.login("oharlow", os.environ["PW"])',
    'iban: "NL00 BANK 0000 0000 00"',
    "बिल्ड 6.0.0-rc2 and कोड 0xC0000142",
    "Pazartesi 09.00–13.00 arası A ve C bloklarda su kesilecektir",
    "NIF X0000000T",
    "السيارة كورية 2019 الثمن 9",
    "licence server\n[2024-07-30T09:16:01Z] WARN  passport scan failed",
    "Levodopa 100/25 c/8 h. Vuelve en octubre.",
    "1. मेरे वार्ड में पिछले दो वर्षों में स्वीकृत नाली",
    "KeyError: 'date_of_birth'\nINFO  2024-04-02 03:00:12 cron: 14 rows",
    "npm ERR! Found: vue@3.4.21",
    "lodash@4.17 and next@15.0.0-rc.1",
    "call 090-0000-0000 or 0500000000",
    "call 0800 123 4567 or 8 800 200 30 40",
    "call 1-800-273-8255 or 1900 1234",
    "they use AKIAIOSFODNN7EXAMPLE",
    "Verordnung (EU) Nr. 1169/2011",
    "[RFC-2119] and [CVE-2024-1234]",
    "Wohnung im 3. OG links",
    "FAKTURA VAT NR FV/2024/03/0047",
    "w pozycjach 09-10 zapisano ST 8057 oraz",
    "User-agent: *\nDisallow: /\nUser-agent: GreatBot\n",
    "rules:\n - id: no-unused-vars\n",
    "PWD=/volume1/data ; COMMAND=/bin/ls",
    "root@server:~# ls",
    "<<<<<<< HEAD",
    "10-jährige Garantie",
    "she's ten minutes late",
    "$p = ConvertTo-SecureString $text",
    "Python 3.11.7 and version 2.0.1-rc1 are out.",
    "It costs $1,234,567.89, or 1.234.567,89 €.",
    "From 1990-1995 and 1999–2001 he worked there.",
    "In 2020, 2021 and 2022 sales rose by 12.5 %.",
    "ISBN 978-0-306-40615-7",
    "The match ended 3-2 at 12:30, not 14:45:10.",
    "On 2024-03-05 at 10:15 we met; 05.03.2024 is the same day.",
    "3 + 4 * 12 = 51, and 22/7 is near 3.14159265358979",
    "He ran 2 miles down the road and 5 minutes up the street.",
    "It is a one way street in the first place.",
    "I have 2 cars, 3 houses and 10 good friends.",
    "Chapter 4, section 12.3, page 1234.",
    "The password is incorrect, and your token has expired.",
    "password: required",
    "the secret is to keep going",
    "e.g. this, i.e. that; etc.and so on",
    "main.py, README.md and node.js are files",
    "Room 101 is on the second floor.",
    "He was born to lose, at 12.",
    "Mozart was born on 27 January 1756 in Salzburg.",
    "The NATO summit is on 9 July 2024.",
    "what time is ur flight 03/08/2025",
    "* 12.05.2020 first meeting",
    "x = a[10:20]; y = foo::bar(1, 2)",
    "100 000 people and 1 234 567 more",
    "1/2/3 and 10-20-30",
    "校验身份证最后一位，GB 11643-1999",
    "ISBN 0306406157, ISBN 0-306-40615-7",
    "+1 200 000 000 and +120000000 more",
    "We had 250000 calls and 1000000 messages; 1 234 567 calls later",
    "12 345 67 89 10 11 12 are in the row",
    "from 01.02.2024-05.03.2024 to 01/02/2024 03/04/2024",
    "1700000000 and 1700000000000 are timestamps",
    "α = 0.0072973525693 and c = 299792458 m/s",
    "6.62607015e-34 J s, 1.380649e-23, 6.02214076e23",
    "0x7ffeefbff5c8 and 3f2a9c1b are in the dump",
    "CVE-2024-12345, RFC 2119, ISO 8601, DIN 5008",
    "digits = '0123456789'",
    "| 12 | 345 | 678 | 90 |",
    "在1990年到2000年之间有100000人",
    "2024年10月には1234人でした",
    "3조 5000억 원, 1234명",
    "0.7342, 0.8123 and 0.9012 are the scores",
    "| 0.1234 | 0.5678 | and (0.1234, 0.5678)",
    "[1.2345, 2.3456, 3.4567] is an embedding",
    "The axis is tilted by 23° 26' 21\" today.",
    "IP address: none of 5; email address: required, 12 at most",
    "12000 Euro\n15000 Menschen\n",
    "Address: the issue in 5 days and then look at all the rest of it again",
    "他在1990年走了100公里路3次",
    "第3章第12节共100页",
    "학교로 5명이 갔다. 바로 3시에.",
    "на улице было 5 человек",
    "Q3 2024: 12 %, FY24 5 Mio.",
    "chmod 0755 file; kill -9 12345",
    "sha256 e3b0c44298fc1c149afbf4c8996fb924",
    "f(x) = 2x^2 + 3x - 5 for x in [0, 10]",
    "Changan Uni-v 2021 2022 2023 Auto",
    "Subject: SCP-085 (referred to as a drawing)",
    "| PHONE | 0.869 (0.790 to 0.927) | 1.000 (0.923 to 1.000) | +0.054 (-0.034 to +0.065)",
    "0.5000 1.0000 1.0000 | 1.0000 1.5000 | array([0.17157288, 5.82842712])",
    "Modified 22-May-2007 to support RFC 3548",
    "Color = Enum('Color', names='RED GREEN BLUE') of 1 car",
    "source_address: a 2-tuple (host, port) for the socket to bind",
    "bus 42 at platform 9 in 15 minutes",
    "Ticket 5 of 10, order of 3 to 4 weeks, case 2024",
    "Die Rechnung war 1500 Euro hoch; der Fall liegt 20 Jahre zurück.",
    "der Vertrag von 1648, Auftrag 3 von 7",
    "un pedido de 2500 euros en 2024",
    "заказ на 5000 рублей",
    "订单3件，共1200元",
    "2024/25 season, 24/7 service, 9/11",
    "Windows 10.0.19045, node v18.19.0, glibc 2.35",
    "H2O, CO2, PM2.5, C6H12O6, 5G, 4K",
    "A4 paper, B2 visa, M3 screws, F16 jets, C4",
    "Boeing 737-800 and A320-200 fly there",
    "Model XPS 13 9310 with 16 GB",
    "page 123-125, lines 10-20, Fig. 3.2",
    "It is 1:30 pm; 16:9; 3:2",
    "The card game has 52 cards since 1480.",
    "BP 120/80, HR 72, 98.6 F",
    "def login(user, password: str, token: Optional[str] = None): ...",
    "if password == confirm_password:",
    "SELECT * FROM t WHERE id = 1234567890;",
    "arrive at the dot com boom",
    "explain like I'm 5, as if I am 12",
    "children aged 8-12 and people aged 65 and over",
    "a 12-year-old whisky in my 100-year-old house",
    "I am 5 minutes late, I'm 100% sure, I'm 6 feet tall",
    "for 18+ only, at age 65 they retire",
    "a 10 year old can do it",
    "depuis 10 ans, il y a 5 ans, hace 5 años",
    "适合3-6岁儿童，18岁以上",
    "18세기 그림과 20세 이상",
    "bake at 180C (350F)",
    "Figure (3) and Table 4, 12, 13",
    "The concert is on 3 May 2026; the deadline is 5 June.",
    "@app.route('/x')\ndef f(): ...",
    "@Override\npublic void run() {}",
    "use @angular/core and @tanstack/vue-query",
    "@media print { a { color: red } }",
    "DECLARE @total INT; SET @total = @price * 2",
    " * @param newPassword the new one\n * @return nothing",
    "thanks @everyone and @NASA",
    "cd /home/ubuntu/app and C:\\Users\\Public\\x and /Users/runner/work",
    "user: string, author = book.author, owner = msg.sender",
    "user = get_user(id); login: true",
    "see issue#1234 and PR#4321",
    "the genome (GRCh38) and the error (e.message)",
    "he accepted it for limited production",
    "first_name: Anna\nlast_name: K",
    "12:31:07 http_server: started",
    "~5 km and ~/notes",
    "password = input('your password')",
    "password: hashedPassword, token: res.data.token,",
    "const token = createToken(user);",
    "fetch(url, {credentials: 'include'})",
    "api_key = os.environ['API_KEY']",
    "DB_PASSWORD=${DB_PASSWORD}",
    "password: <your_password>",
    "token: xxxxxxxxxxxx",
    "password: changeme",
    "the password must be 8-16 characters",
    "hash the password with SHA256 or bcrypt",
    "max_tokens=4096 and eos_token='</s>'",
    "The error code is 404, the exit code 137.",
    "dress code 2024 and source code 1234",
    "PASS: test_login, compass and bypass",
    "the key to success is work",
    "a combination of 3 colours",
    "PIN code validation in 5 steps",
    "threading.local() and window.home and np.int",
    "org.hibernate.internal.util.Config",
    "server: nginx and host: localhost",
    "settings.local.json is ignored",
)


# Found, but public: only the level `names` hides them.
PUBLIC = (
    "https://en.wikipedia.org/wiki/Ada_Lovelace",
    "https://docs.python.org/3/library/re.html",
    "https://github.com/python/cpython/issues/1",
    "https://www.theiet.org/media/5304/standards.pdf",
    "http://localhost:8000/health",
    "https://example.com/path?x=1",
    "smtp.example.com:587",
    "registry.npmjs.org",
    "http://db:5432/app",
    "forex.com",
    "127.0.0.1",
    "0.0.0.0",
    "255.255.255.0",
    "8.8.8.8",
    "192.168.1.1",
    "203.0.113.7",
    "2001:db8::1",
    "git@github.com",
    "user@example.com",
    "noreply@github.com",
    "Irvine-based Linksys Inc (www.linksys.com)",
)
PRIVATE = (
    "https://www.linkedin.com/in/emekanwa-rn",
    "github.com/kenj-maeda",
    "https://docs.google.com/document/d/1AbC/edit",
    "https://us02web.zoom.us/j/8812?x=1",
    "https://gw.thika-water.internal/v2/meters/",
    "https://portal.glenmhor-housing.example/u/seonaid.mackinnon/repairs",
    "http://jenkins-prod:8080/job/x",
    "http://10.0.3.7/admin",
    "https://booking.alpen.example/confirm?guest=Ingrid&res=AB-77120",
    "https://lmsweb.aast.edu/pluginfile.php/1025401/Lecture.pdf",
    "jdbc:postgresql://db-ic02.lodos.lan:5432/bordro",
    "94.254.61.18",
    "10.31.5.11",
    "anna@example.com",
    "info@larkfield.example",
)


def marked(text):
    """A text without its brackets, and the places that they were around."""
    start, end = text.index("⟦"), text.index("⟧") - 1
    return text.replace("⟦", "").replace("⟧", ""), start, end


def spans(text, patterns=PATTERNS):
    return [(span.start, span.end, span.type) for span in patterns.find([text])]


@pytest.mark.parametrize("type_", FOUND)
def test_found_with_exact_edges(type_):
    for plain, start, end in map(marked, FOUND[type_]):
        assert spans(plain) == [(start, end, type_)], plain


@pytest.mark.parametrize("type_", FOUND)
def test_found_amid_prose(type_):
    before, after = (
        "We had a good talk yesterday, she said.\n\n",
        "\nBest wishes to all of you there.",
    )
    for plain, start, end in map(marked, FOUND[type_]):
        place = (start + len(before), end + len(before), type_)
        assert place in spans(before + plain + after), plain


FOUND_TYPES = {rule.type for rule in RULES} | {"PHONE"}


def test_every_type_has_examples():
    assert set(FOUND) == FOUND_TYPES


def test_beside_the_number_of_a_card_stand_its_expiry_and_its_code():
    text = "بطاقته 4111 1111 1111 1111 (تنتهي 10/28، رمز 331)"
    assert [text[s.start : s.end] for s in PATTERNS.find([text])] == [
        "4111 1111 1111 1111",
        "10/28",
        "331",
    ]
    text = "visa 4111111111111111 exp 1028 x 331 total 20"
    assert [text[s.start : s.end] for s in PATTERNS.find([text])] == [
        "4111111111111111",
        "1028",
        "331",
    ]


@pytest.mark.parametrize("text", ALONE)
def test_what_needs_words_near_is_not_found_without(text):
    assert spans(f"Then {text} it was.") == []


@pytest.mark.parametrize("type_", WRONG)
def test_wrong_checks_are_not_found(type_):
    for text in WRONG[type_]:
        assert type_ not in [found for _, _, found in spans(f"Then {text} it was.")], text


def test_lookalikes_are_not_found():
    assert {text: found for text in NOTHING if (found := spans(text))} == {}


def privacy(text):
    return [span.privacy_score for span in PATTERNS.find([text])]


@pytest.mark.parametrize("text", PUBLIC)
def test_what_everybody_knows_is_public(text):
    assert all(private < 0.5 for private in privacy(f"see {text} there"))


@pytest.mark.parametrize("text", PRIVATE)
def test_what_leads_to_somebody_is_private(text):
    assert len(privacy(f"see {text} there")) == 1
    assert privacy(f"see {text} there")[0] >= 0.5


def test_an_address_is_somebodys_own_if_the_text_says_so():
    assert privacy("see larkfield.com there") == [0.2]
    assert privacy("my website is larkfield.com") == [0.8]
    assert privacy("larkfield.com, or anna@larkfield.com") == [0.8, 1.0]
    assert privacy("gmail.com, or anna@gmail.com") == [0.2, 1.0]


def test_speakers_of_a_chat_are_found_where_they_speak_twice():
    chat = (
        "gia_zane: chi porta la torta\npippo.er: ma se nevica?\ngia_zane: e allora?\npippo.er: ok"
    )
    assert [chat[start:end] for start, end, _ in spans(chat)] == ["gia_zane", "pippo.er"] * 2
    assert spans("max_size: 3\nmin_size: 1") == []


def test_a_login_of_ordinary_words_is_none_unless_they_are_names():
    assert spans("opened by: table.of.contents") == []
    assert spans("opened by: mark.hope.rose") == [(11, 25, "HANDLE")]


def test_a_compound_with_a_participle_is_no_login():
    assert spans("shown to the user as Node-flavored text") == []
    assert spans("the user is mohammed-reed now") == [(12, 25, "HANDLE")]
    assert spans("logged in as anna-kowalska") == [(13, 26, "HANDLE")]


def test_names_behind_an_at_sign_in_code_are_none():
    assert spans("@alice thanks @bob") == [(0, 6, "HANDLE"), (14, 18, "HANDLE")]
    assert spans("class A:\n    @alice\n    def f(self): ...") == []


# ---- check digits ----------------------------------------------------------------------------------------------------

# Valid examples again; of all single changes of a digit, these schemes must notice at least this share.
NOTICES = {
    "luhn": ("4111111111111111", 1.0),
    "mod97": ("DE89370400440532013000", 1.0),
    "verhoeff": ("234123412346", 1.0),
    "is_nhs": ("9434765919", 1.0),
    "is_pesel": ("44051401359", 1.0),
    "is_bsn": ("111222333", 1.0),
    "is_ahv": ("7569217076985", 1.0),
    "is_tfn": ("123456782", 0.98),
    "is_abn": ("51824753556", 0.95),
    "is_cpf": ("52998224725", 0.98),
    "is_cnpj": ("11222333000181", 0.98),
    "is_steuer_id": ("86095742719", 1.0),
    "is_fodselsnummer": ("15076500565", 0.98),
    "is_south_african": ("8001015009087", 1.0),
    "is_rrn": ("9710139019902", 0.9),
    "is_resident_id": ("110105194912310021"[:17] + "X", 1.0),
    "is_npi": ("1234567893", 1.0),
    "is_medicare": ("2123456701", 0.85),
}


@pytest.mark.parametrize("name", NOTICES)
def test_check_digits_notice_single_mistakes(name):
    check, (valid, share) = getattr(checksums, name), NOTICES[name]
    assert check(valid)
    wrong = [
        valid[:i] + d + valid[i + 1 :]
        for i, c in enumerate(valid)
        if c.isdigit()
        for d in "0123456789"
        if d != c
    ]
    assert sum(not check(one) for one in wrong) >= share * len(wrong)


@given(st.integers(0, 10**15 - 1))
def test_one_check_digit_of_ten_is_right(number):
    luhn = [d for d in range(10) if checksums.luhn(f"{number:015d}{d}")]
    double = [int(c) * 2 for c in f"{number:015d}"[::-2]]
    expected = (
        -(sum(map(int, f"{number:015d}"[-2::-2])) + sum(v - 9 * (v > 9) for v in double)) % 10
    )
    assert luhn == [expected]
    assert sum(checksums.verhoeff(f"{number}{d}") for d in range(10)) == 1


@given(st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=10, max_size=30))
def test_one_pair_of_check_digits_of_an_iban_is_right(account):
    number = int("".join(str(int(c, 36)) for c in account + "DE00"))
    right = [d for d in range(2, 99) if checksums.mod97(f"DE{d:02d}{account}")]
    assert 98 - number % 97 in right
    assert len(right) == 1


# ---- what holds of every text ----------------------------------------------------------------------------------------

EXAMPLES = [*(marked(text)[0] for texts in FOUND.values() for text in texts), *BESIDE]
PIECES = [*EXAMPLES, *NOTHING]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=30), st.sampled_from(PIECES)), max_size=6).map(" ".join))
def test_any_text_gives_ordered_spans_inside_it(text):
    found = PATTERNS.find([text])
    for span in found:
        assert 0 <= span.start < span.end <= len(text)
        assert span.type in IDENTIFIERS
        assert 0 < span.score <= 1
        assert span.text == 0
        assert span.source == "patterns"
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert PATTERNS.find([text]) == found


@given(st.text(st.characters(exclude_categories=())))
def test_no_text_raises_and_every_span_lies_in_it(text):
    assert all(0 <= span.start < span.end <= len(text) for span in PATTERNS.find([text]))


def test_a_group_of_texts_is_searched_by_the_rules_that_could_match_in_each(monkeypatch):
    """Rules are selected by what stands in a group; all that could match are tried in each text."""
    found = PATTERNS.find(PIECES)

    def try_all(index, text, digits, signs):
        for rule in index.source:
            if digits >= rule.digits and any(sign in text.lower for sign in rule.triggers):
                yield rule

    monkeypatch.setattr(RuleIndex, "select", try_all)
    assert found == PATTERNS.find(PIECES)
    monkeypatch.setattr(RuleIndex, "select", lambda *_: iter(()))
    assert found != PATTERNS.find(PIECES)


WORDS = (
    "born ",
    "SSN ",
    "DEA ",
    "NHS ",
    "BSN ",
    "license ",
    "plate ",
    "passport ",
    "PIN ",
    "ZIP ",
    "tel ",
    "address ",
    "key ",
)
SHAPES = (
    "9",
    "99",
    "999",
    "9999",
    "999999",
    "999999999",
    "X",
    "XX",
    "XXXXX",
    "April",
    "May",
    "-",
    "/",
    ".",
    " ",
    ":",
    "+",
    "S",
    "T",
)
LETTER = st.sampled_from("ABCFGHJKLMNPSTXYZabcxyzſKıİéßǅ")
DIGIT = st.sampled_from("0123456789" * 3 + "٣७３𝟘²")


@st.composite
def shaped(draw):
    """Words that matter, then digits and letters in shapes of identifiers."""
    text = draw(st.sampled_from(WORDS)) + "".join(
        draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=9))
    )
    return "".join(draw(DIGIT) if c == "9" else draw(LETTER) if c == "X" else c for c in text)


def lie_inside(text):
    for span in PATTERNS.find([text]):
        assert 0 <= span.start < span.end <= len(text)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(shaped())
def test_nothing_that_looks_alike_raises(text):
    lie_inside(text)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(
    st.sampled_from(PIECES),
    st.lists(st.tuples(st.integers(0, 200), st.one_of(DIGIT, LETTER)), min_size=1, max_size=4),
)
def test_no_example_with_other_characters_in_it_raises(text, changes):
    characters = list(text)
    for place, other in changes:
        old = characters[place % len(text)]
        if old.isalnum() and old.isdigit() == other.isdigit():
            characters[place % len(text)] = other
    lie_inside("".join(characters))


def test_every_digit_is_read_alike():
    for code in range(128, sys.maxunicode + 1):
        if (value := unicodedata.decimal(chr(code), None)) is not None:
            assert convert_to_plain(chr(code))[0] == str(value)


def test_a_ticket_may_be_told_by_its_place():
    assert spans("#9920417 – Laptop returned") == [(1, 8, "ID")]
    assert spans("Colour #992041 is red") == []


def test_a_word_tells_all_numbers_of_a_row():
    assert spans("passports 562019847, 562019848 and 562019849")[1:] == [
        (21, 30, "NATIONAL_ID"),
        (35, 44, "NATIONAL_ID"),
    ]
    assert spans("orders: order no 77-1042 and 12 more") == [(17, 24, "ID")]


def test_texts_are_numbered():
    found = PATTERNS.find(["nothing", "a@b.org", "", "c@d.org and e@f.org"])
    assert [span.text for span in found] == [1, 3, 3]


def test_of_spans_that_overlap_the_surest_counts():
    assert spans("password: 4111 1111 1111 1111") == [(10, 29, "CARD")]
    assert spans("https://user:pw@host.example.org/x") == [(0, 34, "SECRET")]
    assert spans("https://example.org/?to=a@b.org") == [(0, 31, "URL")]


@pytest.mark.parametrize(
    ("rest", "private"),
    [
        ("find?q=a@b.org", True),
        ("85.214.132.117", True),
        ("pay/4111111111111111", True),
        ("536-22-8745/x", True),
        ("find?q=127.0.0.1", False),
        ("questions/1234567890/how-to", False),
        ("a/b-c.html#d", False),
    ],
)
def test_an_address_that_everybody_knows_is_private_with_an_identifier_in_it(rest, private):
    found = PATTERNS.find([f"https://www.python.org/{rest}"])
    assert any(span.privacy_score >= 0.5 for span in found) == private


def found(*parts):
    return [RuleMatch(start, end, type_, score) for start, end, type_, score in parts]


def test_what_is_left_of_the_others_stays():
    plain = "abcd efgh ijkl mnop"
    pair = found((0, 9, "ADDRESS", 0.5), (5, 14, "EMAIL", 0.9))
    assert _resolve_overlaps(plain, pair) == found((0, 4, "ADDRESS", 0.5), (5, 14, "EMAIL", 0.9))
    around = found((0, 19, "ADDRESS", 0.5), (5, 9, "EMAIL", 0.9), (10, 14, "CARD", 0.9))
    assert [one[:3] for one in _resolve_overlaps(plain, around)] == [
        (0, 4, "ADDRESS"),
        (5, 9, "EMAIL"),
        (10, 14, "CARD"),
        (15, 19, "ADDRESS"),
    ]
    assert _resolve_overlaps(plain, found((0, 9, "EMAIL", 0.5), (0, 14, "CARD", 0.5))) == found(
        (0, 14, "CARD", 0.5)
    )
    assert _resolve_overlaps(plain, found((0, 9, "EMAIL", 0.5), (5, 14, "EMAIL", 0.7))) == found(
        (0, 14, "EMAIL", 0.7)
    )


def test_of_a_number_only_figures_are_left():
    both = found((0, 7, "ID", 0.65), (4, 7, "NATIONAL_ID", 0.9))
    assert _resolve_overlaps("SSN 536", both) == found((4, 7, "NATIONAL_ID", 0.9))
    assert len(_resolve_overlaps("S12 536", both)) == 2


TYPE = st.sampled_from(IDENTIFIERS)


@given(
    st.lists(
        st.tuples(st.integers(0, 40), st.integers(1, 20), TYPE, st.sampled_from((0.5, 0.7, 1.0))),
        max_size=12,
    )
)
def test_separated_spans_cover_what_was_found(parts):
    plain = "1" * 60
    given_ = [
        RuleMatch(start, start + length, type_, score) for start, length, type_, score in parts
    ]
    kept = _resolve_overlaps(plain, given_)
    assert all(one.end <= other.start for one, other in pairwise(kept))
    covered = {place for one in given_ for place in range(one.start, one.end)}
    assert {place for one in kept for place in range(one.start, one.end)} == covered
    assert _resolve_overlaps(plain, given_[::-1]) == kept


def test_only_the_types_asked_for():
    text = "a@b.org, 4111 1111 1111 1111, https://example.org/?token=abc, +44 20 7946 0958"
    for type_ in ("EMAIL", "CARD", "SECRET", "URL", "PHONE"):
        assert [t for _, _, t in spans(text, Patterns(types=(type_,)))] == [type_]
    assert spans(text, Patterns(types=())) == []


def test_regions_decide_what_stands_alone():
    text = "the number 8123 456 789 is hers"
    assert spans("at (02) 9374 4000 now", Patterns(regions=("AU",))) == [(3, 17, "PHONE")]
    assert spans("at (02) 9374 4000 now", Patterns(regions=("US",))) == []
    assert spans(text, Patterns(regions=("US",))) == []


@pytest.mark.parametrize(
    "options", [{"types": ("NAME",)}, {"regions": ("usa",)}, {"regions": ("XX",)}]
)
def test_unknown_options_are_refused(options):
    with pytest.raises(ConfigError, match="must be"):
        Patterns(**options)


def test_it_is_a_detector_that_shows_no_text():
    assert isinstance(PATTERNS, Detector)
    assert PATTERNS.name == "patterns"
    assert "a@b.org" not in repr(PATTERNS.find(["a@b.org"])) + repr(PATTERNS)


def test_nothing_is_fetched(monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a connection was tried")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    everything = "\n".join(PIECES)
    assert {span.type for span in Patterns().find([everything])} == FOUND_TYPES


UNITS = (
    "a", "1", "1 ", "A", "a.", "a@", "@", "1-", "1.", "(", ":", "a:", "0:", "/", "-", "a-", "A1 ", "Aa ", "1 Aa ",
    "+1", "=", "password ", "password=", "key ", "MRN ", "MRN 1", "born ", "address 1 Aa ", "http://", "http://a",
    "www.", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAA\n", "eyJ",
    "eyJaaaaaaaa.", "GB82 ", "4111 ", "12 de ", "rue ", "1 rue de ", "Apt. 1 ", "\u200b", "１", "é", "🙂", "\n", " ",
    "路1", "路", "市1-1", "県", "로 1", "시 가", "ул. А ", "А, ", "№ 1 ", "order 1", "ref ", "1.2345, ", "1.2345 ",
    "1,", "12-", "Mah. ", "A Mah. ", "đường 1, ", "phố a, ", "شارع ا، ", "ا ", "ग्राम क, ", "IMEI 1", "1 exp 01/25 ",
    "1° 1' ", "Unit 1/", "Aa 1\n12345 Aa", "address: a ", "passport 12345, ", "1 and ", "PNR ", "AB 12 ", "京A", "(0",
    "+1 (", "06 ", "a b ", "Aaaaaaaa.Bbbbbb ", "1 street ", "1, ", "aA1", "tel 1 ", "_", "sk-",
    "password is ", "code ", "door code ", "one two ", "@a ", "a_b: ", "[12:00] a_1: ", "C:\\Users\\a\\", "a.int.",
    "at dot ", "(at", "aGVsbG8", "aged 1 ", "(1 ", "Aa Bb, 22, ", "my 1 year old ", "1岁", "ssh a@", "token=",
    "Anna Bcde (bcde", "a:1::", "a::", " - a [10/Oct/2023:13:55 ", "TCP_MISS/200 1 GET ", "AAAADEAA ", "bic ",
    "ref 1-2 ",    "tel ruf an 01", "http://a.b/ a@b.de ", "seed phrase: ", "appt on 1 may ", "csrf value=", "abandon ",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear(unit):
    """Ten times the text takes at most sixty times as long; a quadratic pattern takes a hundred times as long."""

    def seconds(size):
        text = unit * (size // len(unit))
        start = time.process_time()
        lie_inside(text)
        return time.process_time() - start

    small = min(seconds(3_000) for _ in range(3))
    assert seconds(30_000) < 60 * small + 1.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["a", "a.", "a@", "(", "Aa ", "password ", "eyJ", "http://a", "-----BEGIN PRIVATE KEY-----\n"],
)
def test_a_million_characters_are_no_trap(unit):
    start = time.process_time()
    PATTERNS.find([unit * (1_000_000 // len(unit))])
    assert time.process_time() - start < 60


@pytest.mark.parametrize(
    "text",
    [
        "motif=MOT_DE_PASSE_EXPIRE\n2024-03-11 08:42:55,010 WARN",
        "Şube için banka hesabı eksik\n[2026-02-11T05:20:05Z] uyarı",
        "Gerät 3 Jahre, Garantie 2 Jahre.",
    ],
)
def test_dates_of_logs_and_warranties_are_no_cards_accounts_or_streets(text: str) -> None:
    assert Patterns().find([text]) == []


@pytest.mark.parametrize(
    "text",
    ["paracétamol 1 g — 06/2026\nibuprofène 400 — périmé", "Tel.: 09.2025", "call me in 6/2027"],
)
def test_a_month_of_a_year_is_no_telephone_number(text: str) -> None:
    assert "PHONE" not in {span.type for span in Patterns().find([text])}


def test_a_telephone_number_is_no_house_number_and_expiry_dates_are_still_found() -> None:
    found = {
        span.type for span in Patterns().find(["Please ring 01307 555 018 and ask for the shop."])
    }
    assert found == {"PHONE"}
    text = "Visa 4012 8888 8888 1881, expires 03/27"
    assert "03/27" in {text[span.start : span.end] for span in Patterns().find([text])}
    text = "Meine Adresse: Altstädter Ring 12, 24103 Kiel"
    assert "ADDRESS" in {span.type for span in Patterns().find([text])}


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("pay before 3 March, because", "3", "3 March"),
        ("on 12 Jan. We", "12", "12 Jan"),
        ("Am 3. Mai 2024 war", "Mai", "3. Mai 2024"),
        ("2020년 10월 이후", "10", "2020년 10월"),
        ("for 3 days in March", "3", "3"),
        ("on Tuesday", "Tuesday", "Tuesday"),
    ],
)
def test_no_day_stays_without_its_month(text, part, whole):
    start = text.index(part)
    start, end = extend_date(text, start, start + len(part))
    assert text[start:end] == whole


@pytest.mark.parametrize(
    "text",
    [
        "2024-10-02 08:15 ⟦030 2345678⟧ called",
        "log\n03-12 10:22:41 phone ⟦030 2345678⟧",
        "RUT ⟦12.345.678-k⟧",
    ],
)
def test_no_number_goes_for_the_time_of_a_line_or_a_version(text):
    plain, start, end = marked(text)
    assert any(first <= start and last >= end for first, last, _ in spans(plain))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("come to 5 Quarry Hill, Settle and not to the old one", "5 Quarry Hill, Settle"),
        ('of 7 Tithe Barn Close, Lydmarsh ("the Landlord") and', "7 Tithe Barn Close, Lydmarsh"),
        ("a su casa de la calle Pozo 9 a las 8", "calle Pozo 9"),
        (
            "sie wohnt Karl-Marx-Str. 5 b, 15230 Frankfurt (Oder)",
            "Karl-Marx-Str. 5 b, 15230 Frankfurt (Oder)",
        ),
        ("send it to 12 Mill Lane, Burton upon Trent.", "12 Mill Lane, Burton upon Trent"),
    ],
)
def test_an_address_ends_where_the_sentence_goes_on(text: str, address: str) -> None:
    (span,) = Patterns().find([text])
    assert (text[span.start : span.end], span.type) == (address, "ADDRESS")


@pytest.mark.parametrize(
    "text", ["the lighthouse at Pell Point for forty years", "Next appt 9 June."]
)
def test_words_that_look_like_an_address_are_none(text: str) -> None:
    assert not {"EMAIL", "ADDRESS"} & {span.type for span in Patterns().find([text])}


def test_a_number_behind_a_plus_is_a_telephone_number_whatever_its_check_digit_says() -> None:
    assert [span.type for span in Patterns().find(["call +48 601 274 938", "48601274938"])] == [
        "PHONE",
        "NATIONAL_ID",
    ]


@pytest.mark.parametrize(
    "number",
    [
        "131052-901X",  # Finland, temporary
        "660578-5069",  # Sweden, coordination number
        "80.45.10-123.20",  # Belgium, BIS
        "8001015009285",  # South Africa, a refugee's
    ],
)
def test_numbers_of_people_who_came_from_elsewhere_are_national_numbers(number):
    found = PATTERNS.find([f"no. {number} is it"])
    assert [(span.type, span.end - span.start) for span in found] == [("NATIONAL_ID", len(number))]


def test_without_check_digits_detection_fails(monkeypatch):
    checksums._load_module.cache_clear()
    monkeypatch.setitem(sys.modules, "stdnum", None)
    monkeypatch.setitem(sys.modules, "stdnum.luhn", None)
    with pytest.raises(ImportError):
        checksums.luhn("4539578763621486")
