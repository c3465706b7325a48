"""Well-known forms of secrets: each is found whole, and what only looks like one is not."""

import re
import subprocess
import sys
import tomllib
from importlib.resources import files

import pytest

from textveil.detect.patterns import Patterns, secrets

FORMS = tomllib.loads((files("textveil") / "data/secrets.toml").read_text("utf-8"))["form"]


def spelled(text):
    """Repeats what stands in braces as often as its number says: {ab*3} is ababab."""
    return re.sub(r"\{(\w+)\*(\d+)\}", lambda match: match[1] * int(match[2]), text)


def found_secrets(text):
    return [
        text[span.start : span.end]
        for span in Patterns().find([text])
        if (span.type, span.score) == ("SECRET", 1.0)
    ]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form["name"])
def test_each_form_is_found_whole_and_nothing_that_only_looks_like_it(form):
    text, other = spelled(form["found"]), spelled(form["not_found"])
    for around in ("{}", "it is {}, then", 'x="{}";', "秘密は{}です"):
        assert found_secrets(around.replace("{}", text)) == [text], around
    assert found_secrets(f"it is {other}, then") == []
    assert re.fullmatch(form["pattern"], text)
    assert not re.fullmatch(form["pattern"], other)


def test_names_are_told_apart_and_nothing_looks_like_a_secret():
    assert len({form["name"] for form in FORMS}) == len(FORMS)
    content = (files("textveil") / "data/secrets.toml").read_text("utf-8")
    assert not secrets.RULES[0].pattern.compiled.search(content)


def test_forms_are_read_when_they_are_first_sought():
    code = (
        "import sys, textveil.detect.patterns as patterns;"
        "assert 'compiled' not in vars(patterns.secrets.RULES[0].pattern);"
        "patterns.Patterns().find(['a']);"
        "assert 'compiled' in vars(patterns.secrets.RULES[0].pattern)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


CODE = (
    "org.springframework.NamedParameterJdbcTemplate.update.something_really_long_for_it_x",
    "MaximumLikelihoodEstimator.fitted.covariance_matrix_of_parameters",
    "NetworkConnectivityManager.status.isReachableViaWirelessNetwork",
    "import gldt-something-else-really-long-name",
    "pays $5$10,000-20,000 a year",
)


@pytest.mark.parametrize("text", CODE)
def test_names_of_code_and_amounts_are_no_secrets(text):
    assert found_secrets(text) == []


@pytest.mark.parametrize(
    "value",
    [
        "{SSHA}" + "abcdEFGH1234" * 3,
        "{ssha512}" + "abcdEFGH1234" * 3,
        "{crypt}$6$salt!salt$" + "abcd" * 20,
    ],
)
def test_schemes_of_ldap_are_read_in_any_case(value):
    assert found_secrets(f"userPassword: {value}") == [value]
