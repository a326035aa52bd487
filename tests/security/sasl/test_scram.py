from __future__ import annotations

import base64
import hashlib
import hmac
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kohort.client.sasl import ScramError, scram
from kohort.security.sasl.exchange import AuthenticationFailedError
from kohort.security.sasl.scram import (
    ScramCredential,
    ScramExchange,
    ScramMechanism,
    Shape,
    TokenCredential,
    credential,
    salt_like,
    salted_password,
    shape_of,
)

SALT = b"0123456789"
MECHANISMS = list(ScramMechanism)


def known(mechanism: ScramMechanism, password: str, iterations: int = 4096) -> ScramCredential:
    return credential(mechanism, salted_password(mechanism, password, SALT, iterations), SALT, iterations)


def exchange(mechanism: ScramMechanism, **users: ScramCredential) -> ScramExchange:
    return ScramExchange(mechanism, users.get, lambda: "server-nonce", b"the server's secret")


def authenticate(server: ScramExchange, mechanism: ScramMechanism, name: str, password: str) -> None:
    client = scram(mechanism.value, name, password)
    token = next(client)
    try:
        while True:
            token = client.send(server.evaluate(token))
    except StopIteration:
        return


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_our_client_gets_in_and_knows_the_server(mechanism: ScramMechanism) -> None:
    server = exchange(mechanism, **{"a=l,ice": known(mechanism, "sécret", 5000)})
    authenticate(server, mechanism, "a=l,ice", "sécret")
    assert server.name == "a=l,ice"


def prove(server: ScramExchange, name: str, password: str, extension: str) -> None:
    """Logs in as a client does that sends an extension."""
    first = f"n={name},r=mine{extension}"
    challenge = server.evaluate(f"n,,{first}".encode()).decode()
    last = f"c=biws,{challenge.split(',')[0]}"
    salted = salted_password(ScramMechanism.SHA_256, password, SALT, 4096)
    key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{first},{challenge},{last}".encode(), "sha256")
    proof = base64.b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    server.evaluate(f"{last},p={proof}".encode())


def test_a_token_stands_for_its_owner() -> None:
    token = TokenCredential(known(ScramMechanism.SHA_256, "hmac"), "alice", 5000)

    def server() -> ScramExchange:
        users, tokens = {"id": known(ScramMechanism.SHA_256, "other")}.get, {"id": token}.get
        return ScramExchange(ScramMechanism.SHA_256, users, lambda: "server-nonce", b"secret", tokens)

    by_token, by_name = server(), server()
    prove(by_token, "id", "hmac", ",tokenauth=true")
    assert (by_token.name, by_token.by_token, by_token.expires_at) == ("alice", True, 5000)
    prove(by_name, "id", "other", ",tokenauth=false")
    assert (by_name.name, by_name.by_token, by_name.expires_at) == ("id", False, None)
    for name, password, extension in (
        ("id", "hmac", ""),
        ("id", "other", ",tokenauth=true"),
        ("x", "hmac", ",tokenauth=true"),
    ):
        with pytest.raises(AuthenticationFailedError):
            prove(server(), name, password, extension)


def test_the_example_of_the_rfc() -> None:
    """RFC 7677, section 3."""
    mechanism = ScramMechanism.SHA_256
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    user = credential(mechanism, salted_password(mechanism, "pencil", salt, 4096), salt, 4096)
    server = ScramExchange(mechanism, {"user": user}.get, lambda: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", b"")
    assert server.evaluate(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO") == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert (
        server.evaluate(
            b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
            b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )
    assert server.name == "user"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_names_and_wrong_passwords_look_alike(mechanism: ScramMechanism) -> None:
    said = []
    for name, password in (("alice", "wrong"), ("nobody", "secret")):
        server = exchange(mechanism, alice=known(mechanism, "secret"))
        client = scram(mechanism.value, name, password)
        challenge = server.evaluate(next(client))
        fields = [part.partition(b"=")[0] for part in challenge.split(b",")]
        with pytest.raises(AuthenticationFailedError) as raised:
            server.evaluate(client.send(challenge))
        said.append((fields, str(raised.value)))
        assert server.name is None
    assert said[0] == said[1]


def test_a_name_that_nobody_has_always_gets_the_same_salt() -> None:
    mechanism = ScramMechanism.SHA_512

    def salt(name: str) -> bytes:
        return exchange(mechanism).evaluate(f"n,,n={name},r=x".encode()).split(b",")[1]

    assert salt("nobody") == salt("nobody") != salt("somebody")


def test_no_proof_gets_in_as_nobody() -> None:
    """The credential that stands for none can't be proved, not even by who knows what it is made of."""
    mechanism = ScramMechanism.SHA_256
    for proof in (bytes(32), b"\xff" * 32):
        server = exchange(mechanism)
        challenge = server.evaluate(b"n,,n=nobody,r=x").decode()
        nonce = challenge.split(",")[0]
        with pytest.raises(AuthenticationFailedError):
            server.evaluate(f"c=biws,{nonce},p={base64.b64encode(proof).decode()}".encode())


@pytest.mark.parametrize(
    "first",
    ["", "n,,", "p=tls-unique,,n=a,r=x", "n,b=c,n=a,r=x", "n,,r=x,n=a", "n,,n=a", "n,,n=a,r=", "n,,n=a=2,r=x",
     "n,,m=x,n=a,r=x", "n,,n=a,n=b,r=x", "n,a=b,n=a,r=x"],
)  # fmt: skip
def test_a_first_message_that_is_none(first: str) -> None:
    with pytest.raises(AuthenticationFailedError):
        exchange(ScramMechanism.SHA_256, a=known(ScramMechanism.SHA_256, "x")).evaluate(first.encode())


@pytest.mark.parametrize("change", ["nonce", "header", "proof", "short", "text"])
def test_a_last_message_that_is_none(change: str) -> None:
    mechanism = ScramMechanism.SHA_256
    server = exchange(mechanism, alice=known(mechanism, "secret"))
    client = scram(mechanism.value, "alice", "secret")
    last = client.send(server.evaluate(next(client))).decode()
    changed = {
        "nonce": last.replace("server-nonce", "other-nonce"),
        "header": last.replace("c=biws", "c=eSws"),
        "proof": last[:-4] + "AAA=",
        "short": last.partition(",p=")[0] + ",p=AAAA",
        "text": "nothing",
    }[change]
    with pytest.raises(AuthenticationFailedError):
        server.evaluate(changed.encode())
    assert server.name is None


def test_extensions_are_passed_over() -> None:
    server = exchange(ScramMechanism.SHA_256, alice=known(ScramMechanism.SHA_256, "secret"))
    assert server.evaluate(b"n,,n=alice,r=x,tokenauth=true").startswith(b"r=xserver-nonce,")


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=80), max_size=4))
def test_any_bytes(tokens: list[bytes]) -> None:
    server = exchange(ScramMechanism.SHA_256, a=known_a())
    for token in itertools.chain(tokens, [b"n,,n=a,r=x"], tokens):
        try:
            server.evaluate(token)
        except AuthenticationFailedError:
            break
    assert server.name is None


_A: list[ScramCredential] = []


def known_a() -> ScramCredential:
    if not _A:
        _A.append(known(ScramMechanism.SHA_256, "x"))
    return _A[0]


def test_a_client_that_is_told_a_wrong_signature_notices() -> None:
    mechanism = ScramMechanism.SHA_256
    server = exchange(mechanism, alice=known(mechanism, "secret"))
    client = scram(mechanism.value, "alice", "secret")
    server.evaluate(client.send(server.evaluate(next(client))))
    with pytest.raises(ScramError):
        client.send(b"v=AAAA")


def challenge_of_nobody(shape: Shape | None, name: str = "nobody", extension: str = "") -> tuple[bytes, int]:
    """Salt and iterations that somebody is shown whom there isn't."""
    server = ScramExchange(
        ScramMechanism.SHA_256, {}.get, lambda: "nonce", b"secret", shape=None if shape is None else lambda: shape
    )
    fields = server.evaluate(f"n,,n={name},r=x{extension}".encode()).decode().split(",")
    return base64.b64decode(fields[1][2:]), int(fields[2][2:])


@pytest.mark.parametrize("shape", [Shape(4096), Shape(8192), Shape(4096, 16), Shape(10_000, 64), Shape(4096, 0)])
def test_who_is_not_there_looks_as_most_who_are(shape: Shape) -> None:
    salt, iterations = challenge_of_nobody(shape)
    assert shape_of(ScramCredential(salt, b"", b"", iterations)) == shape
    assert challenge_of_nobody(shape) == (salt, iterations)
    if shape.salt_bytes != 0:
        assert challenge_of_nobody(shape, "other")[0] != salt


def test_a_salt_as_kafkas_tools_make_it() -> None:
    lengths = {len(salt_like(Shape(4096), bytes([number]))) for number in range(50)}
    assert {25, 26} <= lengths <= {24, 25, 26}


def test_unknown_tokens_look_like_tokens() -> None:
    salt, iterations = challenge_of_nobody(Shape(9000), "id", ",tokenauth=true")
    assert (len(salt), iterations) == (26, 4096)
