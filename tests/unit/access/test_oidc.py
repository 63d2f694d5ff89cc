"""People who sign in at a provider of OpenID Connect; a real server answers, with real keys."""

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from tests.identity_provider import KEY, OTHER_KEY, FakeProvider, provider

from calve.access import Role
from calve.access.oidc import OidcClient, Person, Provider, SignInRequest
from calve.api.access import ProviderHttp
from calve.errors import AccessError, ProviderFailed, RequestInvalid, SettingsInvalid, Unauthenticated

BACK = "http://127.0.0.1:1/api/v3/access/oidc/callback"


@pytest.fixture
def fake() -> Iterator[FakeProvider]:
    """Give a provider."""
    with provider() as fake:
        yield fake


def _now() -> int:
    return time.time_ns() // 1_000_000


def _ours(fake: FakeProvider, clock: Callable[[], int] = _now, **given: Any) -> Provider:
    usual = {
        "issuer": fake.issuer,
        "client_id": "calve",
        "redirect_url": BACK,
        "scopes": ("openid", "groups"),
        "name_claim": "preferred_username",
        "groups_claim": "groups",
        "roles": {"data": "editor@sales", "all": "viewer", "more": "runner, admin@finance"},
    }
    client = OidcClient(**{**usual, **given})
    return Provider(client, ProviderHttp(), clock, secrets.token_bytes)


def _answer(begun: SignInRequest) -> dict[str, str]:
    """Go to the provider as a browser does, and return what it brings back."""
    location = httpx.get(begun.url).headers["location"]
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


def _signed_in(ours: Provider) -> Person:
    begun = ours.begin()
    return ours.finish(begun, _answer(begun))


def test_someone_signs_in(fake: FakeProvider) -> None:
    """By code and PKCE; what is asked for cannot be guessed, and is another one each time."""
    ours = _ours(fake)
    begun, other = ours.begin(), ours.begin()
    asked = parse_qs(urlsplit(begun.url).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["response_type"] == ["code"]
    assert begun.verifier not in begun.url
    assert len({begun.state, begun.nonce, begun.verifier, other.state, other.nonce, other.verifier}) == 6
    assert ours.finish(begun, _answer(begun)) == Person("1234", "ann", {"sales": Role.EDITOR})


def test_the_best_of_all_groups_counts(fake: FakeProvider) -> None:
    """In each namespace; groups that nobody listed are nothing."""
    fake.claims = {"groups": ["data", "all", "more", "unknown", 7], "preferred_username": None}
    person = _signed_in(_ours(fake))
    assert person.grants == {"": Role.RUNNER, "sales": Role.EDITOR, "finance": Role.ADMIN}
    assert person.shown == "1234"


@pytest.mark.parametrize("groups", [[], ["unknown"], None, 7, "admin"])
def test_someone_of_no_listed_group_may_do_nothing(fake: FakeProvider, groups: object) -> None:
    """Whatever the provider says in their place."""
    fake.claims = {"groups": groups}
    assert _signed_in(_ours(fake)).grants == {}


def test_one_group_may_come_as_a_text(fake: FakeProvider) -> None:
    """Some providers write it so."""
    fake.claims = {"groups": "data"}
    assert _signed_in(_ours(fake)).grants == {"sales": Role.EDITOR}


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://evil.example"},
        {"aud": "another"},
        {"aud": ["another", "third"]},
        {"aud": None},
        {"aud": ["calve", "another"], "azp": "another"},
        {"nonce": "of an older sign-in"},
        {"nonce": None},
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"iat": 9_999_999_999},
        {"iat": None},
        {"nbf": 9_999_999_999},
        {"sub": ""},
        {"sub": None},
    ],
)
def test_a_token_that_is_not_for_us_here_and_now_is_refused(fake: FakeProvider, claims: dict[str, Any]) -> None:
    """Another issuer, another audience, another sign-in, another time."""
    fake.claims = claims
    with pytest.raises(Unauthenticated):
        _signed_in(_ours(fake))


def test_a_token_may_be_for_us_among_others(fake: FakeProvider) -> None:
    """If it was asked for by us."""
    fake.claims = {"aud": ["another", "calve"], "azp": "calve"}
    assert _signed_in(_ours(fake)).subject == "1234"


def test_a_token_signed_with_another_key_is_refused(fake: FakeProvider) -> None:
    """Under the name of a key that the provider has, and under one that it has not."""
    fake.key = OTHER_KEY
    with pytest.raises(Unauthenticated):
        _signed_in(_ours(fake))
    fake.key_id = "two"
    with pytest.raises(Unauthenticated):
        _signed_in(_ours(fake))


@pytest.mark.parametrize(("key", "algorithm"), [("", "none"), ("x" * 64, "HS256"), ("x" * 64, "HS512")])
def test_a_token_signed_in_another_way_is_refused(fake: FakeProvider, key: str, algorithm: str) -> None:
    """Not at all, or with a key that anybody could have."""
    fake.key, fake.algorithm = key or None, algorithm
    with pytest.raises(Unauthenticated, match="unsupported signature"):
        _signed_in(_ours(fake))


def test_a_new_key_counts_at_once_and_a_dropped_one_no_longer_than_an_hour(fake: FakeProvider) -> None:
    """However short ago the keys were fetched."""
    now = _now()
    ours = _ours(fake, clock=lambda: now)
    _signed_in(ours)
    fake.key, fake.key_id, fake.published = OTHER_KEY, "two", {"two": OTHER_KEY}
    _signed_in(ours)
    assert fake.asked.count("/keys") == 2
    fake.published, fake.claims = {"three": KEY}, {"exp": now // 1_000 + 2 * 3_600}
    _signed_in(ours)
    now += 3_600_000
    with pytest.raises(Unauthenticated, match="unknown key"):
        _signed_in(ours)


@pytest.mark.parametrize("document", [{}, {"keys": 7}, {"keys": [7, None]}])
def test_keys_that_make_no_sense_are_none(fake: FakeProvider, document: object) -> None:
    """Nothing but a refusal comes of them."""
    fake.jwks = document
    with pytest.raises(Unauthenticated, match="unknown key"):
        _signed_in(_ours(fake))


def test_an_answer_that_is_not_a_document_is_a_mistake_of_the_provider(fake: FakeProvider) -> None:
    """A list, say."""
    fake.jwks = [1]
    with pytest.raises(ProviderFailed):
        _signed_in(_ours(fake))


def test_one_waits_for_a_provider_that_does_not_answer_and_not_all(fake: FakeProvider) -> None:
    """After some seconds it is asked again; that it was away has no other consequences."""
    now = _now()
    ours = _ours(fake, clock=lambda: now)
    fake.is_away = True
    for _ in range(3):
        with pytest.raises(ProviderFailed):
            ours.begin()
    assert len(fake.asked) == 1
    fake.is_away = False
    now += 5_000
    begun = ours.begin()
    answer = _answer(begun)
    fake.is_away = True
    with pytest.raises(ProviderFailed, match="503"):
        ours.finish(begun, answer)
    fake.is_away = False
    assert _signed_in(ours).subject == "1234"


def test_new_keys_are_fetched_but_not_for_each_unknown_name(fake: FakeProvider) -> None:
    """A provider may change its keys; nobody can make us ask for them all the time."""
    ours = _ours(fake)
    fake.key_id = "unknown"
    for _ in range(3):
        with pytest.raises(Unauthenticated):
            _signed_in(ours)
    assert fake.asked.count("/keys") == 1
    assert fake.asked.count("/.well-known/openid-configuration") == 1


@pytest.mark.parametrize(
    "changed", [{"state": "another"}, {"state": ""}, {"code": "wrong"}, {"iss": "https://evil.example"}]
)
def test_an_answer_that_does_not_belong_to_the_sign_in_is_refused(fake: FakeProvider, changed: dict[str, str]) -> None:
    """Another state, another code, another issuer."""
    ours = _ours(fake)
    begun = ours.begin()
    answer = _answer(begun)
    with pytest.raises(Unauthenticated):
        ours.finish(begun, answer | changed)


def test_an_answer_without_a_code_is_refused(fake: FakeProvider) -> None:
    """The provider has let nobody in."""
    ours = _ours(fake)
    begun = ours.begin()
    for answer in ({}, {"code": ""}, {"error": "access_denied"}, {"error": "<b>evil</b>"}):
        with pytest.raises(Unauthenticated, match=r"rejected the sign-in\.$"):
            ours.finish(begun, {"state": begun.state, **answer})
    with pytest.raises(Unauthenticated, match="invalid_scope") as refused:
        ours.finish(begun, {"state": begun.state, "error": "invalid_scope"})
    assert "access.oidc.scopes" in refused.value.remedy


def test_an_answer_names_its_provider_if_the_provider_says_so(fake: FakeProvider) -> None:
    """RFC 9207: one without the name is then of someone else."""
    fake.metadata = {"authorization_response_iss_parameter_supported": True}
    ours = _ours(fake)
    begun = ours.begin()
    answer = _answer(begun)
    with pytest.raises(Unauthenticated, match="does not belong"):
        ours.finish(begun, answer)
    assert ours.finish(begun, answer | {"iss": fake.issuer}).subject == "1234"


def test_a_code_is_worth_nothing_without_the_verifier(fake: FakeProvider) -> None:
    """A stolen one cannot be used in another sign-in."""
    ours = _ours(fake)
    begun, other = ours.begin(), ours.begin()
    answer = _answer(begun)
    with pytest.raises(Unauthenticated):
        ours.finish(SignInRequest("", begun.state, begun.nonce, other.verifier), answer)


def test_the_provider_knows_us_by_a_secret(fake: FakeProvider) -> None:
    """If it wants one; it is fetched when it is needed."""
    fake.client_secret = "canary"
    assert _signed_in(_ours(fake, secret=lambda: "canary")).subject == "1234"
    with pytest.raises(ProviderFailed, match="invalid_client") as refused:
        _signed_in(_ours(fake, secret=lambda: "wrong-canary"))
    assert "canary" not in str(refused.value.as_json())


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
    ],
)
def test_a_provider_that_is_not_the_one_of_the_settings_is_refused(
    fake: FakeProvider, metadata: dict[str, Any]
) -> None:
    """By its own name, and by addresses that are not safe."""
    fake.metadata = metadata
    with pytest.raises((AccessError, SettingsInvalid)):
        _ours(fake).begin()


def test_settings_that_make_no_sense_are_found_at_once(fake: FakeProvider) -> None:
    """Not when the first one signs in."""
    with pytest.raises(SettingsInvalid, match="https"):
        _ours(fake, issuer="http://login.example.com")
    with pytest.raises(RequestInvalid, match="grant"):
        _ours(fake, roles={"data": "king"})


def test_a_provider_that_does_not_answer_lets_nobody_in() -> None:
    """And the error says no more."""
    with provider() as fake:
        ours = _ours(fake)
    with pytest.raises(ProviderFailed, match="does not answer"):
        ours.begin()
