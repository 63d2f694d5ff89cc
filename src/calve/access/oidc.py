"""Sign-in with OpenID Connect: authorization code with PKCE; issuer, audience and algorithms are pinned."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from calve.access.credentials import RandomBytes, is_same
from calve.access.permissions import Grants, Role, parse_grants
from calve.errors import ProviderFailed, SettingsInvalid, Unauthenticated

ALGORITHMS = ("RS256", "ES256")
"""Accepted signature algorithms; never ``none``, and never one with a shared key."""
LEEWAY = 30_000
"""Accepted difference between the clocks of the provider and this machine, in milliseconds."""
KEPT = 3_600_000
"""Milliseconds until keys are fetched again: a key that the provider revoked is accepted no longer than that."""
MISSED = 60_000
"""Milliseconds until keys may be fetched again for an unknown key."""
FAILED = 5_000
"""Milliseconds until the provider is asked again after a failure, so that others need not wait for it too."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

Json = Mapping[str, Any]


class Fetch(Protocol):
    """Communicates with the provider.

    Raises:
        ProviderFailed: it does not respond, or not as specified.
        Unauthenticated: it rejects the person's code.
    """

    def get(self, url: str) -> Any:
        """Return a document."""
        ...

    def post(self, url: str, form: Mapping[str, str]) -> Any:
        """Send a form, and return the document in the response."""
        ...


@dataclass(frozen=True, slots=True)
class OidcClient:
    """The registration of calve at the provider."""

    issuer: str
    client_id: str
    redirect_url: str
    scopes: tuple[str, ...]
    name_claim: str
    groups_claim: str
    roles: Mapping[str, str]
    secret: Callable[[], str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class SignInRequest:
    """A sign-in in progress; the browser keeps all but the address until it returns."""

    url: str
    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Person:
    """A user that the provider authenticated."""

    subject: str
    shown: str
    grants: Grants


class Provider:
    """An identity provider; its endpoints and keys are discovered when they are needed."""

    def __init__(self, client: OidcClient, fetch: Fetch, clock: Callable[[], int], random: RandomBytes) -> None:
        _check_address(client.issuer, "access.oidc.issuer")
        for group, role in client.roles.items():
            _grants_of(group, role)
        self._client, self._fetch, self._clock, self._random = client, fetch, clock, random
        self._metadata: Json | None = None
        self._keys: Json = {}
        self._fetched_at = -KEPT
        self._missed_at = -MISSED
        self._failed_at = -FAILED
        self._lock = Lock()

    def begin(self) -> SignInRequest:
        """Return the address at which to sign in."""
        state, nonce, verifier = (_text(self._random(32)) for _ in range(3))
        return SignInRequest(_asking(self._client, self._discovered(), state, nonce, verifier), state, nonce, verifier)

    def finish(self, begun: SignInRequest, answer: Mapping[str, str]) -> Person:
        """Return the person, from what the browser returned.

        Raises:
            Unauthenticated: the response does not match, or is not from the provider, not for us, or too late.
            ProviderFailed: the provider does not return the person's identity.
        """
        metadata = self._discovered()
        if not is_same(answer.get("state", ""), begun.state) or not _is_from(metadata, answer):
            raise Unauthenticated("The identity provider's response does not belong to this sign-in.")
        if not answer.get("code"):
            raise _refused(refusal_of(answer.get("error")))
        form = _exchange(self._client, answer["code"], begun.verifier)
        token = self._fetch.post(str(metadata["token_endpoint"]), form).get("id_token")
        claims = checked(self._signed(str(token)), self._client, begun.nonce, self._clock())
        return person(claims, self._client)

    def _discovered(self) -> Json:
        with self._lock:
            if self._metadata is None:
                url = f"{self._client.issuer.rstrip('/')}/.well-known/openid-configuration"
                self._metadata = _metadata(self._get(url), self._client.issuer)
            return self._metadata

    def _get(self, url: str) -> Any:
        """Fetch a document while holding the lock; if the provider does not respond, one request waits, and not all."""
        if self._clock() - self._failed_at < FAILED:
            raise ProviderFailed("The identity provider does not answer.")
        try:
            return self._fetch.get(url)
        except ProviderFailed:
            self._failed_at = self._clock()
            raise

    def _signed(self, token: str) -> Json:
        """Return the claims of a token that one of the provider's keys has signed."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), str(header.get("kid", ""))
            # The algorithm is checked before the key is looked up: a token must not choose how it is verified.
            if algorithm not in ALGORITHMS:
                raise Unauthenticated("The identity provider's token has an unsupported signature algorithm.")
            key = jwt.PyJWK(dict(self._key(key_id)), algorithm).key
            claims: Json = jwt.decode(token, key, algorithms=[algorithm], options=_OPTIONS)
        except jwt.PyJWTError:
            raise Unauthenticated("The identity provider's token is invalid.") from None
        return claims

    def _key(self, key_id: str) -> Json:
        uri, now = str(self._discovered()["jwks_uri"]), self._clock()
        with self._lock:
            # A new key id means that the provider rotated its keys. Bounded, or made-up ids would make us fetch at
            # each request.
            is_new = key_id not in self._keys and now - self._missed_at >= MISSED
            if is_new or now - self._fetched_at >= KEPT:
                self._keys, self._fetched_at = _signing(self._get(uri)), now
                self._missed_at = self._missed_at if key_id in self._keys else now
            if key_id not in self._keys:
                raise Unauthenticated("The identity provider's token is signed with an unknown key.")
            return dict(self._keys[key_id])


_OPTIONS: Any = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False}
"""Checked by ``checked`` instead, with our own clock."""


def checked(claims: Json, client: OidcClient, nonce: str, now: int) -> Json:
    """Return the claims, if they are from the issuer, for us, of this sign-in, and valid now.

    Raises:
        Unauthenticated: they are not.
    """
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    is_for_us = client.client_id in audiences and claims.get("azp", client.client_id) == client.client_id
    times = [claims.get(name) for name in ("exp", "iat", "nbf")]
    if claims.get("iss") != client.issuer or not is_for_us or not claims.get("sub"):
        raise Unauthenticated("The identity provider's token is for another server.")
    if not is_same(str(claims.get("nonce", "")), nonce):
        raise Unauthenticated("The identity provider's token does not belong to this sign-in.")
    exp, iat, nbf = (time * 1_000 if isinstance(time, int | float) else None for time in times)
    if exp is None or iat is None or now > exp + LEEWAY or iat > now + LEEWAY or (nbf or 0) > now + LEEWAY:
        raise Unauthenticated("The identity provider's token is expired or not valid yet.")
    return claims


def person(claims: Json, client: OidcClient) -> Person:
    """Return the user and the roles of their groups; no roles if none of the groups is listed."""
    groups = claims.get(client.groups_claim, [])
    names = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    grants: dict[str, Role] = {}
    for group in names:
        for namespace, role in _grants_of(group, client.roles[group]).items() if group in client.roles else ():
            grants[namespace] = max(grants.get(namespace, role), role, key=list(Role).index)
    subject = str(claims["sub"])
    return Person(subject, str(claims.get(client.name_claim) or subject), grants)


def refusal_of(code: object) -> str:
    """Return the provider's reason for a refusal, if it is a valid OAuth error code."""
    return code if isinstance(code, str) and re.fullmatch("[a-z_]{1,40}", code) else ""


def _refused(code: str) -> Unauthenticated:
    if code in {"", "access_denied"}:
        return Unauthenticated("The identity provider rejected the sign-in.")
    remedy = "Check that it supports all of access.oidc.scopes." if code == "invalid_scope" else "Sign in again."
    return Unauthenticated(f"The identity provider rejected the sign-in: {code}.", remedy=remedy)


def _is_from(metadata: Json, answer: Mapping[str, str]) -> bool:
    """Tell whether a response is from the provider, if the provider names itself in responses (RFC 9207)."""
    if "iss" not in answer:
        return metadata.get("authorization_response_iss_parameter_supported") is not True
    return answer["iss"] == str(metadata["issuer"])


def _signing(document: Json) -> Json:
    """Return the signing keys by id."""
    found = document.get("keys")
    keys = [key for key in found if isinstance(key, Mapping)] if isinstance(found, list) else []
    return {str(key.get("kid", "")): key for key in keys if key.get("use", "sig") == "sig"}


def _grants_of(group: str, text: str) -> dict[str, Role]:
    return parse_grants(text.replace(",", " ").split()) if isinstance(group, str) else {}


def _asking(client: OidcClient, metadata: Json, state: str, nonce: str, verifier: str) -> str:
    asked = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": client.redirect_url,
        "scope": " ".join(client.scopes),
        "state": state,
        "nonce": nonce,
        "code_challenge": _text(hashlib.sha256(verifier.encode()).digest()),
        "code_challenge_method": "S256",
    }
    endpoint = str(metadata["authorization_endpoint"])
    return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"


def _exchange(client: OidcClient, code: str, verifier: str) -> dict[str, str]:
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": client.redirect_url,
        "client_id": client.client_id,
        "code_verifier": verifier,
    }
    return form if client.secret is None else form | {"client_secret": client.secret()}


def _metadata(document: Any, issuer: str) -> Json:
    if not isinstance(document, Mapping) or document.get("issuer") != issuer:
        raise ProviderFailed("The issuer of the identity provider differs from access.oidc.issuer.")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        _check_address(str(document.get(name, "")), name)
    return document


def _check_address(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise SettingsInvalid(f"{what}: {url!r} is not an https:// address.")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
