"""Structure: values are found by their keys, keys and code stay, and nothing breaks it or slows it down."""
# ruff: noqa: E501  (documents as they stand)

import json
import random
import re
import time
from itertools import pairwise

import pytest

from textveil.detect import load_detector
from textveil.detect.keyvalue import Structure
from textveil.detect.keyvalue.field_names import classify_key, fold_key, is_person
from textveil.detect.spans import Detector

STRUCTURE = Structure()

# What is between ⟦ ⟧ is private and found; everything else stays.
FOUND = {
    "json": (
        '{"firstName": "⟦Ondřej⟧", "lastName": "⟦Vlček⟧", "age": ⟦47⟧, "city": "⟦Olomouc⟧", "country": "Czechia"}',
        '{"customer": {"name": "⟦Sione Tupou⟧", "phone": "⟦+64 21 408 9172⟧"}, "items": [{"name": "Brass Lamp", "qty": 1}]}',
        '[{"name": "lodash"}, {"real_name": "⟦Anselm Obuya⟧", "text": "fine"}]',
        '{"patient": "⟦Ngaio Marsh-Tane⟧", "ward": "Four"\n"notes": ["trunca',
        '"body": "{\\"patient_name\\": \\"⟦Oana Halmagyi⟧\\", \\"ward\\": \\"Rose\\"}"',
        "{'surname': '⟦Brzozowska⟧', 'dob': '⟦1951-02-14⟧', 'active': True}",
        '{"nombre": "⟦Candela⟧", "primer_apellido": "⟦Ruipérez⟧", "nif": "⟦29606623B⟧"}',
        '{"order": {"number": "⟦BR-5540-88213⟧", "state": "LOST"}}',
        '{"kinderen": [{"roepnaam": "⟦Yassir⟧", "leeftijd": ⟦4⟧}, {"roepnaam": "⟦Hajar⟧", "leeftijd": ⟦7⟧}]}',
        '{"환자명": "⟦선우덕자⟧", "나이": "⟦60세⟧", "병원": "⟦수원새빛병원⟧"}',
        'curl -d \'{"fullName": "⟦Wanjiru Mutua⟧"}\' https://api.example.com',
    ),
    "yaml": (
        "owner:\n  name: ⟦Cordelia Pemberton⟧\n  email: ⟦cordelia@example.org⟧\nimage: nginx\n",
        "contacts:\n- first_name: ⟦Mele⟧\n  mobile: ⟦021 408 9172⟧\n- first_name: ⟦Sione⟧\n",
        "서버:\n  계정: ⟦hosik.ma⟧\n알림:\n  담당자: ⟦마호식⟧\n  전화: ⟦064-745-3381⟧\n",
    ),
    "settings": (
        '[params.author]\nname = "⟦Cordelia Pemberton⟧"\n\n[deploy]\nname = "production"\n',
        "ansible_user=⟦pbrigandi⟧\nansible_port=2207\n",
        'ssid="⟦TheOkwuosas_5G⟧"\npsk="⟦jollof&Plantain77⟧"\n',
        "init-author-name=⟦Aroha Ngata⟧\n",
    ),
    "tables": (
        "nhs_no,surname,forename,dob,age,gp_practice\n"
        "⟦629 481 7358⟧,⟦Akintola⟧,⟦Bisi⟧,⟦14/02/1951⟧,⟦74⟧,⟦Larkfield Surgery⟧\n"
        '⟦714 093 8253⟧,⟦de Souza⟧,"⟦Hilário⟧",⟦05/12/1962⟧,⟦62⟧,⟦Moor Lane Centre⟧\n',
        "Bay | Plate | Driver\n1 | ⟦LK23 VTO⟧ | ⟦Siân Llewellyn-Rees⟧\n2 | ⟦YD71 RRA⟧ | ⟦Obi⟧\n",
        "| Name | Email |\n| --- | --- |\n| ⟦Zofia Munro⟧ | ⟦zofia@example.org⟧ |\n",
        "工号,姓名,部门,手机\n⟦A1029⟧,⟦欧阳振东⟧,采购部,⟦15208833417⟧\n",
        "INSERT INTO tenants (id, full_name, mobile) VALUES\n (3301, '⟦Agnieszka Brzozowska⟧', '⟦+48 601 274 938⟧'),\n"
        " (3302, '⟦Seán O''Dea⟧', NULL);",
        "employee         start      desk phone\n⟦Nomvula Dlamini⟧  monday     ⟦031 904 2286⟧\n⟦Duc Anh Pham⟧     friday     ⟦031 904 2287⟧\n",
    ),
    "code": (
        'const patientName = "⟦Aaliyah Renwick⟧"; const title = "Chart";',
        'user = User(first_name="⟦Temitope⟧", last_name="⟦Fashanu⟧", role="admin")',
        'String ownerName = "⟦Gethin Prosser⟧";',
        'customer_name: str = "⟦Yewande Balogun⟧"',
        'p.setFirstName("⟦Zanele⟧"); p.setTitle("Chart");',
        'df = DataFrame({"Name": ["⟦Zanele Mokoena⟧", "⟦Tom Abara⟧"], "City": ["⟦Durban⟧", "⟦Leeds⟧"]})',
        "UPDATE clients SET phone = '⟦0262 41 77 08⟧' WHERE last_name = '⟦Hautefeuille⟧';",
    ),
    "tags": (
        '<add key="MailPassword" value="⟦Tulip&Fog_3⟧" />',
        "<employee><firstName>⟦Kalani⟧</firstName><city>⟦Hilo⟧</city></employee>",
        "<trk><name>morning loop</name><author><name>⟦Kalani Makoa⟧</name></author></trk>",
        '<input name="tenant" value="⟦Seonaid MacKinnon⟧"><input name="colour" value="Blue Green">',
        '<person givenName="⟦Bisi⟧" familyName="⟦Akintola⟧"/>',
    ),
    "cards": (
        "BEGIN:VCARD\nVERSION:3.0\nN:⟦Dlamini⟧;⟦Nomvula⟧;⟦Grace⟧;;\nFN:⟦Dr Nomvula Grace Dlamini⟧\nORG:⟦Khanya Clinic⟧\n"
        "TEL;TYPE=CELL:⟦+27 82 551 0947⟧\nEND:VCARD",
        "PID|1||⟦MRN12345⟧^^^HOSP||⟦Mokoena⟧^⟦Zanele⟧||⟦19840312⟧|F|||⟦9 Lime Close⟧^^⟦Durban⟧^^4066||⟦(031)9042286⟧\n",
        'BEGIN:VEVENT\nORGANIZER;CN="⟦Perihan Aksoy⟧":mailto:x@example.org\nSUMMARY:Stand-up\nEND:VEVENT',
        "dn: uid=⟦bthapa⟧,ou=people\ncn: ⟦Bishnu Thapa⟧\nsn: ⟦Thapa⟧\nmail: ⟦bishnu.thapa@example.org⟧\n",
    ),
    "forms": (
        "Name of injured:   ⟦Yevhen Kostiuchenko⟧\nDate of birth:     ⟦22.06.1994⟧        Age: ⟦31⟧\nEmployer:          ⟦Brackenhurst Timber Ltd⟧, yard\n",
        "Patient: ⟦BERMÚDEZ OCHANDO, Rocío⟧   NHC: ⟦00448127⟧\n",
        "Caller: ⟦Temitope Fashanu⟧ (⟦tfashanu2⟧), Accounts",
        "氏　　名：⟦九十九　遥香⟧\n生年月日：⟦平成３年７月２日⟧\n勤務先：⟦株式会社とやま包材⟧\n",
        "आवेदक का नाम: ⟦गेंदालाल अहिरवार⟧\nजन्म तिथि: ⟦०५/०८/१९६८⟧\n",
        "الاسم رباعيًا: ⟦ماريان عزمي بشاي جرجس⟧\nجهة العمل: ⟦مدرسة الأمل⟧\n",
        "Заявитель: ⟦Хлебодаров Никодим⟧ (⟦n.hlebodarov⟧), каб. 417",
        "Tenant(s): ⟦Zanele Mokoena⟧ and ⟦Tom Abara⟧\nRent: 900",
        "Present: ⟦D. Featherstonhaugh⟧ (chair), ⟦Parveen Sandhu⟧, ⟦Gethin⟧\n",
    ),
}

STAYS = (
    '{"name": "lodash", "version": "4.17.21", "author": "string", "license": "MIT", "owner": "platform-team"}',
    '{"name": "React Native", "description": "A framework", "keywords": ["ios", "android"]}',
    '{"type": "object", "properties": {"firstName": {"type": "string"}, "email": {"type": "string", "format": "email"}}}',
    '{"first_name": "{{first_name}}", "password": "<your password>", "phone": null, "city": "string"}',
    '{"user": {"name": "John Doe", "id": 42, "role": "admin"}}',
    '{"title": "Emma", "author": "Jane Austen", "year": 1815, "publisher": "John Murray"}',
    '{"en": "Hello", "de": "Hallo", "es": "Hola", "name": "Greeting"}',
    "services:\n  web:\n    image: nginx:latest\n    container_name: web\n    user: root\n    environment:\n      POSTGRES_USER: postgres\n",
    "apiVersion: v1\nkind: Service\nmetadata:\n  name: Hello Service\n  labels:\n    owner: backend\n",
    "name: CI\non: [push]\njobs:\n  build:\n    name: Build And Test\n    runs-on: ubuntu-latest\n",
    "name,price,city\nBlue Lamp,12.50,Berlin\nGreen Chair,40.00,Paris\n",
    "river,continent,length_km\nNile,Africa,6650\nAmazon,South America,6400\n",
    "Country | Capital | Population\n--- | --- | ---\nFrance | Paris | 68\nSpain | Madrid | 48\n",
    "CREATE TABLE users (id INT, name VARCHAR(60) DEFAULT 'Unknown', email VARCHAR(80), city TEXT DEFAULT 'Berlin');",
    "SELECT name, city FROM users WHERE name = ? AND email = :email ORDER BY last_name;",
    "class User:\n    name: str\n    first_name: Optional[str] = None\n    email: str = ''\n",
    'user = get_user(name=name, email=email, password=password)\npassword = getpass("Password: ")',
    "<name>MyApp</name><version>1.0</version><groupId>org.example</groupId>",
    '<input type="text" name="firstName" placeholder="First name" id="firstName"><label for="email">Email</label>',
    '<meta name="author" content="Acme Documentation Team">',
    "@book{knuth1997, author = {Knuth, Donald E.}, title = {The Art of Computer Programming}}",
    "Dear Hiring Manager,\n\nI apply.\n\nSincerely,\n[Your Name]",
    "Dear Customer,\nthank you.\nBest regards,\nThe Support Team",
    "Hi ChatGPT, what is the capital of Australia?",
    "I'm German and I'm Happy to help. I am Currently learning.",
    "Wir sitzen im Wohnzimmer, er ist im Bad. Ich bin Arzt, kein Anwalt.",
    "Liebe Nachbarn,\nam Freitag ist Flohmarkt.\nViele Grüße\nIhre Hausverwaltung",
    "Q: What is it?\nA: A lamp.\nQ: Why?\nA: Light.\n",
    "User: hello\nAssistant: hi\nUser: bye\nAssistant: bye\n",
    "Note: the manager: he left. Warning: age: unknown. Time: 10:42, ratio 3:4, see http://localhost:8080/users?id=1",
    "Agenda:\n- Introduction: Project Overview\n- Owner: Marketing\n- Status: Open\n- Location: Room 3\n",
    "User-Agent: Mozilla/5.0\nHost: localhost\nFrom: 2020\nTo: 2024\n",
    "[10:00] ERROR disk: full\n[10:01] WARN disk: slow\n[10:02] INFO disk: ok\n",
    "10:00:01 payment-service: started\n10:00:04 queue_worker: took it\n10:00:05 api.gateway: 200\n",
    "build-server_1: ok\ntest-runner_2: failed\nbuild-server_1: ok\ntest-runner_2: failed\n",
    "min_depth: 3\nmax_depth: 9\nmin_depth: 4\nmax_depth: 8\n",
    '{"display_name": "Northern Lamp", "version": 2}',
    "seed, 0x58f824b4fff3f0cf\n588, 0xa501a02586c352bf\n589, 0x71eb2359d9e012f9\n",
    "0x58f824b4fff3f0cf, 0x58f824b4fff3f0ca\n0xa501a02586c352bf, 0x71eb2359d9e012f9\n",
    'printf("Name: %s\\n", name); const user = useAuth(); let owner = this.owner;',
)


def marked(text: str) -> tuple[str, list[str]]:
    """A text without its marks, and the marked parts."""
    return text.replace("⟦", "").replace("⟧", ""), re.findall("⟦(.*?)⟧", text)


def values(text: str) -> list[str]:
    return [text[span.start : span.end] for span in STRUCTURE.find([text])]


@pytest.mark.parametrize("text", [text for texts in FOUND.values() for text in texts])
def test_values_are_found_whole_and_nothing_else(text: str) -> None:
    plain, private = marked(text)
    assert values(plain) == private


@pytest.mark.parametrize("text", STAYS)
def test_keys_code_and_public_values_stay(text: str) -> None:
    assert values(text) == []


def test_types_follow_the_keys() -> None:
    text = '{"patient": "Bisi Akintola", "dob": "1951-02-14", "ssn": "123-45-9876", "plate": "LK23 VTO", "street": "Lime Row 4"}'
    assert [span.type for span in STRUCTURE.find([text])] == [
        "PERSON",
        "BIRTH_DATE",
        "NATIONAL_ID",
        "PLATE",
        "ADDRESS",
    ]


def test_spans_say_text_source_and_score() -> None:
    found = STRUCTURE.find(["nothing", "Patient: Bisi Akintola"])
    assert [
        (span.text, span.start, span.end, span.source, span.privacy_score) for span in found
    ] == [(1, 9, 22, "structure", 1.0)]
    assert found[0].score >= 0.9


def test_it_is_a_registered_detector() -> None:
    assert isinstance(STRUCTURE, Detector)
    assert load_detector("structure").name == "structure"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("customerFirstName", "given"),
        ("date-of-birth", "birth"),
        ("Geburtsdatum", "birth"),
        ("nom du client", "full"),
        ("Kundenname", "full"),
        ("patient name", "full"),
        ("name", "name"),
        ("file_name", None),
        ("hostname", None),
        ("お客様名", "role"),
        ("पिता का नाम", "full"),
        ("таб_номер", "id"),
        ("IP Address", "ip"),
        ("max_age", None),
        ("userAgent", None),
        ("status", None),
    ],
)
def test_keys_mean_what_their_words_say(key: str, kind: str | None) -> None:
    assert classify_key(key) == kind


def test_keys_are_folded_alike() -> None:
    assert (
        fold_key("dateOfBirth")
        == fold_key("DATE_OF_BIRTH")
        == fold_key("Date-of-birth")
        == "date of birth"
    )
    assert fold_key("Prénom") == fold_key("PRENOM")
    assert is_person("customers")
    assert not is_person("customerService")


def test_a_document_stays_valid_when_its_strings_are_replaced() -> None:
    document = {
        "employees": [
            {"firstName": "Ondřej", "note": 'says "hi"', "ids": [1, 2]},
            {"fullName": "Bisi O'Neil"},
        ],
        "n": 3,
    }
    for indent in (None, 2):
        text = json.dumps(document, indent=indent, ensure_ascii=False)
        for span in reversed(STRUCTURE.find([text])):
            text = f"{text[: span.start]}<{span.type}_1>{text[span.end :]}"
        assert json.loads(text)["employees"][1]["fullName"] == "<PERSON_1>"


def test_broken_input_never_fails() -> None:
    rng = random.Random(7)
    texts = [marked(text)[0] for texts in FOUND.values() for text in texts] + list(STAYS)
    signs = "{}[]()\"'`,:;=|<>\\/\n\t -#@\u200b“：【】0aÉ漢"
    for _ in range(1500):
        text = rng.choice(texts)
        at = rng.randrange(len(text) + 1)
        mangled = (
            text[:at]
            + "".join(rng.choices(signs, k=rng.randrange(6)))
            + text[rng.randrange(len(text) + 1) :]
        )
        spans = STRUCTURE.find([mangled])
        assert all(0 <= span.start < span.end <= len(mangled) for span in spans)
        assert all(a.end <= b.start for a, b in pairwise(spans))


PIECES = (
    *(
        "{",
        "[",
        "(",
        '"',
        "'",
        "`",
        ":",
        "=",
        ",",
        "|",
        "<",
        ">",
        "\\",
        '\\"',
        "\n",
        "\n\n",
        "\t",
        " ",
        "-",
        "# ",
        "：",
        "【",
    ),
    *(
        '{"a":',
        "a: b\n",
        "a=b ",
        "name: Anna Lee\n",
        "a,b\n",
        "a | b\n",
        "<a>",
        "<a b='c'>",
        "</a>",
        "- a:\n",
        " a:\n",
    ),
    *(
        "Dear A",
        "Dear Anna Lee ",
        "From: a <",
        "On a, 1 ",
        "[10:42] ",
        "INSERT INTO a (b) VALUES (",
        "N:;",
        "A. ",
        "Anna ",
        "王",
        "가",
        "नाम ",
        "ا",
    ),
    *(
        "my name is ",
        "I'm A",
        "7",
        "7 ",
        "+",
        "é",
        "\u200b",
        "BEGIN:V\nN:a;",
        "PID|",
        "PID|a^\n",
        "Name: Anna Lee and ",
        "x'y\"z",
        "\\'",
        "a(b",
        '"a": "b", ',
        "1.1.1,",
        "_a",
        "\\name{",
        "\\name{a}",
        '("a.password", ',
        "\nADR:;;a;",
        "#Fields: a b\n",
        "name: a\nvalue: b\n",
        ". D'Aa ",
        "<key>a</key>",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("piece", PIECES)
def test_time_is_linear_in_the_text(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        STRUCTURE.find([text])
        return time.process_time() - started

    seconds(2_000)
    short = max(min(seconds(20_000) for _ in range(2)), 0.004)
    assert seconds(160_000) < 8 * 3.5 * short


def test_what_somebody_is_stays_behind_the_name() -> None:
    assert values("Manager: Fenna Zijlstra (Planning)\n") == ["Fenna Zijlstra"]
    assert values("Manager: Fenna Zijlstra, Planning\n") == ["Fenna Zijlstra"]
    assert values("Manager: Zijlstra, Fenna\n") == ["Zijlstra, Fenna"]
    assert values("Manager: Fenna (Fen)\n") == ["Fenna (Fen)"]
    assert values("Assignee: Unassigned\nReporter: Anna Weiss\n") == ["Anna Weiss"]


def test_what_stands_for_nobody_behind_a_key_is_no_more_private_than_elsewhere():
    (span,) = STRUCTURE.find(["ADMIN_MAIL=user@example.com"])
    assert (span.type, span.privacy_score) == ("EMAIL", 0.0)
    (span,) = STRUCTURE.find(["ADMIN_MAIL=okonkwo@example.com"])
    assert span.privacy_score == 1.0
    assert not STRUCTURE.find(['iban: "NL00 BANK 0000 0000 00"'])


@pytest.mark.parametrize("name", ["travis", "jovyan", "dev", "airflow"])
def test_a_login_behind_its_key_may_be_a_name_of_services_elsewhere(name):
    text = f'{{"user": {{"email": "a.b@example.net", "username": "{name}"}}}}'
    spans = Structure().find([text])
    assert name in [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user: Where are errors handled?", []),
        ("user: Write tests\nassistant: ok\nuser: Refactor it\nassistant: Done", []),
        ("user: Zeig mir die Tests", []),
        ("user: Napisz testy", []),
        ("user: Where", ["Where"]),
        ("user: Kowalska", ["Kowalska"]),
        ("user: Berta logged in\nassistant: ok", ["Berta"]),
        ("user: anna.k left\nassistant: ok", ["anna.k"]),
        ("user: Kowalczyk logged in from work", ["Kowalczyk"]),
    ],
)
def test_the_first_word_of_what_a_user_says_is_no_login(text: str, found: list[str]) -> None:
    assert [text[span.start : span.end] for span in STRUCTURE.find([text])] == found
