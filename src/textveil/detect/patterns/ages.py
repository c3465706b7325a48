"""Ages: ages and dates of appointments, recognised by nearby words.

In: nothing. Out: `RULES`.
Not here: dates of birth (`times`); ages in JSON, CSV and the like, which have keys (`keyvalue`).
"""

from textveil.detect.patterns.rules import Expression, Rule, build_context
from textveil.detect.patterns.times import DATE, is_day

_N = r"(?P<value> (?<!\d) (?:1[01]\d | [1-9]\d | \d) )"
_KIN = r"""(?: kids? | child | daughter | son | mother | mum | mom | father | dad | wife | husband | sister | brother
    | grandma | grandpa | grandmother | grandfather | gran | uncle | aunt | niece | nephew | cousin | partner |
      boyfriend
    | girlfriend | bf | gf | fianc[ée]e? | baby | twins? | boy | girl | patient | pt | client | tochter | sohn |
      kind | mutter | vater
    | oma | opa | frau | mann | bruder | schwester | tante | onkel | neffe | nichte | patientin | fille | fils |
      mère | père
    | femme | mari | frère | sœur | soeur | patiente | hij[oa] | madre | padre | esposa | marido | hermano |
      hermana | abuel[oa]
    | niet[oa] | paciente | filh[oa] | mãe | pai | esposo | irmã | irmão | avó | avô | net[oa] | figli[oa] |
      moglie | marito
    | fratello | sorella | nonn[oa] | nipote | paziente | dochter | zoon | moeder | vader | vrouw | broer | zus
      | dochtertje
    | zoontje | córka | syn | matka | mama | ojciec | żona | mąż | siostra | brat | babcia | dziadek | дочь |
      дочка | сын | мать
    | мама | отец | папа | муж | жена | бабушка | дедушка | брат | сестра | oğlum | kizim | annem | babam | eşim
      | con[ ]trai
    | con[ ]gái | mẹ | bố | chồng | vợ | bé | mrs? | ms | miss | dr )"""
_HIS = r"(?: my | our | his | her | their | this | s?he (?:'s)? | mrs? | ms | miss | patient | pt | client | me | i )"
_OLD = r"[ \-]? (?: years? | yrs? | months? | weeks? )? [ \-]? old"
_ONES = "one|two|three|four|five|six|seven|eight|nine"
_SPELLED = rf"""(?: ten | eleven | twelve | thirteen | fourteen | fifteen | sixteen | seventeen | eighteen | nineteen
    | (?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety) (?: [ \-] (?:{_ONES}) (?!\w) )? )"""
_UNITS = r"""(?: Jahre(?:[ ]alt)? | J\. | jr\.? | jaar(?:[ ]oud)? | ans | años | anos | anni | lata? | l\. | лет | года?
    | г\. | yaşinda | tuổi | वर्ष | साल | سنة | سنوات | عام(?:ا|ًا|اً)? | aa? )"""
_THINGS = r"""(?! [ ]? (?: whisk(?:e?y) | scotch | wine | house | home | building | car | bug | code | tree |
      company | laptop | computer
    | phone | system | software | version | church | bridge | tradition | problem | roof | boiler | marriage |
      relationship | dog | cat ) )"""

_CONTEXT_GUARD = "figures that only the words beside them tell of"

AGES = (
    Rule(  # I am 34, not: explain like I'm 5
        "AGE",
        Expression(
            rf"""(?<!\w) (?<! (?:like|if|though|pretend|imagine|assume|say|that|when|until|once|eli|whether)[ ])
            (?! im[ ]\d{{1,3}}\. )
            (?: i['’]?m | i[ ]am | i[ ]just[ ]turned | s?he['’]s | s?he[ ]is | s?he[ ]was | s?he[ ]turned | s?he[ ]turns
            | i[ ]turn | i[ ]turned | my[ ]age[ ]is | i['’]ll[ ]be ) [ ] (?: only[ ] | just[ ] | now[ ] | currently[ ] |
            almost[ ] | nearly[ ] | a[ ] | an[ ] )?
            {_N} (?= [mf]\b | [ ]?(?:$|[.,;!?)\n]) (?!\d) | [ \-](?: year | yr | yo\b | y/o | and[ ](?!a\b) |
            but | male | female | now | so | with[ ]a | who | living
            | from | working | old | man | woman | years ) )"""
        ),
        score=0.85,
        digits=1,
        triggers=(
            "i'm ",
            "i am ",
            "im ",
            "turned ",
            "turns ",
            "turn ",
            "age is ",
            "ll be ",
            "he's ",
            "he is ",
            "he was ",
        ),
        window=(16, 60),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # a 65-year-old, die 65-jährige Patientin, 34-letnia pacjentka, 58-летний пациент
        "AGE",
        Expression(
            r"""(?<![\w.,]) (?P<value> [1-9]\d?|1[01]\d ) [ ]?-?[ ]?
            (?: jährige[rnms]? | jarige | letni[aąe]?j?\p{L}{0,3} | летн\p{L}{2,3} ) [ ] (?: \p{L}{1,12}[ ] )?
            (?: pat\. | patient | frau | mann(?!sch) | sohn | tochter | mutter | vater | kind(?!er) | junge | mädchen
            | schüler | enkel | bruder | schwester | man(?!\w) | vrouw | jongen | meisje | zoon | dochter | moeder
            | patiënt | pacjent | kobiet | mężczyzn | syn(?!\w) | córk | matk | ojc | пациент | женщин | мужчин
            | сын | дочер | мать | отец | бабушк )"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=("jährig", "jarig", "letni", "летн"),
        window=(8, 60),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # her 40th birthday, zum 60. Geburtstag, 50. urodziny, cumple 30, wird 64
        "AGE",
        Expression(
            r"""(?<![\w.,]) (?P<value> [1-9]\d?|1[01]\d ) (?: st | nd | rd | th | e | ste | \. | ° | º | -?[ей] )? [ ]
            (?: birthday | b-?day | geburtstag | verjaardag | compleanno | urodzin | yaş[ ]günü | doğum[ ]günü
            | день[ ]рождения )
            | (?<!\w) (?: cumple | cumplo | kończy | skończył[aę]? | исполн(?:яется|илось|ится) | compie | compio ) [ ]
            (?P<value> [1-9]\d?|1[01]\d ) (?!\w | [.,:/]\d | [ ]?% )"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=(
            *(
                "birthday",
                "bday",
                "b-day",
                "geburtstag",
                "verjaardag",
                "compleanno",
                "urodzin",
                "günü",
                "рождения",
            ),
            *("cumpl", "kończy", "skończył", "исполн", "compi"),
        ),
        window=(16, 24),
    ),
    Rule(  # di anni 70; senior citizen of 72 years; umr 39; عندها 14 سنة
        "AGE",
        Expression(
            r"""(?<!\w) (?: (?:di|d['’]) [ ]? anni[ ] (?P<value> [1-9]\d?|1[01]\d ) (?!\w)
            | (?:citizen|lady|gentleman|man|woman|girl|boy|child) [ ] of [ ] (?P<value> [1-9]\d?|1[01]\d )
              (?= [ ]years?(?!\w) (?![ ]experience) )
            | (?:عنده|عندها|عندي|عمره|عمرها|عمري|يبلغ|تبلغ|أبلغ)[ ] (?:من[ ]العمر[ ])?
              (?P<value> [1-9]\d?|1[01]\d ) [ ] (?: سنة | سنوات | سنين | عام\p{M}*(?:ا\p{M}*)? | ربيع ) (?!\p{L})
            | umr [ ]?[:=]?[ ] (?P<value> [1-9]\d?|1[01]\d ) (?!\w) )"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=("anni ", " of ", "عند", "عمر", "بلغ", "umr"),
        window=(24, 40),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # my 73-year-old mother; she is 4 years old
        "AGE",
        Expression(
            rf"(?<!\w) (?: {_HIS} | {_KIN} ) (?!\w) [^.\n;?]{{0,40}}? {_N} (?: {_OLD} | [ ]?y/?o\b | [ ]?y\.o\."
            rf" ) (?!\w) {_THINGS}"
        ),
        score=0.85,
        digits=1,
        triggers=("old", "yo", "y/o", "y.o."),
        window=(80, 40),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # aged 47; Age: 31
        "AGE",
        Expression(
            rf"""(?: (?<!
            (?:children|people|kids|students|boys|girls|adults|men|women|those|persons|users
             |patients|participants|anyone)[ ])
            (?<!\w) aged [ ] | (?<![\w"'.]) (?-i:Age|AGE) (?:[ ]?/[ ]?sex)? [ ]? [:=] [ ]{{0,12}} | (?<!\w) (?:
            alter | edad | idade | età | leeftijd
            | wiek | yaş | yaşi | tuổi | возраст | âge ) [ ]? : [ ]{{0,4}} |
            (?:年龄|年齢|나이|연령|العمر|उम्र|आयु) [ ]? [:]? [ ]? ["']? )
            {_N} (?! \d | [ ]?[\-+] | [ ](?:to|and|or|bis)[ ](?:\d|over|above|older|up) | [ ]?% | [.,]\d |
            [ ]\p{{L}}\w*[ ]\d )"""
        ),
        score=0.85,
        digits=1,
        keep_scripts=True,
        triggers=(
            "aged ",
            "age",
            "alter",
            "edad",
            "idade",
            "età",
            "leeftijd",
            "wiek",
            "yaş",
            "tuổi",
            "возраст",
            "年",
            "나이",
            "연령",
            "العمر",
            "उम्र",
            "आयु",
        ),
        window=(28, 40),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # our daughter Zofia (6); the kids (11 and 8)
        "AGE",
        Expression(
            rf"(?<!\w) {_KIN} (?!\w) (?: [ ] (?-i:\p{{Lu}})[\p{{L}}\-]{{1,20}} ){{0,2}} (?: [ ]\( [ ]? | ,[ ] )"
            rf" (?: (?:about|ca\.?|fast|aged|di|de|von)[ ] )?"
            rf" {_N} (?= [ ]? [),] (?!\d) | [ ](?:and|und|et|y|e|i|en)[ ]\d{{1,2}}[ ]?\) )"
        ),
        score=0.85,
        digits=1,
        keep_scripts=True,
        triggers=("(", ","),
        window=(70, 20),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # Xiomara Bustillo, 36, ...; R.K., 41, accountant; Edeltraud Winter (87, ...
        "AGE",
        Expression(
            r"(?<! [\p{L}\-] | \d[ ] ) (?-i: (?! The | In | On | Figure | Table | Chapter | Section | Page |"
            r" Part | Volume | Article | Act | Psalm | Room | New | Los | San | Abb | Kapitel )"
            r" (?: \p{Lu}\p{Ll}{1,20} [ ] \p{Lu}[\p{Ll}'\-]{1,20}(?:\p{Lu}\p{Ll}{1,20})? | \p{Lu}\.[ ]?\p{Lu}\."
            r" ) ) (?: ,[ ] | [ ]\( )"
            r" (?P<value> [2-9]\d ) (?= , [ ] (?: \p{Ll}{3} | \d{1,2}[ ] | (?:CPF|NIF|DN|DOB|SSN|AHV)\b | Pflege ) )"
        ),
        score=0.8,
        digits=2,
        triggers=(",", "("),
        window=(60, 12),
    ),
    Rule(  # me (29F), my bf (31M); 58M, known T2DM
        "AGE",
        Expression(
            r"(?<!\d[ ]?°?[cf][ ]) (?<![\w.]) \( (?P<value> (?: \d\d [ ]?[/]? [mf] | [mf] [ ]?[/,]? [ ]? \d\d ) ) \)"
            r" | (?m) (?: ^ | (?<=^[a-z]:[ ]) | (?<=(?:pt|patient|i|me|my[ ]\w{1,12})[ ]) ) (?P<value> \d\d [ ]?"
            r" [mf] ) (?= [, ] [ ]? (?: known | with | w/ | c/o | pres | hx | pmh | ref | adm | here | and | ,) )"
            r" | (?<!\w) (?P<value> \d\d ) [ ]? (?: y/?o | yr[ ]old | jr | j\.| a ) (?= ,[ ]\p{L} | [ ][mf]\b |"
            r" [ ](?:male|female)\b )"
        ),
        score=0.85,
        digits=2,
        triggers=("m", "f", "yo", "y/o", "jr", "j."),
        guard=_CONTEXT_GUARD,
    ),
    Rule(  # other languages of Europe: a person, a verb or a bracket before, the unit behind
        "AGE",
        Expression(
            r"""(?<!\w) (?:
            (?:ich[ ]bin|bin|er[ ]ist|sie[ ]ist|ist|wird|werde|ik[ ]ben|is)[ ](?:jetzt[ ]|erst[ ]|schon[ ]|nu[ ])?
            | j'ai[ ] | (?:il|elle|qui|fils|fille|mère|père|maman|papa)[ ]a[ ] | âgée?s?[ ]de[ ] |
            patiente?[ ]de[ ] | (?:femme|homme|garçon|fille|fils)[ ]de[ ]
            | tengo[ ] | tiene[ ] | tenho[ ] | tem[ ] |
            (?:hij[oa]|niñ[oa]|paciente|mujer|varón|señora?|filh[oa]|menin[oa]|senhora?)(?:[ ]\p{L}{2,15})?,?[ ]de[ ]
            | (?<=\p{L},[ ])de[ ]
            | ho[ ] | ha[ ] | fa[ ] | compie[ ] |
            (?:bambin[oa]|figli[oa]|paziente|signora?|donna|uomo)(?:[ ]\p{L}{2,15})?,?[ ]di[ ]
            | mam[ ] | ma[ ] | (?:мне|ему|ей|маме|папе|сыну|дочке|дочери|мужу|жене)[ ](?:уже[ ]|всего[ ])? |
            в[ ]возрасте[ ] )
            (?P<value> [1-9]\d?|1[01]\d ) [ ] (?: Jahre(?:[ ]alt)? | jaar(?:[ ]oud)? | ans | años | anos | anni
            | (?<= (?<!\d) 1[ ] ) (?: Jahr[ ]alt | an | año | ano | anno | rok )
            | lat | lata | лет | года? ) (?!\w) (?! [ ](?:d['e]|de\b|di\b|esperienza|erfahrung|назад|опыта
            | doświadczenia|temu|lang|lange|geleden|fa\b|après|avant|van|garantie|experienc) )"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=(
            *(" jahre", " jaar", " ans", " años", " anos", " anni", " lat", " лет", " год"),
            *("1 jahr alt", "1 an", "1 año", "1 ano", "1 rok"),
        ),
        window=(50, 40),
    ),
    Rule(  # (31 ans), – 31 ans –; (пн, 7 лет)
        "AGE",
        Expression(
            r"""(?: (?<= \p{L} \.? [ ]? [(,،、] [ ]? | \d [ ] \( | \( \p{L}{1,12}, [ ] | \p{L}\., [ ] )
              (?P<value> [1-9]\d?|1[01]\d ) [ ] """
            rf"""{_UNITS} (?= [ ]? [),،、]
              | (?<= \d\d [ ] \p{{L}}{{1,7}} \.? ) [ ]? (?: [|·;\n] | $ | (?:[\-·|]|и|y|et|und|i|ve)[ ] ) )
            | (?<= \p{{L}} [ ] - [ ]? ) (?P<value> [1-9]\d?|1[01]\d ) [ ] {_UNITS} (?= [ ]- ) )"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=(
            " jahre",
            " j.",
            " jr",
            " jaar",
            " ans",
            " años",
            " anos",
            " anni",
            " lat",
            " l.",
            " лет",
            " год",
            " г.",
            " a",
            " yaş",
            " tuổi",
            " वर्ष",
            " साल",
            " سن",
            " عام",
        ),
        window=(30, 30),
    ),
    Rule(  # 34岁, 34歳, 34세, 34 tuổi, 34 yaşında, عمره 34, 34 वर्षीय
        "AGE",
        Expression(
            r"""(?<! \d[\-~到至] | \d | 满 | 滿 | 未 | 大于 | 小于 | 超过 | 不到 | trên[ ] | dưới[ ] | từ[ ] |
            đủ[ ] | trẻ[ ] | em[ ] ) (?P<value> [1-9]\d?|1[01]\d ) (?:
              [ ]?[岁歲](?! 以|的?(?:孩子|儿童|宝宝|小孩|人群)|之?[前后後]|[到至\-~] )
            | [ ]?[歳才](?! 以|未満|児|の(?:子|人)|から|まで|頃|[~\-] )
            | [ ]?[세살](?! 기|대|트|계|이상|이하|미만|부터|까지|아동|아이|용|[ ]?(?:이상|이하|미만) )
            | [ ]tuổi (?! [ ]trở ) | [ ]yaşin(?:da|dayim|daki)(?!\w) | [ ](?:वर्षीय |
            साल[ ](?:का|की|के)[ ](?:हूँ|हूं|है|था) ) )
            | (?: عمر[هيكا]{0,2} | البالغ[ ]من[ ]العمر | عمرها ) [ ] (?P<value> [1-9]\d?|1[01]\d ) (?!\d)"""
        ),
        score=0.8,
        digits=1,
        keep_scripts=True,
        triggers=("岁", "歲", "歳", "才", "세", "살", " tuổi", " yaşin", " वर्षीय", " साल", "عمر"),
        window=(24, 24),
    ),
)

_DAY = r"""(?: mon|tue|wed|thu|fri|sat|sun|\p{L}{2,9}day|\p{L}{4,7}tag|mittwoch|mo|di|mi|do|fr|sa|so|lundi|mardi
    |mercredi|jeudi|vendredi|samedi|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo|segunda|terça|quarta|quinta|sexta
    |(?:segunda|terça|quarta|quinta|sexta)-feira|lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica|maandag|dinsdag
    |woensdag|donderdag|vrijdag|zaterdag|zondag|ma|wo|vr|za|zo|poniedziałek|wtorek|środę|środa|czwartek|piątek|sobotę|sobota
    |niedzielę|pazartesi|sali|çarşamba|perşembe|cuma|cumartesi|pazar|thứ[ ]\p{L}{2,4}|понедельник|вторник|среду|четверг
    |пятницу|субботу|воскресенье|пн|вт|ср|чт|пт|сб|вс|الأحد|الاثنين|الإثنين|الثلاثاء|الأربعاء|الخميس|الجمعة|السبت
    |सोमवार|मंगलवार|बुधवार|गुरुवार|शुक्रवार|शनिवार|रविवार ) \.?"""
_VISITS = (
    "admission|admitted|admitted on|admission date|date of "
    "admission|discharge|discharged|discharged on"
    "|discharge date"
    "|next visit|next appointment|follow up|follow up on|review on|rev|operation on|op on|scan "
    "on|biopsy on"
    "|due date is|edd"
    "|lmp|baby due|funeral|funeral is|anniversary on|died on|date of death|passed away "
    "on|hired|hire date"
    "|date of joining|doj"
    "|dose 1|dose 2|vaccinated on|viewing on|hearing on|wedding "
    "on|aufnahme|aufn|aufnahmedatum|entlassung|entl"
    "|entlassen am"
    "|aufgenommen am|op termin|nächster termin|kontrolltermin|kontrolle am|termin|termin "
    "auf|wiedervorstellung"
    "|eintritt"
    "|eintrittsdatum|beerdigung|trauerfeier|hochzeit am|geburtstermin|geburtstermin "
    "ist|entbindungstermin"
    "|verstorben am"
    "|gestorben am|sterbedatum|todestag|geimpft am|hospitalisé|hospitalisée|hospitalisé "
    "le|hospitalisée le|revu|revue"
    "|convoqué|convoquée|entretien prévu|opéré|opérée|décédé|décédée|décès|terme "
    "prévu|ddr|obsèques|embauché"
    "|embauchée"
    "|prochain rendez vous|rendez vous|ingreso|fecha de ingreso|ingresó|ingresa|fecha de "
    "alta|alta el|control el"
    "|próximo control|próxima visita|próxima cita|cita|turno|revisión el|cirugía|operación "
    "el|entrevista el|falleció"
    "|boda|el funeral es|fpp|fum|internado|internada|internação|data de admissão|alta "
    "em|cirurgia|faleceu|falecimento"
    "|audiência|entrevista|perícia|ricovero|ricoverato|ricoverata|data "
    "ricovero|dimissione|dimesso|dimessa"
    "|prossima visita|controllo|controllo ambulatoriale|biopsia|intervento|prevista per|previsto "
    "per"
    "|sopralluogo|colloquio"
    "|udienza|deceduto|deceduta|assunto|assunta|opname|opgenomen|opnamedatum|ontslag|afspraak|controle"
    "|operatie op|overleden"
    "|hoorzitting|bruiloft|uitgerekend|verzet "
    "naar|przyjęty|przyjęta|przyjęcie|wypis|wypisany|wypisana|kontrola"
    "|wizyta"
    "|wizyta potwierdzona|termin wizyty|zabieg|zgon|zmarł|zmarła|ślub|pogrzeb|zatrudniony "
    "od|zatrudniona od|spotkanie"
    "|yatiş|yatiş tarihi|çikiş tarihi|taburcu|taburculuk|kontrol|ameliyat|muayene|vefat|işe "
    "giriş|düğün"
    "|nhập viện|ra viện"
    "|xuất viện|vào viện|vào làm|khám lại|hẹn khám|phẫu thuật|ngày mất|đám cưới|hẹn tái "
    "khám|入院|出院|就诊|就診|复查"
    "|手术时间|手術日|入职|离职|婚礼|忌日|预产期|面试|退院|来院|受診日|次回|予定日|出産予定|入社|命日|往診|面談"
    "|입원|퇴원"
    "|수술|진료|예약|다음 예약|내원|입사일|결혼식|예정일|재진|поступил|поступила|госпитализирован|госпитализирована"
    "|выписан"
    "|выписана|выписка|явка|осмотр|следующий приём|следующий прием|прием|дата "
    "смерти|умер|умерла|свадьба|похороны"
    "|собеседование|пдр|заседание|принят на работу|принята на работу|تاريخ الدخول|تاريخ "
    "الخروج|تاريخ التعيين|الموعد"
    "|الموعد القادم|موعدها|موعده|مراجعة|المراجعة|العملية|تأجلت|امتحانها|امتحانه|زفاف|जांच|भर्ती|छुट्टी"
    "|डिस्चार्ज|अगली तारीख"
    "|अगली पेशी|अगला सत्र|ऑपरेशन|नियुक्ति|मृत्यु|अगली विज़िट|टाँके|दोबारा"
)
"""Words for visits, admissions, operations, and other days of one person's life."""
_PERSONAL = (
    _VISITS
    + "|my appointment|your appointment|his appointment|her appointment|appointment on|appointment is"
    "|appt|dentist|orthodontist|physio|optician|see you on"
    "|see her again on|see him again on|see her on|see him on|see them on|talk on|welcoming you "
    "on|my surgery"
    "|her surgery|his surgery|my hearing|court date|my interview|your interview|my exam|my "
    "wedding|our wedding"
    "|ihr termin|mein termin|termin am|termin ist|rdv|rendez vous le|revoir le|mon rendez "
    "vous|cita el"
    "|cita para|mi cita|reunión el|consulta em|consulta no dia|retorno|appuntamento il|visita "
    "il|afspraak op"
    "|mijn afspraak|wizyta|randevu|randevum|lịch hẹn|tái khám|预约|复诊|预産期|予約|次回|受診|예약|приём|на приём"
    "|запись на|موعد|موعدي|अपॉइंटमेंट|remedy the breach by"
)

APPOINTMENTS = (
    Rule(
        "DATE",
        Expression(
            rf"[\s:,]{{0,3}} (?:"
            rf" (?:on|am|auf|den|um|le|el|il|op|dnia|is|ist|em|at|dia|für|for|per|del?|di|na|в|на|vào|ngày|tarihi"
            rf" |günü|:|the|a|al"
            rf" |يوم|بتاريخ|إلى|في|दिनांक|को|{_DAY})[ ,]{{1,2}} | [はがのをはは为為是於于在定은는이가] ){{0,4}}"
            rf" (?P<value> {DATE} | \d{{1,2}}(?:st|nd|rd|th) | \d\d?[./]\d\d?\.?(?=[.,;)\s]|$) ) (?<![.])"
            rf" (?![\w]|[./:\-]\d)"
        ),
        score=0.8,
        check=is_day,
        digits=1,
        adjacent=True,
        keep_scripts=True,
        **build_context(_PERSONAL),
    ),
)

RULES = (*AGES, *APPOINTMENTS)
