from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.security.distinguished_names import PrincipalMapper, RuleError, distinguished_name

ALICE = "CN=alice,OU=apps,O=Ex\\, Inc.,C=US"


def test_names_are_written_as_java_does() -> None:
    subject = (
        (("countryName", "US"),),
        (("organizationName", "Ex, Inc."),),
        (("organizationalUnitName", "apps"), ("userId", "7")),
        (("commonName", " #a\\b "),),
    )
    assert distinguished_name(subject) == "CN=\\ #a\\\\b\\ ,OU=apps+UID=7,O=Ex\\, Inc.,C=US"
    assert distinguished_name(()) == ""


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", ALICE),
        ("RULE:^CN=(.*?),.*$/$1/", "alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U , DEFAULT", "ALICE@APPS"),
        ("RULE:^UID=(.*?),.*$/$1/, RULE:CN=([^,]*),.*/User-$1/L, DEFAULT", "user-alice"),
        ("RULE:CN=(.*)/$2$0x/, DEFAULT", f"{ALICE}x"),
        ("RULE:alice/bob/", None),
        (r"RULE:CN=(\w+),OU=.*/a\/\$1/", "a/$1"),
        ("", None),
    ],
)
def test_the_first_rule_that_matches_counts(rules: str, name: str | None) -> None:
    assert PrincipalMapper(rules).name(ALICE) == name


@pytest.mark.parametrize("rules", ["RULE:a/b", "RULE:(/b/", "DEFAULT DEFAULT", "ALICE", "RULE:a/b/X", "RULE:(?=a)/b/"])
def test_rules_that_are_none(rules: str) -> None:
    with pytest.raises(RuleError):
        PrincipalMapper(rules)


@given(st.text("RULE:DFAT/,\\$1()a^ ", max_size=30), st.text(max_size=30))
def test_any_rules(rules: str, name: str) -> None:
    with contextlib.suppress(RuleError):
        PrincipalMapper(rules).name(name)
