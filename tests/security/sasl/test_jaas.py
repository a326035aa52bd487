from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kohort.security.sasl.jaas import JaasError, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_users_of_plain() -> None:
    module = parse_jaas(
        f"""{PLAIN} required // the broker's own
            username="admin" password=admin-secret /* and those
            of clients */ user_alice="a \\"quoted\\" one" user_bob='\\101;=' ;
        """
    )
    assert (module.name, module.flag) == (PLAIN, "required")
    assert module.passwords() == {"alice": 'a "quoted" one', "bob": "A;="}
    assert module.options["password"] == "admin-secret"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the class of a login module"),
        (f"{PLAIN}", "required, requisite"),
        (f"{PLAIN} maybe;", "required, requisite"),
        (f"{PLAIN} required", "an option, or ;"),
        (f"{PLAIN} required a;", "= after an option's name"),
        (f"{PLAIN} required a=;", "an option's value"),
        (f'{PLAIN} required a="b;', "a quote isn't closed"),
        (f"{PLAIN} required; {PLAIN} required;", "one login module"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(JaasError, match=said):
        parse_jaas(text)


def test_no_message_shows_a_secret() -> None:
    for options in ('password="hunter2" user_a=hunter2 hunter2', "user_a=not quoted hunter2=;"):
        with pytest.raises(JaasError) as raised:
            parse_jaas(f"{PLAIN} required {options}")
        assert "hunter2" not in str(raised.value)
    assert "hunter2" not in repr(parse_jaas(f'{PLAIN} required password="hunter2";'))


NAMES = st.text("abcXYZ_-.0", min_size=1, max_size=8)


@given(st.dictionaries(NAMES, st.text(max_size=12)))
def test_any_passwords(users: dict[str, str]) -> None:
    def quoted(text: str) -> str:
        out = "".join({"\\": "\\\\", '"': '\\"', "\n": "\\n"}.get(char, char) for char in text)
        return f'"{out}"'

    options = " ".join(f"user_{name}={quoted(password)}" for name, password in users.items())
    assert parse_jaas(f"{PLAIN} required {options};").passwords() == users


@given(st.text("ab=;'\"\\/* \n", max_size=30))
def test_any_text(text: str) -> None:
    try:
        parse_jaas(text)
    except JaasError as error:
        assert str(error)
