"""The broker's keys of who gets in and what they may do: TLS, SASL, delegation tokens, the authorizer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from kohort.broker.config.keys import BOOLEAN, CLASS, INT, LIST, LONG, PASSWORD, STRING, Key, Value, keys_by_name
from kohort.security.distinguished_names import PrincipalMapper, RuleError
from kohort.security.sasl.jaas import JaasError, parse_jaas

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
PRINCIPAL_BUILDER: Final = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
VALIDATORS: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)
"""Kafka's names, new and old, of what checks the signed tokens of OAUTHBEARER; here nothing else does."""

_DAY_MS: Final = 86_400_000


def _one_of(what: str, *classes: str) -> Callable[[Value], str | None]:
    """Classes of Java whose work is done here; another would decide otherwise, so it can't be ignored."""

    def check(value: Value) -> str | None:
        if value in ("", *classes):
            return None
        return f"it names a class of Java; {f'{what} here is {classes[0]}' if classes else f'{what} is fixed here'}"

    return check


def _principals(value: Value) -> str | None:
    wrong = [part for each in str(value).split(";") if (part := each.strip()) and ":" not in part]
    return f"{wrong[0]!r} isn't TYPE:NAME, such as User:alice" if wrong else None


def _rules(value: Value) -> str | None:
    try:
        PrincipalMapper(str(value))
    except RuleError as error:
        return str(error)
    return None


def _jaas(value: Value) -> str | None:
    try:
        parse_jaas(str(value))
    except JaasError as error:
        return str(error)
    return None


# fmt: off
_AUTHORIZER: Final = (
    Key("authorizer.class.name", STRING, "",
        "The authorizer, which decides who may do what: Kafka's StandardAuthorizer; empty: everything is allowed.",
        check=_one_of("the authorizer", STANDARD_AUTHORIZER)),
    Key("super.users", STRING, "", "Principals that are allowed everything, as User:alice;User:bob.",
        check=_principals, internal=True),
    Key("allow.everyone.if.no.acl.found", BOOLEAN, False,
        "Whether everyone may do everything to what no access rule is about.", internal=True),
    Key("principal.builder.class", CLASS, PRINCIPAL_BUILDER,
        "What makes principals of connections; there is Kafka's default alone.",
        check=_one_of("what makes principals", PRINCIPAL_BUILDER)),
)

_TLS: Final = (
    Key("ssl.client.auth", STRING, "none",
        "Whether clients must show a certificate, may, or needn't; with SASL_SSL it counts only as listener.name.… .",
        valid=("required", "requested", "none")),
    Key("ssl.principal.mapping.rules", STRING, "DEFAULT",
        "Rules that make names of principals out of those in client certificates.", check=_rules),
    Key("ssl.enabled.protocols", LIST, ("TLSv1.2", "TLSv1.3"), "The versions of TLS.", valid=("TLSv1.2", "TLSv1.3")),
    Key("ssl.cipher.suites", LIST, (), "Cipher suites of TLS 1.2; empty for OpenSSL's choice."),
    Key("ssl.keystore.type", STRING, "JKS", "The keystore's format; the file itself tells PEM from PKCS12.",
        valid=("JKS", "PEM", "PKCS12")),
    Key("ssl.keystore.location", STRING, None, "A file with the listener's private key and certificates."),
    Key("ssl.keystore.password", PASSWORD, None, "The password of a PKCS12 keystore."),
    Key("ssl.key.password", PASSWORD, None, "The password of the private key, if it is encrypted."),
    Key("ssl.keystore.key", PASSWORD, None, "The private key itself, as PEM."),
    Key("ssl.keystore.certificate.chain", PASSWORD, None, "The certificates themselves, as PEM."),
    Key("ssl.truststore.type", STRING, "JKS", "The truststore's format; the file itself tells PEM from PKCS12.",
        valid=("JKS", "PEM", "PKCS12")),
    Key("ssl.truststore.location", STRING, None, "A file with the certificates that clients' are signed by."),
    Key("ssl.truststore.password", PASSWORD, None, "The password of a PKCS12 truststore."),
    Key("ssl.truststore.certificates", PASSWORD, None, "Those certificates themselves, as PEM."),
    Key("ssl.engine.factory.class", CLASS, None, "What makes TLS connections; none can be given.",
        check=_one_of("what makes TLS connections")),
)

_SASL: Final = (
    Key("sasl.enabled.mechanisms", LIST, ("GSSAPI",),
        "The SASL mechanisms that clients may use: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER."),
    Key("sasl.jaas.config", PASSWORD, None,
        "The login module of a mechanism, with PLAIN's users; as listener.name.NAME.MECHANISM.sasl.jaas.config.",
        check=_jaas),
    Key("sasl.server.callback.handler.class", CLASS, None,
        "What checks credentials; only Kafka's own for OAUTHBEARER can be given.",
        check=_one_of("what checks credentials", *VALIDATORS)),
    Key("sasl.server.max.receive.size", INT, 524_288,
        "Size of the largest request before a client is known, in bytes."),
    Key("connections.max.reauth.ms", LONG, 0,
        "How long a client is known until it must authenticate again, in ms; 0 for ever."),
    Key("connection.failed.authentication.delay.ms", INT, 100,
        "How long the answer to a failed authentication is held back, in ms.", 0),
)

_OAUTHBEARER: Final = (
    Key("sasl.oauthbearer.jwks.endpoint.url", STRING, None,
        "Where the keys are that tokens must be signed by (JWKS): a file, http or https URL."),
    Key("sasl.oauthbearer.jwks.endpoint.refresh.ms", LONG, 3_600_000, "Interval of reading the keys again, in ms."),
    Key("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", LONG, 100,
        "Time before the keys are asked for again after a failure, in ms."),
    Key("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", LONG, 10_000,
        "The longest such time, as it grows with each failure, in ms."),
    Key("sasl.oauthbearer.expected.audience", LIST, (), "Audiences of which a token must name one; empty for any."),
    Key("sasl.oauthbearer.expected.issuer", STRING, None, "The issuer that a token must name; none for any."),
    Key("sasl.oauthbearer.clock.skew.seconds", INT, 30, "How much the issuer's clock may differ, in seconds."),
    Key("sasl.oauthbearer.scope.claim.name", STRING, "scope", "The claim with a token's scopes."),
    Key("sasl.oauthbearer.sub.claim.name", STRING, "sub", "The claim with the client's name."),
)

_DELEGATION_TOKENS: Final = (
    Key("delegation.token.secret.key", PASSWORD, None,
        "The secret that delegation tokens are made with; without it there are none."),
    Key("delegation.token.max.lifetime.ms", LONG, 7 * _DAY_MS,
        "Time after which a delegation token can't be renewed any more, in ms.", 1),
    Key("delegation.token.expiry.time.ms", LONG, _DAY_MS,
        "Time after which a delegation token expires unless it is renewed, in ms.", 1),
    Key("delegation.token.expiry.check.interval.ms", LONG, 3_600_000,
        "Interval of removing expired delegation tokens, in ms.", 1),
)
# fmt: on

SECURITY_KEYS: Final = keys_by_name(_AUTHORIZER, _TLS, _SASL, _OAUTHBEARER, _DELEGATION_TOKENS)

_MECHANISMS: Final = ("plain", "scram-sha-256", "scram-sha-512", "oauthbearer")
_OF_MECHANISMS: Final = keys_by_name(_SASL, _OAUTHBEARER)
_OF_LISTENERS: Final = keys_by_name(_TLS, _SASL, _OAUTHBEARER)
_PREFIX: Final = "listener.name."


class ListenerKey(NamedTuple):
    """A key that is set for one listener, or one mechanism of it, or one mechanism of all.

    Attributes:
        listener, mechanism: in lower case; "" for all.
        rest: what comes after them.
        key: what is set; None if that isn't a key of listeners.
    """

    listener: str
    mechanism: str
    rest: str
    key: Key | None


def listener_key(name: str) -> ListenerKey | None:
    """Splits `listener.name.LISTENER.[MECHANISM.]KEY` or `MECHANISM.KEY`; None for a name of another form."""
    listener, rest = "", name
    if name.startswith(_PREFIX):
        listener, _, rest = name.removeprefix(_PREFIX).partition(".")
    mechanism, _, of_mechanism = rest.partition(".")
    if mechanism in _MECHANISMS:
        return ListenerKey(listener, mechanism, of_mechanism, _OF_MECHANISMS.get(of_mechanism))
    return ListenerKey(listener, "", rest, _OF_LISTENERS.get(rest)) if listener else None


def listener_key_ends() -> Iterator[str]:
    """What may come after `listener.name.LISTENER.`: keys, and keys of mechanisms."""
    yield from _OF_LISTENERS
    for mechanism in _MECHANISMS:
        for name in _OF_MECHANISMS:
            yield f"{mechanism}.{name}"


def listener_prefixes(listener: str, mechanism: str = "") -> tuple[str, ...]:
    """The prefixes of what is set for a listener, or a mechanism of it; later ones are more special."""
    own = f"{_PREFIX}{listener.lower()}."
    return (f"{mechanism.lower()}.", own, f"{own}{mechanism.lower()}.") if mechanism else (own,)
