"""Policy check: do the files, folders and variables that a policy names exist?

In: a policy, and the file with its text. Out: nothing, or `PolicyError`; a list of things that may
still come before the gateway starts.
Not here: the fields of a policy (`policy`), and reading its file (`policy_file`).
"""

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from textveil.config.option_sources import YamlPath
from textveil.config.secret_files import warn_if_readable
from textveil.errors import ConfigError, TextveilError
from textveil.gateway.policy.client_keys import GatewayKeys
from textveil.gateway.policy.policy import Credential, Policy, PolicyError, TlsFiles, join_place
from textveil.gateway.policy.policy_file import read_policy_source
from textveil.gateway.server import build_tls_context

FILE_OPTIONS = ("prior", "table.name", "rerank.model", "words.tokenizer", "protect.classifier")
"""Options that name a file or a folder.

All except the first may also name something that is not a file.
"""


class PolicyFault(NamedTuple):
    """Fault in something that a policy names: missing or unusable.

    Args:
        place: its place in the policy.
        message: the message.
        can_appear: whether it may exist when the gateway starts.
    """

    place: YamlPath
    message: str
    can_appear: bool = False


def check_references(policy: Policy, path: str | None = None, *, starts: bool = True) -> list[str]:
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
    missing = list(_find_faults(policy))
    if not missing:
        return []
    lines: dict[YamlPath, int] = {}
    if path is not None:
        path, _, lines, _ = read_policy_source(path)
    faults = [(fault.place, fault.message) for fault in missing if starts or not fault.can_appear]
    wrong = faults or [(fault.place, fault.message) for fault in missing]
    error = PolicyError(wrong, lines, path or "")
    if faults:
        raise error
    return error.messages


def _find_faults(policy: Policy) -> Iterator[PolicyFault]:
    used_names = {policy.upstream, *(rule.upstream for rule in policy.rules)} - {None}
    for name, upstream in policy.upstreams.items():
        if upstream.credential is not None and (policy.upstream is None or name in used_names):
            yield from _check_credential(upstream.credential, ("upstreams", name, "credential"))
    if policy.keys is not None:
        yield from _check_keys(policy.keys)
    if policy.tls is not None:
        yield from _check_tls(policy.tls)
    yield from _check_options(policy.options, ())
    for i, rule in enumerate(policy.rules):
        yield from _check_options(rule.options, ("rules", i))


def _check_tls(tls: TlsFiles) -> Iterator[PolicyFault]:
    warn_if_readable(tls.key)
    files = (tls.certificate, ("tls", "certificate")), (tls.key, ("tls", "key"))
    unread = [missing for file in files for missing in _check_file(*file)]
    yield from unread
    try:
        if not unread:
            build_tls_context(tls)
    except ConfigError as error:
        yield PolicyFault(("tls",), str(error))


def _check_options(options: dict[str, Any], place: YamlPath) -> Iterator[PolicyFault]:
    for option in FILE_OPTIONS:
        file = options.get(option)
        if not isinstance(file, str) or os.path.exists(file):
            continue
        if option == FILE_OPTIONS[0] or file.startswith(("/", "./", "../")):
            option_place = (*place, "options", option)
            yield PolicyFault(
                option_place, f"{join_place(option_place)}: there is no file or folder {file!r}"
            )
    if isinstance(codes := options.get("table.codes"), str):
        yield from _check_books(codes, (*place, "options", "table.codes"))


def _check_credential(credential: Credential, place: YamlPath) -> Iterator[PolicyFault]:
    try:
        credential.read()
    except ConfigError as error:
        later = credential.env is not None and credential.env not in os.environ
        yield PolicyFault(place, f"{join_place(place)}: {error}", later)


def _check_keys(path: str) -> Iterator[PolicyFault]:
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        yield PolicyFault(("keys",), f"keys: there is no folder {folder!r}")
        return
    try:
        GatewayKeys(path)
    except TextveilError as error:
        yield PolicyFault(("keys",), f"keys: {error}", can_appear=not os.path.lexists(path))


def _check_books(codes: str, place: YamlPath) -> Iterator[PolicyFault]:
    from textveil.table import find_books, list_choices

    try:
        if not list_choices(codes):
            find_books(codes)
    except TextveilError as error:
        yield PolicyFault(place, f"{join_place(place)}: {error}")


def _check_file(path: str, place: YamlPath) -> Iterator[PolicyFault]:
    try:
        with open(path, "rb"):
            return
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a path"
    yield PolicyFault(place, f"{join_place(place)}: {path!r} cannot be read: {reason}")
