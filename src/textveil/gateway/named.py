"""Policy check: do the files, folders and variables that a policy names exist?

In: a policy, and the file with its text. Out: nothing, or `PolicyError`; a list of things that may
still come before the gateway starts.
Not here: the fields of a policy (`policy`), and reading its file (`policy_file`).
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from textveil.config.sources import Place, read_marked
from textveil.errors import ConfigError, TextveilError
from textveil.gateway.keys import GatewayKeys
from textveil.gateway.policy import Credential, Policy, PolicyError, TlsFiles, dotted
from textveil.gateway.serving import tls_context

FILES = ("prior", "table.name", "rerank.model", "words.tokenizer", "protect.classifier")
"""Options that name a file or a folder.

All except the first may also name something that is not a file.
"""


class Missing(NamedTuple):
    """Fault in something that a policy names: missing or unusable.

    Args:
        place: its place in the policy.
        says: the message.
        later: whether it may exist when the gateway starts.
    """

    place: Place
    says: str
    later: bool = False


def check_named(policy: Policy, path: str | None = None, *, starts: bool = True) -> list[str]:
    """Checks that everything a policy names exists and can be used.

    Args:
        policy: the policy.
        path: the file of the policy; None for no file.
        starts: whether the gateway starts now; else some things may still be created before it
            does.

    Returns:
        Messages about missing things that may still come, one line each.

    Raises:
        PolicyError: something is missing, or cannot be used.
    """
    missing = list(_find_missing(policy))
    if not missing:
        return []
    lines = read_marked(Path(path))[1] if path is not None else {}
    faults = [(each.place, each.says) for each in missing if starts or not each.later]
    wrong = faults or [(each.place, each.says) for each in missing]
    error = PolicyError(wrong, lines, path or "")
    if faults:
        raise error
    return error.said


def _find_missing(policy: Policy) -> Iterator[Missing]:
    asked = {policy.upstream, *(rule.upstream for rule in policy.rules)} - {None}
    for name, to in policy.upstreams.items():
        if to.credential is not None and (policy.upstream is None or name in asked):
            yield from _check_credential(to.credential, ("upstreams", name, "credential"))
    if policy.keys is not None:
        yield from _check_keys(policy.keys)
    if policy.tls is not None:
        yield from _check_tls(policy.tls)
    yield from _check_options(policy.options, ())
    for i, rule in enumerate(policy.rules):
        yield from _check_options(rule.options, ("rules", i))


def _check_tls(tls: TlsFiles) -> Iterator[Missing]:
    files = (tls.certificate, ("tls", "certificate")), (tls.key, ("tls", "key"))
    unread = [missing for file in files for missing in _check_file(*file)]
    yield from unread
    try:
        if not unread:
            tls_context(tls)
    except ConfigError as error:
        yield Missing(("tls",), str(error))


def _check_options(options: dict[str, Any], place: Place) -> Iterator[Missing]:
    for option in FILES:
        file = options.get(option)
        if not isinstance(file, str) or os.path.exists(file):
            continue
        if option == FILES[0] or file.startswith(("/", "./", "../")):
            where = (*place, "options", option)
            yield Missing(where, f"{dotted(where)}: there is no file or folder {file!r}")
    if isinstance(codes := options.get("table.codes"), str):
        yield from _check_books(codes, (*place, "options", "table.codes"))


def _check_credential(credential: Credential, place: Place) -> Iterator[Missing]:
    try:
        credential.read()
    except ConfigError as error:
        later = credential.env is not None and credential.env not in os.environ
        yield Missing(place, f"{dotted(place)}: {error}", later)


def _check_keys(path: str) -> Iterator[Missing]:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        yield Missing(("keys",), f"keys: there is no folder {folder!r}")
        return
    try:
        GatewayKeys(path)
    except TextveilError as error:
        yield Missing(("keys",), f"keys: {error}", later=not os.path.lexists(path))


def _check_books(codes: str, place: Place) -> Iterator[Missing]:
    from textveil.table import choice, find_books

    try:
        if not choice(codes):
            find_books(codes)
    except TextveilError as error:
        yield Missing(place, f"{dotted(place)}: {error}")


def _check_file(path: str, place: Place) -> Iterator[Missing]:
    try:
        with open(path, "rb"):
            return
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a path"
    yield Missing(place, f"{dotted(place)}: {path!r} cannot be read: {reason}")
