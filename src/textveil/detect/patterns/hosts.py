"""Hosts: the probability that an internet address is private.

It is low for public addresses and for placeholders of documents.

In: the text of an address. Out: the probability that it is private.
Not here: how addresses are recognized (`net`).
"""

import ipaddress
from collections.abc import Sequence
from urllib.parse import unquote

from textveil.detect.patterns.rules import Expression
from textveil.text import LazyPattern, vocabulary

DATA_CENTRE = LazyPattern(
    r"(?<![\w-])(?:us|eu|ap|ca|sa|me|af|cn|il|mx|(?:north|south)?america|asia|europe|australia)-(?:gov-|iso-)?"
    r"(?:north|south|east|west|central)(?:east|west)?-?\d(?:-?[a-z])?(?!\w)"
)
"""A region or zone of a cloud provider: eu-central-1, us-gov-west-1, europe-west4-a."""

EXAMPLES = vocabulary.get_words("example_domains")
"""Domains at which nobody has an address."""
FREE_MAIL = vocabulary.get_words("free_mail")
"""Domains at which everybody may have an address."""
GENERIC_HOSTS = vocabulary.get_words("service_hosts") | vocabulary.get_words("plain_hosts")
"""Names of hosts that do not identify their owner."""
_PUBLIC_TOPS = (".gov", ".mil", ".int", ".edu")
_STATE = LazyPattern(r"\.(?:gov|gob|gouv|gub|go|govt|gc|admin|bund)\.[a-z]{2}$")
"""Ends of the addresses of governments."""
_DOCUMENTED = tuple(
    ipaddress.ip_network(each)
    for each in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")
)
"""Networks for documentation, RFC 5737 and RFC 3849."""
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
    | (?:chat\.openai|chatgpt)\.com/(?:c|share)/ | claude\.(?:ai|com)/(?:chat|share)/ | api\.telegram\.org/bot
    | discord(?:app)?\.com/(?:channels|api/webhooks)/ | discord\.gg/ | s3://[\w\-] | airbnb\.\w+/rooms/
    | strava\.com/athletes/ | gofundme\.com/f/
    )"""
)
"""Addresses on well-known hosts that lead to a person, or to shared documents."""
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
OWNER_WORDS = Expression(
    r"""(?<!\w) (?: my | our | meine? | unsere? | mon | notre | mi | nuestr[oa] | (?:il[ ])? mio | (?:la[ ])? mia
    | minha | meu | nosso | mijn | onze | moja | nasza | мой | наш ) [ ] (?:[\w\-]+[ ])?
    (?: web(?:site|seite|shop)? | site | home[ ]?page | blog | page | seite | portfolio | shop | store | url | domain
      | sito | página | pagina | sitio | strona | сайт ) (?!\w) [^\n]{0,15}+ $
    | (?<!\w) (?: portfolio | homepage | web | web[ ]?site | site ) [ ]? : [ ]? $"""
)
"""Words before an address that call it the writer's own."""
_PUBLISHED = Expression(
    r"/(?:wiki|docs?|blog|news|articles?|tutorials?|learn|help|support|faq|reference|manual|guide|press|media|post|posts"
    r"|package|packages|questions|recipes?|stocks?|products?|category|legal|privacy|terms|about|download|downloads"
    r"|licenses?|standards?|spec|schema|papers?|abs|pdf|story|watch)(?:[/?.\#\-]|$) | \.pdf$ | /(?:19|20)\d\d/\d\d?/"
)
_HOST = Expression(
    r"^ (?: (?:[a-z][a-z0-9+.\-]*:)+ // )? (?: [^/?\#@\s]{0,200} @ )? (?P<host> [^/?\#:\s]+ )"
)


def get_host_name(address: str) -> str:
    """Returns the host name of an address in lower case, or ""."""
    match = _HOST.compiled.match(unquote(address[:400]))
    return match["host"].lower().strip("[].")[:255] if match else ""


def score_url_privacy(address: str) -> float:
    """Returns the probability that a URL or host name is private.

    It is 0 for public and well-known addresses.
    """
    plain, host = unquote(address).rstrip("/"), get_host_name(address)
    if host.startswith("localhost") or host in ("127.0.0.1", "0.0.0.0", "::1", ""):
        return float(_TELLING.compiled.search(plain) is not None)
    if host.replace(".", "").isdigit():
        return score_ip_privacy(host)
    parts = host.removeprefix("www.").split(".")
    if parts[0] in ("com", "org", "net", "io", "edu", "gov", "java", "javax"):  # a package in code
        return 0.0
    if len(parts) == 1:
        placeholder = host.startswith(("your", "my", "<", "{", "$", "example"))
        return float(not placeholder and host not in vocabulary.get_words("service_hosts"))
    if parts[-1] in vocabulary.get_words("internal_tops") or _PERSONAL.compiled.search(plain):
        return 1.0
    return _score_site(plain, host, parts)


def _score_site(plain: str, host: str, parts: Sequence[str]) -> float:
    """Returns the probability for an address on a reachable host.

    Its form must not be that of a personal page, see `_PERSONAL`.
    """
    domains = {".".join(parts[-n:]) for n in (2, 3)}
    if domains & EXAMPLES or any(map(_PLACEHOLDER.match, parts)):
        return 0.0
    statement_form = _TELLING.compiled.search(plain) is not None
    portal = parts[0] in vocabulary.get_words("portal_hosts")
    if not portal and (host.endswith(_PUBLIC_TOPS) or _STATE.search(host)):
        return float(statement_form)
    if _OFFICIAL.search(host) or domains & vocabulary.get_words("known_domains"):
        return 0.5 if _NAMING.search(plain) else 0.0
    return _score_unknown(plain, host, parts, statement_form=statement_form, portal=portal)


_PLACEHOLDER = LazyPattern(r"your|[<{]")
_OFFICIAL = LazyPattern(r"\.(?:ac|gov)\.")
_NAMING = LazyPattern(r"[?&;][\w\-]*(?:user|mail|phone|name)\w*=[^&]{3}|%40")


def _score_unknown(
    plain: str, host: str, parts: Sequence[str], *, statement_form: bool, portal: bool
) -> float:
    """Returns the probability for an address on an unknown host."""
    is_subdomain, public = _is_subdomain(parts), parts[0] in vocabulary.get_words("public_hosts")
    if statement_form or (is_subdomain and portal):
        return 1.0
    if plain.lower() == host:
        return 0.7 if is_subdomain and not public else 0.2
    return 0.2 if (is_subdomain and public) or _PUBLISHED.compiled.search(plain) else 0.7


def _is_subdomain(parts: Sequence[str]) -> bool:
    """True if a host is a subdomain of a registered domain.

    An example is docs.example.co.uk.
    """
    has_two_part_suffix = len(parts) > 2 and len(parts[-2]) <= 3 and len(parts[-1]) == 2
    return len(parts) > 2 + has_two_part_suffix


def score_ip_privacy(address: str) -> float:
    """Returns the probability that an IP address is private.

    It is 0 for this machine, masks, and well-known addresses.
    """
    try:
        interface = ipaddress.ip_interface(address)
    except ValueError:
        return 1.0
    ip, network = interface.ip, interface.network
    if _is_reserved(ip) or str(ip) in vocabulary.get_words("known_addresses"):
        return 0.0
    if any(ip in block for block in _DOCUMENTED if block.version == ip.version):
        groups = map(any, zip(ip.packed[4::2], ip.packed[5::2], strict=True))
        return float(ip.version == 6 and sum(groups) > 1)
    private = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
    return float("/" not in address or str(network) not in private)


def _is_reserved(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    # From 240 on there are only masks and reserved addresses.
    reserved = ip.version == 4 and ip.packed[0] >= 240
    return ip.is_loopback or ip.is_unspecified or ip.is_multicast or reserved


def score_mail_privacy(address: str) -> float:
    """Returns the probability that a mail address is private.

    It is 0 for placeholders and for well-known services.
    """
    local, _, domain = address.lower().rpartition("@")
    name, desk = ".".join(domain.split(".")[-2:]), local in vocabulary.get_words("desks")
    examples = ("company.com", "email.com", "mail.com", "acme.com")
    if not local:
        return 1.0
    if domain in EXAMPLES or domain.startswith("example.") or name in examples:
        nobody = local in vocabulary.get_words("nobody_mail") or local.startswith(
            ("your", "user", "test")
        )
        return float(not desk and not nobody)
    is_service = name in vocabulary.get_words("known_domains") and name not in FREE_MAIL
    return float(not (desk and is_service))
