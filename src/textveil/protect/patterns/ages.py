"""Ages of persons, and dates of their appointments, told by the words beside them.

In: nothing. Out: `RULES`.
Not here: dates of birth (`times`); ages in JSON, CSV and the like, whose keys tell what they are.
"""

from textveil.protect.patterns.rules import Expression, Rule, words
from textveil.protect.patterns.times import DATE, is_day

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
_THINGS = r"""(?! [ ]? (?: whisk(?:e?y) | scotch | wine | house | home | building | car | bug | code | tree |
      company | laptop | computer
    | phone | system | software | version | church | bridge | tradition | problem | roof | boiler | marriage |
      relationship | dog | cat ) )"""

AGES = (
    Rule(  # I am 34, not: explain like I'm 5
        "AGE",
        Expression(
            rf"""(?<!\w) (?<! (?:like|if|though|pretend|imagine|assume|say|that|when|until|once|eli|whether)[ ])
            (?: i['’]?m | i[ ]am | i[ ]just[ ]turned
            | i[ ]turned | my[ ]age[ ]is | i['’]ll[ ]be ) [ ] (?: only[ ] | just[ ] | now[ ] | currently[ ] |
            almost[ ] | nearly[ ] | a[ ] | an[ ] )?
            {_N} (?= [mf]\b | [ ]?(?:$|[.,;!?)\n]) (?!\d) | [ \-](?: year | yr | yo\b | y/o | and[ ](?!a\b) |
            but | male | female | now | so | with[ ]a | who | living
            | from | working | old | man | woman | years ) )"""
        ),
        score=0.85,
        digits=1,
        signs=("i'm ", "i am ", "im ", "turned ", "age is ", "ll be "),
        reach=(16, 60),
    ),
    Rule(  # my 73-year-old mother; she is 4 years old
        "AGE",
        Expression(
            rf"(?<!\w) (?: {_HIS} | {_KIN} ) (?!\w) [^.\n;?]{{0,40}}? {_N} (?: {_OLD} | [ ]?y/?o\b | [ ]?y\.o\."
            rf" ) (?!\w) {_THINGS}"
        ),
        score=0.85,
        digits=1,
        signs=("old", "yo", "y/o", "y.o."),
        reach=(80, 40),
    ),
    Rule(
        "AGE",
        Expression(
            rf"(?<!\w) {_N} (?: {_OLD} ) [ ] (?: grand(?:ma|pa|mother|father|son|daughter) | mum | mom | dad |"
            rf" daughter | nephew | niece )"
        ),
        score=0.85,
        digits=1,
        signs=("old ",),
        reach=(24, 30),
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
        whole=True,
        signs=(
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
        reach=(28, 40),
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
        whole=True,
        signs=("(", ","),
        reach=(70, 20),
    ),
    Rule(  # ... and 8)
        "AGE",
        Expression(
            rf"(?<= kids | children | sons | daughters | twins | kinder | enfants | hijos | filhos | figli |"
            rf" kinderen) [ ] \( [^()\n]{{0,20}}? \d [ ] (?:and|und|et|y|e|i|en|&) [ ] {_N} \)"
        ),
        score=0.85,
        digits=2,
        signs=("(",),
        reach=(12, 40),
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
        signs=(",", "("),
        reach=(60, 12),
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
        signs=("m", "f", "yo", "y/o", "jr", "j."),
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
            | lat | lata | лет | года? ) (?!\w) (?! [ ](?:d['e]|de\b|di\b|esperienza|erfahrung|назад|опыта
            | doświadczenia|temu|lang|lange|geleden|fa\b|après|avant|van|garantie|experienc) )"""
        ),
        score=0.8,
        digits=1,
        whole=True,
        signs=(" jahre", " jaar", " ans", " años", " anos", " anni", " lat", " лет", " год"),
        reach=(50, 40),
    ),
    Rule(  # (31 ans), – 31 ans –; (пн, 7 лет)
        "AGE",
        Expression(
            r"""(?<= \p{L} [ ]? (?: [(,] | [ ][\-–] ) [ ]? | \( \p{L}{1,12}, [ ] | \p{L}\., [ ] ) (?P<value>
            [1-9]\d?|1[01]\d ) [ ] (?: Jahre(?:[ ]alt)? | J\. | jr\.? | jaar | ans | años | anos
            | anni | lat | l\. | лет | года? | г\. | yaşinda | tuổi | वर्ष | साल | سنة | سنوات | عام(?:ا|ًا|اً)?
            | a) (?= [ ]? [),] | [ ][\-–] | $ )"""
        ),
        score=0.8,
        digits=1,
        whole=True,
        signs=(
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
        reach=(30, 30),
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
        whole=True,
        signs=("岁", "歲", "歳", "才", "세", "살", " tuổi", " yaşin", " वर्षीय", " साल", "عمر"),
        reach=(24, 24),
    ),
)

_PERSONAL = (
    "my appointment|your appointment|his appointment|her appointment|appointment on|appointment is|appt|see you on"
    "|see her again on|see him again on|see her on|see him on|see them on|talk on|welcoming you on|my surgery"
    "|her surgery|his surgery|my hearing|court date|my interview|your interview|my exam|my wedding|our wedding"
    "|ihr termin|mein termin|termin am|termin ist|rdv|rendez vous le|revoir le|mon rendez vous|cita el"
    "|cita para|mi cita|reunión el|consulta em|consulta no dia|retorno|appuntamento il|visita il|afspraak op"
    "|mijn afspraak|wizyta|randevu|randevum|lịch hẹn|tái khám|预约|复诊|预産期|予約|次回|受診|예약|приём|на приём"
    "|запись на|موعد|موعدي|अपॉइंटमेंट|remedy the breach by"
)

APPOINTMENTS = (
    Rule(
        "DATE",
        Expression(
            rf"[\s:,]{{0,3}} (?:"
            rf" (?:on|am|le|el|il|op|dnia|is|ist|em|at|dia|für|for|na|в|:|the|mon|tue|wed|thu|fri|sat|sun"
            rf" |\p{{L}}{{2,9}}day)[ ,]{{1,2}} ){{0,3}}"
            rf" (?P<value> {DATE} | \d{{1,2}}(?:st|nd|rd|th) | \d\d?[./]\d\d?(?=[.,;)\s]) ) (?<![.])"
            rf" (?![\w]|[./\-]\d)"
        ),
        score=0.8,
        check=is_day,
        digits=1,
        linked=True,
        whole=True,
        **words(_PERSONAL),
    ),
)

RULES = (*AGES, *APPOINTMENTS)
