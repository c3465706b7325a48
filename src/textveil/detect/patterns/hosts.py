"""Hosts: which internet addresses are public, which are somebody's own, and which are placeholders of documents.

In: the text of an address. Out: how probable it is that the address is private.
Not here: how addresses are recognized (`net`).
"""

import ipaddress
from urllib.parse import unquote

import regex

from textveil.detect.patterns.rules import Expression, listed

DATA_CENTRE = regex.compile(
    r"(?<![\w-])(?:us|eu|ap|ca|sa|me|af|cn|il|mx|(?:north|south)?america|asia|europe|australia)-(?:gov-|iso-)?"
    r"(?:north|south|east|west|central)(?:east|west)?-?\d(?:-?[a-z])?(?!\w)"
)
"""A region or zone of a provider of computers: eu-central-1, us-gov-west-1, europe-west4-a."""

INTERNAL_TOPS = (
    "internal|intern|interno|interne|int|intra|intranet|local|localdomain|lan|corp|corporate|home|private|priv"
    "|office|arpa|svc|cluster"
)
"""Last parts of names of hosts that no public name server knows, separated by bars."""

_DOMAINS = listed(
    """wikipedia.org wikimedia.org wiktionary.org wikidata.org wikihow.com fandom.com britannica.com google.com
    youtube.com youtu.be github.com github.io gitlab.com githubusercontent.com bitbucket.org sourceforge.net
    stackoverflow.com stackexchange.com superuser.com serverfault.com askubuntu.com quora.com reddit.com medium.com
    substack.com dev.to hackernoon.com freecodecamp.org w3schools.com w3.org whatwg.org mozilla.org python.org
    pypi.org readthedocs.io readthedocs.org rtfd.io nodejs.org npmjs.com npmjs.org yarnpkg.com jsdelivr.net unpkg.com
    cloudflare.com cdnjs.com jquery.com reactjs.org react.dev vuejs.org angular.io angular.dev svelte.dev nextjs.org
    vercel.com vercel.app netlify.com netlify.app heroku.com herokuapp.com getbootstrap.com tailwindcss.com
    bootstrapcdn.com typescriptlang.org rust-lang.org crates.io docs.rs golang.org go.dev java.com oracle.com
    openjdk.org apache.org spring.io maven.org gradle.org kotlinlang.org swift.org php.net laravel.com symfony.com
    ruby-lang.org rubyonrails.org rubygems.org perl.org cpan.org r-project.org julialang.org scala-lang.org
    haskell.org elixir-lang.org djangoproject.com palletsprojects.com fastapi.tiangolo.com pytorch.org
    tensorflow.org keras.io scikit-learn.org numpy.org scipy.org pydata.org matplotlib.org jupyter.org anaconda.com
    anaconda.org kaggle.com huggingface.co openai.com chatgpt.com anthropic.com claude.ai deepmind.com mistral.ai
    cohere.com langchain.com arxiv.org doi.org nature.com science.org sciencedirect.com springer.com wiley.com
    elsevier.com tandfonline.com jstor.org plos.org pubmed.gov researchgate.net academia.edu semanticscholar.org
    acm.org ieee.org ietf.org rfc-editor.org iso.org iana.org icann.org unicode.org ecma-international.org
    json-schema.org json.org yaml.org xml.org schema.org docker.com docker.io kubernetes.io k8s.io helm.sh
    hashicorp.com terraform.io ansible.com jenkins.io grafana.com prometheus.io elastic.co mongodb.com mysql.com
    mariadb.org postgresql.org sqlite.org redis.io rabbitmq.com kafka.org nginx.org nginx.com debian.org ubuntu.com
    archlinux.org fedoraproject.org redhat.com centos.org kernel.org gnu.org linux.org linuxfoundation.org
    freebsd.org microsoft.com live.com office.com windows.com azure.com visualstudio.com msdn.com bing.com msn.com
    linkedin.com apple.com icloud.com amazon.com amazon.de amazon.co.uk aws.com amazonaws.com ebay.com etsy.com
    aliexpress.com alibaba.com walmart.com target.com bestbuy.com ikea.com netflix.com spotify.com soundcloud.com
    imdb.com rottentomatoes.com twitch.tv tiktok.com vimeo.com dailymotion.com facebook.com fb.com instagram.com
    twitter.com x.com t.co pinterest.com tumblr.com snapchat.com telegram.org whatsapp.com wechat.com discord.com
    signal.org skype.com zoom.us zoom.com slack.com notion.so trello.com atlassian.com jira.com figma.com canva.com
    adobe.com dropbox.com box.com salesforce.com hubspot.com mailchimp.com shopify.com wordpress.com wordpress.org
    wix.com squarespace.com godaddy.com paypal.com stripe.com visa.com mastercard.com coinbase.com binance.com
    bbc.com bbc.co.uk cnn.com nytimes.com washingtonpost.com theguardian.com reuters.com bloomberg.com forbes.com
    economist.com ft.com wsj.com apnews.com aljazeera.com npr.org nbcnews.com cbsnews.com foxnews.com usatoday.com
    spiegel.de zeit.de faz.net sueddeutsche.de tagesschau.de lemonde.fr lefigaro.fr elpais.com elmundo.es
    corriere.it repubblica.it globo.com uol.com.br folha.uol.com.br asahi.com nhk.or.jp yomiuri.co.jp naver.com
    daum.net kakao.com baidu.com qq.com weibo.com zhihu.com bilibili.com taobao.com jd.com 163.com sina.com.cn
    yandex.ru mail.ru vk.com habr.com rbc.ru onet.pl allegro.pl wp.pl hurriyet.com.tr vnexpress.net yahoo.com
    yahoo.co.jp rakuten.co.jp duckduckgo.com archive.org gutenberg.org goodreads.com openlibrary.org
    khanacademy.org coursera.org edx.org udemy.com udacity.com duolingo.com chess.com lichess.org steampowered.com
    steamcommunity.com epicgames.com nintendo.com playstation.com xbox.com minecraft.net roblox.com unity.com
    unity3d.com unrealengine.com blender.org nasa.gov who.int un.org europa.eu worldbank.org imf.org oecd.org
    wto.org unesco.org unicef.org icrc.org nih.gov cdc.gov fda.gov irs.gov usps.com ups.com fedex.com dhl.com dhl.de
    bahn.de sncf.com booking.com airbnb.com tripadvisor.com expedia.com uber.com lyft.com openstreetmap.org
    weather.com accuweather.com investopedia.com tradingview.com nasdaq.com nyse.com finance.yahoo.com webmd.com
    mayoclinic.org healthline.com nhs.uk gov.uk indeed.com glassdoor.com upwork.com fiverr.com leetcode.com
    hackerrank.com codeforces.com geeksforgeeks.org tutorialspoint.com javatpoint.com baeldung.com programiz.com
    realpython.com digitalocean.com linode.com ovh.com hetzner.com letsencrypt.org mit.edu harvard.edu stanford.edu
    ox.ac.uk cam.ac.uk berkeley.edu cern.ch nvidia.com intel.com amd.com ibm.com sap.com cisco.com dell.com hp.com
    lenovo.com samsung.com sony.com tesla.com bmw.com toyota.com wolfram.com wolframalpha.com mathworks.com
    geogebra.org desmos.com overleaf.com latex-project.org ctan.org grammarly.com deepl.com dict.cc
    merriam-webster.com dictionary.com oed.com thesaurus.com creativecommons.org opensource.org fsf.org eff.org
    torproject.org openssl.org openssh.com curl.se ffmpeg.org videolan.org virtualbox.org vmware.com qemu.org
    arduino.cc raspberrypi.org raspberrypi.com postman.com swagger.io openapis.org graphql.org eslint.org
    prettier.io webpack.js.org vitejs.dev babeljs.io jestjs.io mochajs.org cypress.io selenium.dev playwright.dev
    flutter.dev dart.dev android.com jetbrains.com eclipse.org rfc-editor.org llvm.org cppreference.com
    cplusplus.com isocpp.org gcc.gnu.org cmake.org qt.io gtk.org gnome.org kde.org"""
)
"""Domains of what everybody knows: reference works, documentation, media, shops, platforms."""

EXAMPLES = listed(
    "example.com example.org example.net example.edu domain.com yourdomain.com mydomain.com test.com"
)
"""Domains at which nobody has an address."""
_PUBLIC_TOPS = (".gov", ".mil", ".int", ".edu")
_STATE = regex.compile(r"\.(?:gov|gob|gouv|gub|go|govt|gc|admin|bund)\.[a-z]{2}$")
"""Ends of the addresses of states."""
_KNOWN_ADDRESSES = listed(
    """1.1.1.1 1.0.0.1 8.8.8.8 8.8.4.4 9.9.9.9 208.67.222.222 208.67.220.220 192.168.0.1 192.168.1.1 192.168.2.1
    192.168.178.1 192.168.100.1 192.168.1.254 10.0.0.1 1.2.3.4"""
)
_DOCUMENTED = tuple(
    ipaddress.ip_network(each)
    for each in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)
"""RFC 5737 and RFC 3849."""
_NOBODY = listed(
    """user username name email mail e-mail someone somebody nobody you me foo bar baz test tester demo sample example
    recipient sender from to first.last firstname.lastname yourname youremail taro hanako abc xyz admin
    benutzer utente usuario usuário utilisateur gebruiker uzytkownik kullanici naam nom nombre nome imie isim
    ten.ban tenban beispiel muster exemple ejemplo exemplo esempio voorbeeld przyklad ornek"""
)
_DESKS = listed(
    """git noreply no-reply donotreply support info contact help helpdesk press sales security privacy legal feedback
    hello admin webmaster postmaster abuse office service team mailer-daemon notifications"""
)
FREE_MAIL = listed(
    """gmail.com googlemail.com yahoo.com hotmail.com outlook.com live.com icloud.com me.com aol.com gmx.de gmx.net
    web.de t-online.de qq.com 163.com 126.com sina.com naver.com daum.net mail.ru yandex.ru onet.pl wp.pl proton.me
    protonmail.com orange.fr free.fr libero.it uol.com.br rambler.ru ziggo.nl yahoo.co.jp"""
)
"""Domains at which everybody may have an address."""
_SERVICES = listed(
    """db database redis postgres postgresql mysql mongo mongodb rabbitmq kafka elasticsearch web api app backend
    frontend server host hostname nginx minio proxy client service node1 node2 master worker broker zookeeper
    localhost ollama qdrant keycloak jenkins grafana prometheus site domain yoursite yourhost myhost example"""
)
"""Hosts of one word that stand in everybody's configuration."""
ANY_HOST = _SERVICES | listed(
    """srv nas vps vm box pc laptop desktop machine mail www ubuntu debian raspberrypi pi kali fedora centos alpine arch
    prod staging dev test main primary router gateway dc devbox workstation computer home"""
)
"""Names of hosts that say nothing about whose they are."""
_PUBLIC_PARTS = listed(
    """www docs doc developer developers dev learn blog blogs news wiki help support forum forums community en de fr es
    it ja zh ko ru pl pt nl m tutorial tutorials research press about cran registry download downloads cdn static api
    raw pkg www2 www3 mirror status store shop smtp imap pop"""
)
_PERSONAL = Expression(
    r""" (?: ^ | [/.]) (?: linkedin\.com/in/ | github\.com/[\w\-]+/?(?:$|[?\#])
    | gitlab\.com/[\w\-.]+/?(?:$|[?\#])
    | (?:instagram|facebook|twitter|x|tiktok|threads|vk|ok|pinterest|snapchat|soundcloud|xing|fb|t\.me|linktr\.ee)
      (?:\.com|\.net|\.ru|)/ (?!p/|reel/|watch|groups/|hashtag/|explore|share|search|i/|home|login|about|help)
      @?[\w.\-]+
    | youtube\.com/@ | medium\.com/@ | mastodon\.\w+/@ | [\w.]+/@[\w.]+
    | (?:t|wa|fb|linktr|paypal|cash|ko-fi|calendly|about)\.(?:me|ee|com|app)/[\w.+\-]+
    | twitch\.tv/\w | reddit\.com/u(?:ser)?/ | stackoverflow\.com/users/ | orcid\.org/\d | researchgate\.net/profile/
    | (?:docs|drive|sheets|calendar)\.google\.com/ | meet\.google\.com/\w | forms\.gle/ | photos\.app\.goo\.gl/
    | photos\.google\.com/ | dropbox\.com/\w+/ | 1drv\.ms/ | onedrive\.live\.com/ | [\w\-]+\.sharepoint\.com
    | we\.tl/ | wetransfer\.com/downloads | icloud\.com/\w+/ | zoom\.us/[js]/ | teams\.microsoft\.com/l/
    | [\w\-]+\. (?: webex\.com/ | atlassian\.net | slack\.com | zendesk\.com | my\.salesforce\.com | notion\.site
      | s3[.\-][\w.\-]{0,40}amazonaws\.com )
    | notion\.so/[\w\-]+/ | trello\.com/[bc]/ | figma\.com/file/ | miro\.com/app/board | app\.asana\.com/\d
    | (?:chat\.openai|chatgpt)\.com/(?:c|share)/ | claude\.ai/(?:chat|share)/ | api\.telegram\.org/bot
    | discord(?:app)?\.com/(?:channels|api/webhooks)/ | discord\.gg/ | s3://[\w\-] | airbnb\.\w+/rooms/
    | strava\.com/athletes/ | gofundme\.com/f/
    )"""
)
"""Addresses on well-known hosts that lead to a person, or to what somebody shared."""
_TELLING = Expression(
    r""" [/=] (?: ~ [a-z] | (?:u|users?|usuarios?|benutzer|profiles?|profil|perfil|members?|people|staff|team|accounts?
      |kunden?|clients?|customers?|patients?|employees?|person|tenants?|invoices?|orders?|bookings?|reservation|tickets?|cases?
      |session|meeting|invite|confirm|verify|reset|unsubscribe|shared?)/
      (?! log(?:in|out) | sign | register | me\b | new\b | list | search | all\b | create | edit | [:{<$]
      | \d{1,3}\b ) )
      [^/?\#\s]{2}
    | [?&;] (?:[\w\-\[\]]{0,30}[_\-])? (?:user|username|user_?id|uid|e-?mail|mail|guest|name|first_?name|last_?name
      |phone|tel|customer|client|patient|account|order|order_?id|booking|res|ref|ticket|invoice
      |member|pwd|dob) =[^&\s]{2}
    | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12} | [0-9a-f]{24,} | @ (?= [\w\-]{1,60}\. )"""
)
"""Parts of an address that lead to one person, order or session."""
_PORTALS = listed(
    """intranet extranet portal admin vpn remote owa webmail jira confluence gitlab git gitea bitbucket jenkins ci
    nexus artifactory sonar grafana kibana prometheus rdp citrix sso login auth idp ldap ad dc sharepoint erp crm hr
    hris payroll lms lmsweb moodle canvas blackboard elearning e-learning academics student students campus mylms sis
    staging stage uat qa preprod prod int internal intern interno gw gateway srv db mx ns1 ns2 smtp imap pop nas backup
    host server my mein mijn mon mi booking bookings gest app apps secure cloud nextcloud owncloud files ftp sftp"""
)
"""First parts of names of hosts that serve the members of one organization."""
OWN = Expression(
    r"""(?<!\w) (?: my | our | meine? | unsere? | mon | notre | mi | nuestr[oa] | (?:il[ ])? mio | (?:la[ ])? mia
    | minha | meu | nosso | mijn | onze | moja | nasza | мой | наш ) [ ] (?:[\w\-]+[ ])?
    (?: web(?:site|seite|shop)? | site | home[ ]?page | blog | page | seite | portfolio | shop | store | url | domain
      | sito | página | pagina | sitio | strona | сайт ) (?!\w) [^\n]{0,15}+ $
    | (?<!\w) (?: portfolio | homepage | web | web[ ]?site | site ) [ ]? : [ ]? $"""
)
"""What says, at its end, that the address that follows is somebody's own."""
_PUBLISHED = Expression(
    r"/(?:wiki|docs?|blog|news|articles?|tutorials?|learn|help|support|faq|reference|manual|guide|press|media|post|posts"
    r"|package|packages|questions|recipes?|stocks?|products?|category|legal|privacy|terms|about|download|downloads"
    r"|licenses?|standards?|spec|schema|papers?|abs|pdf|story|watch)(?:[/?.\#\-]|$) | \.pdf$ | /(?:19|20)\d\d/\d\d?/"
)
_HOST = Expression(
    r"^ (?: (?:[a-z][a-z0-9+.\-]*:)+ // )? (?: [^/?\#@\s]{0,200} @ )? (?P<host> [^/?\#:\s]+ )"
)


def host_name(address: str) -> str:
    """The name of the host in an address, in lower case; empty if there is none."""
    found = _HOST.compiled.match(unquote(address[:400]))
    return found["host"].lower().strip("[].")[:255] if found else ""


def privacy(address: str) -> float:
    """How probable it is that a URL or the name of a host is private: 0 for what everybody knows or may know."""
    plain, host = unquote(address).rstrip("/"), host_name(address)
    if host.startswith("localhost") or host in ("127.0.0.1", "0.0.0.0", "::1", ""):
        return 1.0 if _TELLING.compiled.search(plain) else 0.0
    if host.replace(".", "").isdigit():
        return address_privacy(host)
    parts = host.removeprefix("www.").split(".")
    if parts[0] in ("com", "org", "net", "io", "edu", "gov", "java", "javax"):  # a package in code
        return 0.0
    if len(parts) == 1:
        return (
            0.0
            if host in _SERVICES or host.startswith(("your", "my", "<", "{", "$", "example"))
            else 1.0
        )
    if parts[-1] in INTERNAL_TOPS.split("|"):
        return 1.0
    if _PERSONAL.compiled.search(plain):
        return 1.0
    domains = {".".join(parts[-n:]) for n in (2, 3)}
    if domains & EXAMPLES or any(part.startswith(("your", "<", "{")) for part in parts):
        return 0.0
    bare = plain.lower() == host
    if host.endswith(_PUBLIC_TOPS) and parts[0] not in _PORTALS:
        return 1.0 if _TELLING.compiled.search(plain) else 0.0
    if _STATE.search(host) and parts[0] not in _PORTALS:
        return 1.0 if _TELLING.compiled.search(plain) else 0.0
    if domains & _DOMAINS or ".ac." in host or ".gov." in host:
        return (
            0.5
            if regex.search(r"[?&;][\w\-]*(?:user|mail|phone|name)\w*=[^&]{3}|%40", plain)
            else 0.0
        )
    own = len(parts) - (3 if len(parts) > 2 and len(parts[-2]) <= 3 and len(parts[-1]) == 2 else 2)
    if _TELLING.compiled.search(plain) or (own > 0 and parts[0] in _PORTALS):
        return 1.0
    if bare or _PUBLISHED.compiled.search(plain):
        return 0.7 if bare and own > 0 and parts[0] not in _PUBLIC_PARTS else 0.2
    return 0.2 if own > 0 and parts[0] in _PUBLIC_PARTS else 0.7


def address_privacy(address: str) -> float:
    """How probable it is that an IP address is private: 0 for this machine, masks, and what everybody knows."""
    try:
        found = ipaddress.ip_interface(address)
    except ValueError:
        return 1.0
    ip, network = found.ip, found.network
    if ip.is_loopback or ip.is_unspecified or ip.is_multicast or str(ip) in _KNOWN_ADDRESSES:
        return 0.0
    if ip.version == 4 and ip.packed[0] >= 240:
        return 0.0
    if any(ip in each for each in _DOCUMENTED if each.version == ip.version):
        return (
            0.0
            if ip.version == 4
            or sum(map(any, zip(ip.packed[4::2], ip.packed[5::2], strict=True))) < 2
            else 1.0
        )
    return (
        0.0
        if "/" in address and str(network) in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
        else 1.0
    )


def mail_privacy(address: str) -> float:
    """How probable it is that a mail address is private: 0 for placeholders and for well-known services."""
    local, _, domain = address.lower().rpartition("@")
    if not local:
        return 1.0
    name = ".".join(domain.split(".")[-2:])
    if (
        domain in EXAMPLES
        or domain.startswith("example.")
        or name in ("company.com", "email.com", "mail.com", "acme.com")
    ):
        return (
            0.0
            if local in _NOBODY or local in _DESKS or local.startswith(("your", "user", "test"))
            else 1.0
        )
    return 0.0 if local in _DESKS and name in _DOMAINS and name not in FREE_MAIL else 1.0
