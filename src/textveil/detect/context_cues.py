"""Relations: words that say that the writer knows whom a name is of ("my neighbour"), or that it is an illness's.

In: the text before a name, or behind it. Out: whether it ends or begins with such words.
Not here: whether it is a name (`detectors`).
"""

import regex

REACH = 60
"""Characters before and behind a name that are looked at."""

_OWN = """
    my our mein meine meiner meinem meinen unser unsere unserer unserem unseren mon ma mes notre nos mi mis nuestro
    nuestra nuestros nuestras meu minha meus minhas nosso nossa mio mia miei mie nostro nostra mijn onze ons mój moja
    mojego mojej moim moją nasz nasza naszego naszej мой моя моего моей моему моим нашего нашей наш наша benim
"""
"""Words for what is one's own."""

_WHO = """
    neighbour neighbor boss colleague coworker co-worker friend wife husband son daughter brother sister mother
    father mom mum dad uncle aunt cousin nephew niece grandmother grandfather grandma grandpa granny stepson
    stepdaughter stepfather stepmother roommate flatmate housemate girlfriend boyfriend fiancé fiancée fiance
    partner ex tenant landlord landlady client customer patient student pupil teacher manager supervisor assistant
    intern employee employer nanny babysitter therapist classmate teammate mentor godson goddaughter

    nachbar nachbarin nachbarn chef chefin kollege kollegin kollegen freund freundin freunde frau mann sohn tochter
    bruder schwester mutter vater onkel tante cousin cousine neffe nichte oma opa großmutter großvater enkel enkelin
    vermieter vermieterin mieter mieterin kunde kundin patient patientin schüler schülerin lehrer lehrerin partnerin
    verlobte verlobter mitbewohner mitbewohnerin mitarbeiter mitarbeiterin schwager schwägerin schwiegermutter
    schwiegervater

    voisin voisine collègue ami amie copain copine femme mari fils fille frère soeur sœur mère père oncle tante
    cousine neveu nièce patron patronne chef propriétaire locataire client cliente élève prof professeur compagne
    compagnon grand-mère grand-père assistante assistant stagiaire

    vecino vecina jefe jefa compañero compañera amigo amiga esposa esposo marido mujer hijo hija hermano hermana
    madre padre tío tía primo prima sobrino sobrina abuelo abuela novio novia inquilino inquilina casero casera
    clienta alumno alumna profesor profesora pareja suegra suegro cuñado cuñada

    vizinho vizinha chefe colega filho filha irmão irmã mãe pai tio tia sobrinho sobrinha avô avó namorado namorada
    mulher inquilino inquilina senhorio aluno aluna cliente paciente

    vicino vicina capo collega amico amica moglie marito figlio figlia fratello sorella madre padre zio zia cugino
    cugina nipote nonno nonna fidanzato fidanzata inquilino inquilina cliente paziente alunno alunna suocera suocero
    cognato

    buurman buurvrouw baas collega vriend vriendin vrouw man zoon dochter broer zus zusje moeder vader oom neef
    nicht oma opa huisbaas huurder klant leerling partner schoonmoeder schoonvader

    sąsiad sąsiadka sąsiada sąsiadki szef szefowa kolega koleżanka kolegi koleżanki przyjaciel przyjaciółka żona mąż
    żony męża syn córka syna córki brat siostra brata siostry matka ojciec mama tata wujek ciocia kuzyn kuzynka
    babcia dziadek klient klientka pacjent pacjentka uczeń uczennica

    сосед соседка соседа соседки начальник начальница коллега коллеги друг подруга друга подруги жена муж жены мужа
    сын дочь сына дочери брат сестра брата сестры мать отец мама папа дядя тётя бабушка дедушка клиент клиентка
    пациент
"""
"""People whom one knows."""

_WHOSE = """
    komşum patronum arkadaşım eşim karım kocam oğlum kızım kardeşim ablam abim annem babam amcam dayım teyzem halam
    kuzenim dedem ninem müşterim hastam öğrencim öğretmenim müdürüm
"""
"""The same with what says whose they are at their end."""

_RELATION = regex.compile(
    r"(?<!\w)(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)(?:'s)?,?[ ]\Z|(?<!\w)(?:\L<whose>)[ ]\Z",
    regex.IGNORECASE,
    own=_OWN.split(),
    who=_WHO.split(),
    whose=_WHOSE.split(),
)


def is_relation(before: str) -> bool:
    """Whether a text ends in words for somebody whom the writer knows, with at most one word between them."""
    return _RELATION.search(before) is not None


_BESIDE = regex.compile(
    r"[ ]?[,(\p{Pd}][ ]?(?:(?:\L<own>)[ ](?:[\p{L}-]+[ ])?(?:\L<who>)|\L<whose>)(?=[ ]?[,;.:!?)\n\p{Pd}]|\Z)",
    regex.IGNORECASE,
    own=_OWN.split(),
    who=_WHO.split(),
    whose=_WHOSE.split(),
)


_OWES = regex.compile(
    r"[^.!?\n]{0,50}? \b (?: owes?[ ](?:us|me) | schuldet[ ](?:uns|mir) | (?:nous|me)[ ]doit | (?:nos|me)[ ]debe"
    r" | (?:ci|mi|nos|me)[ ]deve ) [ ] [^.!?\n]{0,20}? \d",
    regex.IGNORECASE | regex.VERBOSE,
)


def is_beside_relation(behind: str) -> bool:
    """Whether a text begins with such words between signs, as in "Rose, my boss, is ill", or owes the writer a sum."""
    return _BESIDE.match(behind) is not None or _OWES.match(behind) is not None


_EPONYMS = frozenset(
    """
    addison alzheimer asperger barré basedow bechterew behçet bell burkitt crohn cushing dupuytren ehlers gaucher
    graves guillain hashimoto hodgkin huntington kaposi kawasaki klinefelter korsakoff marfan meniere ménière osler
    paget parkinson perthes peyronie raynaud reiter scheuermann sjogren sjögren tourette turner wegener werner wilson
    """.split()  # noqa: SIM905 - one line for each word would be a page
)
"""After whom illnesses are called, in small letters."""

_ILLNESS = regex.compile(
    r"""(?<!\w) (?: diagnos(?:ed[ ]with|is[ ]of) | suffer(?:s|ed|ing)?[ ]from | morbus | erkrankt[ ]an
      | (?: maladie | syndrome | enfermedad | enf\. | síndrome | doença ) [ ] de
      | (?: malattia | sindrome | morbo ) [ ] di | (?: ziekte | syndroom ) [ ] van | chorob[aęy] | zespół | zespołem
      ) [ ] \Z""",
    regex.IGNORECASE | regex.VERBOSE,
)
_OF_AN_ILLNESS = regex.compile(
    r"['’]s[ ](?:disease|syndrome|palsy|lymphoma|thyroiditis|sarcoma|contracture)\b"
)


def is_illness(before: str, name: str, behind: str) -> bool:
    """Whether a name between two texts is that of an illness: "diagnosed with Hashimoto's"."""
    if name.lower() not in _EPONYMS or is_beside_relation(behind):
        return False
    return _ILLNESS.search(before) is not None or _OF_AN_ILLNESS.match(behind) is not None
