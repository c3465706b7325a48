"""The public lists of names: persons, locations and organizations by which names of a text can be replaced.

In: Faker's lists by country, the cities and organizations below, and the folder of corpora, which
tells what a word mostly is. Out: `data/names/` of the package.
Not here: how a name is drawn (`textveil.text.name_lists` reads the lists).
"""

import argparse
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.metadata import files, version
from pathlib import Path
from typing import NamedTuple

from textveil.detect.spans import NAMES
from textveil.table.embedding import load_table
from textveil.text.name_lists import NAME_KINDS
from training import cli, data, gazetteers
from training.lists import of_locales

PERSONS = {
    "given": r"first(_romanized)?_names(_(fe)?male|_nonbinary|_unisex)?",
    "family": r"last(_romanized)?_names(_(fe)?male|_common|_without_suffix)?|male_last_names|unisex_last_names",
}
"""Which of Faker's lists of persons hold which kind of names: a regular expression of their own names."""

PLACES = {
    "country": "countries",
    "region": "states|provinces|regions|cantons|departments|estados|counties|prefectures",
    "city": "cities|city_names|real_city_names|metropolitan_cities",
}
"""The same for locations. A word of several kinds is of the first."""

CITIES = """
    Aachen Aarhus Aberdeen Acapulco Accra Adelaide Akron Albany Albuquerque Aleppo Alexandria Algiers Amman Amsterdam
    Anaheim Anchorage Ankara Antwerp Arnhem Astana Athens Atlanta Auckland Avignon Baghdad Baku Baltimore Bangalore
    Bangkok Bangor Barcelona Basel Basra Bath Beijing Beirut Belem Belfast Belgrade Benghazi Bergen Berlin Bern
    Bilbao Birmingham Blackpool Bogota Boise Bologna Bombay Bonn Bordeaux Boston Bradford Brasilia Bratislava Bremen
    Bridgetown Brighton Brisbane Bristol Brno Bruges Brussels Bucharest Budapest Buffalo Bulawayo Burbank Burnley
    Busan Cairo Calcutta Calgary Cambridge Canberra Cannes Caracas Cardiff Casablanca Charleston Chattanooga Chengdu
    Chennai Chester Chicago Cincinnati Cleveland Cologne Colombo Copenhagen Cordoba Cork Coventry Curitiba Cusco
    Dakar Dallas Damascus Darwin Dayton Delhi Denver Derby Detroit Dhaka Doha Dortmund Dresden Dubai Dublin Duluth
    Dundee Durban Durham Dusseldorf Edinburgh Edmonton Eindhoven Exeter Fez Florence Fortaleza Frankfurt Fresno
    Galway Gdansk Geneva Genoa Ghent Gibraltar Glasgow Gothenburg Granada Graz Groningen Guadalajara Guangzhou
    Halifax Hamburg Hangzhou Hanoi Hanover Harare Hartford Havana Heidelberg Helsinki Hiroshima Hobart Honolulu
    Houston Huddersfield Hull Hyderabad Incheon Indianapolis Innsbruck Ipswich Isfahan Istanbul Izmir Jacksonville
    Jaipur Jakarta Jerusalem Johannesburg Kabul Kampala Kandahar Karachi Kathmandu Katowice Kazan Khartoum Kiel Kiev
    Kigali Kingston Kinshasa Knoxville Kobe Kolkata Krakow Kuwait Kyoto Lagos Lahore Lansing Leeds Leicester Leiden
    Leipzig Leuven Lhasa Lille Lima Limerick Lisbon Liverpool Ljubljana Lodz London Louisville Luanda Lublin Lucca
    Lucerne Lucknow Lusaka Luxembourg Lyon Madras Madrid Mainz Malaga Malmo Managua Manchester Mandalay Manila
    Mannheim Maputo Marseille Mecca Medan Medina Melbourne Memphis Miami Milan Milwaukee Minneapolis Minsk Monaco
    Moncton Monrovia Monterrey Montevideo Montpellier Montreal Moscow Mosul Mumbai Munich Nagoya Nairobi Nancy
    Nanjing Nantes Naples Nashville Nassau Newark Newcastle Nice Nicosia Norwich Nottingham Novgorod Nuremberg
    Oakland Odense Odessa Omaha Orlando Osaka Oslo Ottawa Oxford Padua Palermo Panama Paris Parma Pasadena Pensacola
    Peoria Perth Peshawar Philadelphia Phoenix Pisa Pittsburgh Plymouth Portland Porto Portsmouth Potsdam Poznan
    Prague Preston Pretoria Providence Pune Quito Rabat Raleigh Rangoon Reading Recife Regina Reims Reykjavik Riga
    Rio Riyadh Rochester Rome Rosario Rotterdam Rouen Sacramento Saigon Salvador Salzburg Santiago Sapporo Sarajevo
    Saskatoon Savannah Scranton Seattle Seoul Seville Shanghai Sheffield Shenzhen Shiraz Singapore Sofia Southampton
    Spokane Stavanger Stockholm Strasbourg Stuttgart Sunderland Surabaya Swansea Swindon Sydney Tacoma Taipei
    Tallahassee Tallinn Tampa Tampere Tashkent Tbilisi Tehran Tianjin Tijuana Tirana Tokyo Toledo Toronto Toulon
    Toulouse Trenton Trieste Tripoli Trondheim Tucson Tulsa Tunis Turin Turku Ulm Uppsala Utrecht Valencia Vancouver
    Venice Verona Vienna Vilnius Warsaw Wellington Windhoek Windsor Winnipeg Wolverhampton Worcester Wuhan Yerevan
    Yokohama York Zagreb Zurich
"""
"""Well-known cities as they are called in English, which Faker's lists are not."""

ORGANIZATIONS = {
    "company": """
        ABB Accenture Acer Activision Adidas Adobe Aeroflot Airbus Alcatel Aldi Alibaba Alitalia Allianz Alstom AMD
        Ameritech Amtrak AOL Aprilia Aramco Asus Atari ATI Audi Avianca Avis Bacardi Bandai Barclays BASF Bayer
        Bentley Bertelsmann Bloomberg BMW Boeing Bombardier Bosch Budweiser Bugatti Buick Burberry Cadbury Cadillac
        Campari Capcom Carlsberg Carrefour Casio Chevrolet Chevron Chrysler Cingular Cisco Citigroup Citroen Colgate
        Comcast Compaq Conrail Costco Cunard Daewoo DAF Daihatsu Daimler Danone Datsun Decca Dell Deloitte DHL Disney
        Dreamworks Dropbox Ducati DuPont Duracell eBay Elsevier Embraer EMI Emirates Enron Epson Equinor Ericsson
        Etihad Exxon Facebook FedEx Ferrari Ferrero Fiat Finnair Fokker Fujitsu Gazprom Geffen Gillette Goodyear
        Google Groupon Grumman Gucci Guinness Hachette Haier Halliburton Hasbro Hasselblad Heineken Heinz Hermes
        Hershey Hertz Hitachi Honda Honeywell Hornby HSBC Huawei Hulu Hyundai Iberia IBM Ikea Infosys ING Instagram
        Intel Interscope Isuzu Kawasaki Kellogg Kia KLM Kodak Komatsu Konami Konica KPMG Kraft Krupp Lamborghini
        Lancia Lego Leica Lenovo Lexus Leyland Lidl LinkedIn Lionsgate Lloyds Lockheed Logitech Lufthansa Lukoil
        Macmillan Maersk Maserati Mastercard Mattel Mazda McDonald McKinsey McLaren Mercedes MGM Michelin Microsoft
        Minolta Miramax Mitsubishi Mitsui Mobil Monsanto Motorola Motown Mozilla Namco Netflix Nextel Nike Nikon
        Nintendo Nissan Nokia Nordstrom Northrop Novartis Nvidia Oldsmobile Olivetti Opel Panasonic Paramount PayPal
        Pearson Pentax Pepsi Petrobras Peugeot Pfizer Philips Piaggio Pinterest Pirelli Pixar Polydor Porsche Prada
        Primark Pullman Qantas Qualcomm Raytheon RCA Reddit Reebok Renault Ricoh RKO Roche Rolex Rosneft Routledge
        Ryanair Saab Safeway Samsung Sanyo Scania Sears Sega Seiko Shimano Siemens Sikorsky Sinopec Skanska Skoda
        Skype Smirnoff Snapchat Sony Spotify Springer Starbucks Statoil Studebaker Subaru Suzuki Taito Telefonica
        Telstra Telus Tesco Tesla Texaco Thales TikTok Toshiba Toyota Tumblr TWA Twitter Uber Ubisoft Unilever UPS
        Vauxhall Verizon Vespa Viacom Vimeo Vivendi Vodafone Volkswagen Volvo Wachovia Walgreens Walmart Westinghouse
        WhatsApp Wikipedia Wiley Woolworths Xerox Yahoo Yamaha YouTube Zara Zeiss
        """,
    "university": """
        Barnard Baylor BYU Caltech Charterhouse Clemson Cornell CUNY Dartmouth DePaul Drexel Duquesne Emory Eton
        Fordham Georgetown Gonzaga Harvard Hofstra IIT INSEAD Juilliard Keio Lehigh LSE LSU McGill MIT Northwestern
        NYU Oberlin Penn Pepperdine Princeton Purdue Rensselaer Rutgers SMU Sorbonne Stanford SUNY Swarthmore TCU
        Technion Tsinghua Tufts Tulane UCL UCLA UCSB UCSD UNLV USC UTEP Vanderbilt Vassar VCU Villanova VMI Waseda
        Wellesley Wesleyan Wharton Yale
        """,
    "agency": """
        AARP ACLU ASEAN BAFTA Bundestag Bundeswehr CERN CIA DARPA DEA Duma EPA EU Europol Eurostat Eurovision FAA FBI
        FCC FDA FEMA Greenpeace IAEA ICC IEEE ILO IMF Interpol IRS ISRO Kiwanis Knesset Mensa MI6 Mossad NAACP NASA
        NATO NHS NOAA NSA NSF OECD OPEC Oxfam PETA RAAF RAF RCAF Sejm UN UNESCO UNHCR UNICEF USAF USDA WTO
        """,
    "media": """
        ABC AFP AMC ARD BBC Bild Billboard Bravo CBC CBS Cinemax CNBC CNN Cosmopolitan CTV ESPN Esquire Eurosport
        Forbes GMA Haaretz HBO IGN ITV Izvestia KBS MBC MSNBC MTV NBC Newsweek NHK Nickelodeon NME NPR PBS Pravda RAI
        Reuters RTE SBS Showtime Starz Tass TBS Telemundo TLC TNT TVB TVN Univision VH1 Vogue Xinhua ZDF
        """,
    "club": """
        Ajax Arsenal Atalanta Bayern Benfica Besiktas Boca Borussia Chelsea CONCACAF CONMEBOL Corinthians Cruzeiro
        Dinamo Dynamo Everton Feyenoord FIBA FIFA Fiorentina Flamengo Fluminense Galatasaray Gremio Hapoel Hibernian
        Juventus Lazio Lokomotiv Maccabi Millwall MLB MLS Napoli NASCAR NBA NCAA NFL NHL Olympiacos Palmeiras
        Panathinaikos Partizan PSV Rosenborg Sampdoria Schalke Shakhtar Slavia Spartak Torino Tottenham
        Udinese UEFA UFC Werder WWE Zenit
        """,
}
"""Well-known organizations whose name is one word, by their kind.

That they exist is a fact; nothing was copied.
"""

OTHERS = """
    Aba Abs Achilles Adi Adolf Albuquerque Alfa Alta Ama Amadeus America Ami Andes Apollo April Aquino Ara
    Argentine Armageddon Aryan Asa Aspen Astros Athena Atlas August Augustus Avila Avon Baba Bach Baden Baha Baja
    Bal Bali Banco Barbie Bard Batman Bela Berry Bethel Beyonce Bible Bilbao Borg Brasil Breton Brien Brit Brook
    Brooklyn Buena Burkina Bush Cad Caesar Cal Campo Carolina Castro Catalan Cerro Ceylon Champ Cherokee Cheyenne
    Chi Ching Christ Christians Christmas Churchill Cicero Cid Ciudad Claudius Cleopatra Clermont Cola Colbert
    Commodore Concordia Conde Crete Czech Dakota Dane Danish Dar Darling Darwin December Deng Deutschland Dex Dia
    Dick Dickens Din Disraeli Doc Dogg Dow Easter Eco Einstein Elvis Emir English Erie Esa Este Falcon Faro Faso
    Faust February Federer Fia French Friday Gal Gan Gandhi Ganga Gates Gemini Georgian Georgie German Gia
    Gladstone Graf Greco Gregorian Hai Haji Hamlet Handel Hannibal Hara Havre Hendrix Hidalgo Hilbert Hitler
    Holland Homer Hoover Hove Hua Hussein Ida Immaculate Ina Indian Indy Ira Irish Isa Isis Islam Israeli Italia
    Ito Jagger January Jedi Jen Jesuit Jesus Johns Juliet July June Juris Kai Kaiser Kant Kanye Kong Kota Lafayette
    Laguna Lal Lanka Lea Leary Len Lenin Lia Lincoln Livingstone Loire Loki Lombard Loyola Luther Macon Madonna
    Magnolia Mahal Maia Maj Mandela Mans Mao Maoist March Marge Marne Mart Marx May Mayo Medici Mellon Merlin Mesa
    Messi Mets Mia Michelangelo Milano Min Mis Monday Monte Moor Mor Moses Mozart Muhammad Muslim Nagar Nan
    Napoleon Nas Nazareth Nazi Nes Newt Nile Nova November Novi Obama Obe October Odin Odyssey Ole Olympia Orion
    Pal Pan Pandit Pandora Papua Parisian Pau Pia Picasso Plato Platt Pol Polish Presley Pry Rae Ras Reagan Rei
    Remington Rica Rihanna Rockefeller Rom Roman Romeo Rus Sabah Saddam Sai Sakura Sal Salamanca Salle Sant Santo
    Saturday Scala Schubert Schumacher Selma Sen Seneca September Shakespeare Shan Sheikh Sherlock Shi Sierra
    Slovak Sol Somali Somme Stalin Stratford Sunday Tak Tal Tata Tatar Theta Thor Thursday Tor Toro Tory Tre Tri
    Trinidad Truman Trump Tudor Tuesday Turk Ulysses Uno Urbana Usa Uss Val Venus Verde Verdi Viking Vikings Virgil
    Viva Volta Vulcan Wadi Wednesday Welsh Wien Wiener Wil Zeus Zion
"""
"""Capitalized words that mostly mean something else than a name of their list, or suggest one particular person."""

WRITTEN = 0.9
"""A name is capitalized in more than this share of its occurrences inside sentences."""

LEAST = 5
"""Fewer occurrences say too little."""

LOCALES = 3
"""A word on this many lists of persons is certainly a name."""

FEW = """
    az_AZ en_IN en_KE en_NG en_PK ha_NG id_ID ig_NG ja_JP sw tr_TR tw_GH uz_UZ vi_VN yo_NG zh_CN zh_TW zu_ZA
"""
"""Locales whose names are on few other lists: one list is enough, so that names of all origins are included."""

CLEARLY = 0.7
"""Least share of its type among a name's labels, if it is not certain to be of one type only."""

HEADER = """\
# {title}: name, tab, kind; sorted. Each is one row of the table minilm-s and is written with
# a capital in more than {written:.0%} of its places inside sentences of the English Wikipedia of 2018.
# Made by training/names.py.
# Source: {source}
"""

SOURCES = {
    "PERSON": "the lists of persons of Faker {version} (github.com/joke2k/faker, MIT, see LICENSE-FAKER.txt).",
    "LOCATION": "the lists of places of Faker {version} (github.com/joke2k/faker, MIT, see LICENSE-FAKER.txt);\n"
    "# cities as they are called in English were typed in for textveil (Apache-2.0).",
    "ORGANIZATION": "typed in for textveil (Apache-2.0); names of well-known organizations, by what they are.",
}


class Candidate(NamedTuple):
    """A name according to its sources.

    Attributes:
        kind: one of `KINDS`.
        sure: whether they suffice, unless those of another type do too.
    """

    kind: str
    sure: bool


class Evidence(NamedTuple):
    """Counts of lower-cased words in public text.

    Attributes:
        capital: occurrences with a capital inside sentences.
        small: occurrences without.
        tagged: occurrences, with a capital, as part of a name of each type, or `O` for none.
    """

    capital: Mapping[str, int]
    small: Mapping[str, int]
    tagged: Mapping[str, Mapping[str, int]]

    def is_name(self, word: str) -> bool:
        """Whether a lower-cased word is hardly ever written that way."""
        seen = self.capital.get(word, 0) + self.small.get(word, 0)
        return seen >= LEAST and self.capital.get(word, 0) > WRITTEN * seen

    def share(self, word: str, type_: str, among: Collection[str] | None = None) -> float | None:
        """The share of a type among a word's labels, or among some of them; None if they are too few."""
        labels = {
            label: n
            for label, n in self.tagged.get(word, {}).items()
            if among is None or label in among
        }
        total = sum(labels.values())
        return labels.get(type_, 0) / total if total >= LEAST else None


def evidence(articles: Iterable[str], sentences: Iterable[data.Tagged]) -> Evidence:
    """Counts the words of articles that follow a lower-case word or a comma, and the labels of tagged sentences."""
    inside = re.compile(r"(?<=[a-z,;] )[A-Za-z]+(?![\w-])")
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    for article in articles:
        for word in inside.findall(article):
            (small if word.islower() else capital)[word.lower()] += 1
    tagged: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in sentences:
        for word, label in zip(sentence.words, sentence.labels, strict=True):
            if word[:1].isupper():
                tagged[word.lower()][label[2:] or "O"] += 1
    return Evidence(capital, small, tagged)


def from_faker(provider: str, lists: Mapping[str, str]) -> dict[str, dict[str, set[str]]]:
    """The single words of Faker's lists without accents, as in the encoder, by kind, with their locales.

    Args:
        provider: `person` or `address`.
        lists: kinds, each with a regular expression for the names of its lists.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for kind, pattern in lists.items():
        for locale, entries in of_locales(provider, pattern):
            for word in words(entries):
                found.setdefault(word, {kind: set() for kind in lists})[kind].add(locale)
    return found


def words(entries: Iterable[str | tuple[str, ...]]) -> Iterator[str]:
    """Entries as written in English, without those in other alphabets or of several words."""
    for entry in entries:
        for part in entry if isinstance(entry, tuple) else (entry,):
            folded = "".join(
                c for c in unicodedata.normalize("NFKD", part) if not unicodedata.combining(c)
            )
            if re.fullmatch("[A-Z][A-Za-z]{2,}", folded):
                yield folded.title() if folded.isupper() else folded


def candidates() -> dict[str, dict[str, Candidate]]:
    """All names by type."""
    persons = {}
    for word, locales in from_faker("person", PERSONS).items():
        given, family = len(locales["given"]), len(locales["family"])
        kind = "given" if given > 2 * family else "family" if family > 2 * given else "both"
        rare = not locales["given"].union(locales["family"]).isdisjoint(FEW.split())
        persons[word] = Candidate(kind, given + family >= LOCALES or rare)
    places = {}
    for word, locales in from_faker("address", PLACES).items():
        kind = next(kind for kind in PLACES if locales[kind])
        places[word] = Candidate(
            kind, kind != "city" and any(locale.startswith("en") for locale in locales[kind])
        )
    places |= {word: Candidate("city", True) for word in CITIES.split()}
    organizations = {
        word: Candidate(kind, True) for kind, text in ORGANIZATIONS.items() for word in text.split()
    }
    return {"PERSON": persons, "LOCATION": places, "ORGANIZATION": organizations}


def choose(
    found: Mapping[str, Mapping[str, Candidate]], rows: Iterable[str], seen: Evidence
) -> dict[str, dict[str, str]]:
    """The lists, each name with its kind: table rows that are always names, each in one list."""
    held = set(rows) - set(OTHERS.lower().split())
    spelled = {
        type_: {word.lower(): word for word in sorted(names, reverse=True)}
        for type_, names in found.items()
    }
    lists: dict[str, dict[str, str]] = {type_: {} for type_ in found}
    for type_, names in found.items():
        for lower in sorted(filter(seen.is_name, held & spelled[type_].keys())):
            name = names[spelled[type_][lower]]
            rivals = {
                other
                for other in found
                if lower in spelled[other] and found[other][spelled[other][lower]].sure
            }
            share = seen.share(lower, type_, rivals if name.sure else None)
            if (name.sure and rivals == {type_}) or (share is not None and share >= CLEARLY):
                lists[type_][spelled[type_][lower]] = name.kind
    return lists


def render(type_: str, names: Mapping[str, str], version: str) -> str:
    """A list as written to the file."""
    head = HEADER.format(title=f"Names of the type {type_}", written=WRITTEN, source=SOURCES[type_])
    return head.format(version=version) + "".join(
        f"{word}\t{kind}\n" for word, kind in sorted(names.items())
    )


def licence() -> str:
    """Faker's notice, which must accompany what is taken from it."""
    found = next(file for file in files("faker") or () if file.name == "LICENSE.txt")
    return found.read_text("utf-8")


def main() -> None:
    """Chooses the names, and writes the lists."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "names", help="default: into the package"
    )
    given = cli.with_corpora(parser)
    tagged = data.wikigold(given.data, held_out=False)
    for corpus in ("wikiann_en", "wnut17"):
        tagged += data.conll(given.data / corpus / "train.conll.gz")
    seen = evidence(data.wikipedia(given.data), tagged)
    lists = choose(candidates(), load_table("minilm-s").words, seen)
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "LICENSE-FAKER.txt").write_text(licence(), "utf-8")
    gazetteers.build(given.out)
    for type_ in NAMES:
        assert set(lists[type_].values()) <= set(NAME_KINDS[type_])
        (given.out / f"{type_.lower()}.txt").write_text(
            render(type_, lists[type_], version("faker")), "utf-8"
        )


if __name__ == "__main__":
    main()
