"""People who sign in at a provider of OpenID Connect: code and PKCE; issuer, audience and algorithms are pinned."""

import hashlib
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

from calve.access.credentials import RandomBytes, is_same
from calve.access.model import Grants, Role, parse_grants
from calve.errors import ProviderFailed, SettingsInvalid, Unauthenticated

ALGORITHMS = ("RS256", "ES256")
"""What tokens may be signed with; never ``none``, and never a key that both sides know."""
LEEWAY = 30_000
"""How far the clocks of the provider and of this machine may be apart, in milliseconds."""
KEPT = 3_600_000
"""How long keys are used before they are fetched anew: one that the provider has dropped counts no longer than that."""
MISSED = 60_000
"""How long keys are not fetched for an unknown one again, after it was not among them."""
FAILED = 5_000
"""How long the provider is not asked again after it did not answer: others need not wait for that, too."""
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})

Json = Mapping[str, Any]


class Fetch(Protocol):
    """Speaks with the provider.

    Raises:
        ProviderFailed: it does not answer, or not as it should.
        Unauthenticated: it does not take what a person has brought.
    """

    def get(self, url: str) -> Any:
        """Return a document."""
        ...

    def post(self, url: str, form: Mapping[str, str]) -> Any:
        """Send a form, and return the document that is answered."""
        ...


@dataclass(frozen=True, slots=True)
class Client:
    """How calve is known to the provider."""

    issuer: str
    client_id: str
    redirect_url: str
    scopes: tuple[str, ...]
    name_claim: str
    groups_claim: str
    roles: Mapping[str, str]
    secret: Callable[[], str] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Begun:
    """A sign-in under way; all but the address is kept by the browser until it comes back."""

    url: str
    state: str
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Person:
    """Whom the provider vouches for."""

    subject: str
    shown: str
    grants: Grants


class Provider:
    """A provider of identities; its addresses and keys are found by discovery, when they are needed."""

    def __init__(self, client: Client, fetch: Fetch, clock: Callable[[], int], random: RandomBytes) -> None:
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

    def begin(self) -> Begun:
        """Return where somebody has to go to sign in."""
        state, nonce, verifier = (_text(self._random(32)) for _ in range(3))
        return Begun(_asking(self._client, self._discovered(), state, nonce, verifier), state, nonce, verifier)

    def finish(self, begun: Begun, answer: Mapping[str, str]) -> Person:
        """Return who it is, by what the browser brought back.

        Raises:
            Unauthenticated: that is not what was asked for, or not from the provider, or not for us, or too late.
            ProviderFailed: the provider does not say who it is.
        """
        metadata = self._discovered()
        if not is_same(answer.get("state", ""), begun.state) or not _is_from(metadata, answer):
            raise Unauthenticated("The answer of the provider does not belong to this sign-in.")
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
        """Fetch a document, with the lock; while the provider does not answer, one waits for it, and not all."""
        if self._clock() - self._failed_at < FAILED:
            raise ProviderFailed("The provider of identities does not answer.")
        try:
            return self._fetch.get(url)
        except ProviderFailed:
            self._failed_at = self._clock()
            raise

    def _signed(self, token: str) -> Json:
        """Return what a token says, if one of the provider's keys has signed it."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
            algorithm, key_id = header.get("alg"), str(header.get("kid", ""))
            if algorithm not in ALGORITHMS:
                raise Unauthenticated("The token of the provider is signed in a way that is not taken.")
            key = jwt.PyJWK(dict(self._key(key_id)), algorithm).key
            claims: Json = jwt.decode(token, key, algorithms=[algorithm], options=_OPTIONS)
        except jwt.PyJWTError:
            raise Unauthenticated("The token of the provider is not valid.") from None
        return claims

    def _key(self, key_id: str) -> Json:
        uri, now = str(self._discovered()["jwks_uri"]), self._clock()
        with self._lock:
            is_new = key_id not in self._keys and now - self._missed_at >= MISSED
            if is_new or now - self._fetched_at >= KEPT:
                self._keys, self._fetched_at = _signing(self._get(uri)), now
                self._missed_at = self._missed_at if key_id in self._keys else now
            if key_id not in self._keys:
                raise Unauthenticated("The token of the provider is signed by a key that it does not have.")
            return dict(self._keys[key_id])


_OPTIONS: Any = {"verify_aud": False, "verify_exp": False, "verify_iat": False, "verify_nbf": False}
"""These are checked by ``checked``, with our own clock."""


def checked(claims: Json, client: Client, nonce: str, now: int) -> Json:
    """Return the claims, if they are of the issuer, for us, of this sign-in, and valid now.

    Raises:
        Unauthenticated: one of that is not so.
    """
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    is_for_us = client.client_id in audiences and claims.get("azp", client.client_id) == client.client_id
    times = [claims.get(name) for name in ("exp", "iat", "nbf")]
    if claims.get("iss") != client.issuer or not is_for_us or not claims.get("sub"):
        raise Unauthenticated("The token of the provider is not for this server.")
    if not is_same(str(claims.get("nonce", "")), nonce):
        raise Unauthenticated("The token of the provider does not belong to this sign-in.")
    exp, iat, nbf = (time * 1_000 if isinstance(time, int | float) else None for time in times)
    if exp is None or iat is None or now > exp + LEEWAY or iat > now + LEEWAY or (nbf or 0) > now + LEEWAY:
        raise Unauthenticated("The token of the provider is not valid now.")
    return claims


def person(claims: Json, client: Client) -> Person:
    """Return who it is, and what his groups may do: nothing, if none of them is listed."""
    groups = claims.get(client.groups_claim, [])
    names = [groups] if isinstance(groups, str) else groups if isinstance(groups, list) else []
    grants: dict[str, Role] = {}
    for group in names:
        for namespace, role in _grants_of(group, client.roles[group]).items() if group in client.roles else ():
            grants[namespace] = max(grants.get(namespace, role), role, key=list(Role).index)
    subject = str(claims["sub"])
    return Person(subject, str(claims.get(client.name_claim) or subject), grants)


def refusal_of(code: object) -> str:
    """Return why a provider has refused something, if that is one of the words that OAuth has for it."""
    return code if isinstance(code, str) and re.fullmatch("[a-z_]{1,40}", code) else ""


def _refused(code: str) -> Unauthenticated:
    if code in {"", "access_denied"}:
        return Unauthenticated("The provider has not let you in.")
    remedy = "Does it know all of access.oidc.scopes?" if code == "invalid_scope" else "Sign in again."
    return Unauthenticated(f"The provider has not let you in: {code}.", remedy=remedy)


def _is_from(metadata: Json, answer: Mapping[str, str]) -> bool:
    """Tell whether an answer says that it is from the provider, if the provider says so in its answers (RFC 9207)."""
    if "iss" not in answer:
        return metadata.get("authorization_response_iss_parameter_supported") is not True
    return answer["iss"] == str(metadata["issuer"])


def _signing(document: Json) -> Json:
    """Return the keys that sign, by their names."""
    found = document.get("keys")
    keys = [key for key in found if isinstance(key, Mapping)] if isinstance(found, list) else []
    return {str(key.get("kid", "")): key for key in keys if key.get("use", "sig") == "sig"}


def _grants_of(group: str, text: str) -> dict[str, Role]:
    return parse_grants(text.replace(",", " ").split()) if isinstance(group, str) else {}


def _asking(client: Client, metadata: Json, state: str, nonce: str, verifier: str) -> str:
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


def _exchange(client: Client, code: str, verifier: str) -> dict[str, str]:
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
        raise ProviderFailed("The provider of identities names itself otherwise than access.oidc.issuer does.")
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        _check_address(str(document.get(name, "")), name)
    return document


def _check_address(url: str, what: str) -> None:
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in _LOCAL):
        raise SettingsInvalid(f"{what}: {url!r} is no https:// address.")


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
