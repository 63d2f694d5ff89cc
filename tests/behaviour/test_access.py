"""People, tokens and sessions, on both databases (reliability.md B.4: 49)."""

import threading
from contextlib import suppress
from dataclasses import replace

import pytest
from sqlalchemy import text
from tests.access_setup import HOUR, LOCAL, PASSWORD, AccessSetup

from calve.access import Act, Actor, Permission, Principal, PrincipalKind, Role, allows, verify
from calve.access.rate_limit import FREE_TRIES_OF_NAME, LONGEST_WAIT
from calve.errors import Forbidden, RequestInvalid, TooManyAttempts, Unauthenticated
from calve.namespaces import ROOT
from calve.store import Store

pytestmark = pytest.mark.each_store

HERE = "192.0.2.1"


def test_there_is_nobody_at_first(access: AccessSetup) -> None:
    """No default user, no default token."""
    assert access.state.users() == []
    assert access.state.tokens() == []
    with pytest.raises(Unauthenticated):
        access.authenticator.sign_in("admin", "admin", HERE)


def test_namespaces_have_different_people_once_someone_has_a_role_in_one(access: AccessSetup) -> None:
    """Roles that hold everywhere are no such; a token that is revoked, or a user who is disabled, still counts."""
    assert not access.state.has_namespaces()
    access.token("admin")
    access.token()
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.EDITOR}, LOCAL)
    assert not access.state.has_namespaces()
    _, token = access.accounts.create_token("ci", {"sales": Role.VIEWER}, LOCAL, life=HOUR)
    assert access.state.has_namespaces()
    access.accounts.revoke_token(token.token_id, LOCAL)
    assert access.state.has_namespaces()


def test_a_person_of_a_namespace_makes_namespaces(access: AccessSetup) -> None:
    """Beside a role that holds everywhere, too."""
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.VIEWER, "sales": Role.EDITOR}, LOCAL)
    assert access.state.has_namespaces()


def test_a_person_signs_in_and_out(access: AccessSetup) -> None:
    """A session stands for its user until it is ended."""
    access.accounts.add_user("ann", PASSWORD, {"sales": Role.RUNNER}, LOCAL)
    signed_in = access.authenticator.sign_in("ann", PASSWORD, HERE)
    assert access.authenticator.by_session(signed_in.session) == Principal(
        "ann", PrincipalKind.USER, {"sales": Role.RUNNER}
    )
    access.authenticator.sign_out(signed_in.session, signed_in.principal, HERE)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_session(signed_in.session)
    assert access.acts() == [
        ("loopback:local", "add_user", "ok"),
        ("user:ann", "sign_in", "ok"),
        ("user:ann", "sign_out", "ok"),
    ]


def test_a_session_ends_with_its_time(access: AccessSetup) -> None:
    """After its life it opens nothing."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    signed_in = access.authenticator.sign_in("ann", PASSWORD, HERE)
    access.now = signed_in.expires_at
    with pytest.raises(Unauthenticated):
        access.authenticator.by_session(signed_in.session)
    access.authenticator.sign_in("ann", PASSWORD, HERE)


def test_sessions_die_with_another_password(access: AccessSetup) -> None:
    """Whoever has stolen a session is out, and the old password is worth nothing."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    signed_in = access.authenticator.sign_in("ann", PASSWORD, HERE)
    access.accounts.set_password("ann", "another one than before", LOCAL)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_session(signed_in.session)
    with pytest.raises(Unauthenticated):
        access.authenticator.sign_in("ann", PASSWORD, HERE)
    access.authenticator.sign_in("ann", "another one than before", HERE)


def test_sessions_and_tokens_die_when_their_user_is_disabled(access: AccessSetup) -> None:
    """At once, and sessions do not come back when the user is enabled again."""
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.EDITOR}, LOCAL)
    signed_in = access.authenticator.sign_in("ann", PASSWORD, HERE)
    token, _ = access.accounts.create_token("ci", {ROOT: Role.RUNNER}, Actor(signed_in.principal, HERE), life=HOUR)
    access.accounts.disable("ann", LOCAL)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_session(signed_in.session)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_token(token, HERE)
    with pytest.raises(Unauthenticated):
        access.authenticator.sign_in("ann", PASSWORD, HERE)
    access.accounts.disable("ann", LOCAL, is_disabled=False)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_session(signed_in.session)
    assert access.authenticator.by_token(token, HERE).name == "ann"


def test_other_roles_count_from_the_next_request_on(access: AccessSetup) -> None:
    """A session does not keep the roles that its user had."""
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.ADMIN}, LOCAL)
    signed_in = access.authenticator.sign_in("ann", PASSWORD, HERE)
    access.accounts.set_grants("ann", {"sales": Role.VIEWER}, LOCAL)
    assert access.authenticator.by_session(signed_in.session).grants == {"sales": Role.VIEWER}


def test_a_name_is_given_once(access: AccessSetup) -> None:
    """A second user of a name is refused, and changes nothing."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    with pytest.raises(RequestInvalid, match="already"):
        access.accounts.add_user("ann", "quite another password", {ROOT: Role.ADMIN}, LOCAL)
    access.authenticator.sign_in("ann", PASSWORD, HERE)


@pytest.mark.parametrize("name", ["", "oidc:ann", "a b", "a\nb", "../a", "x" * 129])
def test_some_texts_cannot_be_names(access: AccessSetup, name: str) -> None:
    """Those of a provider of identities among them: nobody can be taken for one of its people."""
    with pytest.raises(RequestInvalid):
        access.accounts.add_user(name, PASSWORD, {}, LOCAL)


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaaaaaaaa", "ann-and-then-some", "x" * 2_000])
def test_weak_passwords_are_refused(access: AccessSetup, password: str) -> None:
    """Empty ones, short ones, those that hold the name."""
    with pytest.raises(RequestInvalid):
        access.accounts.add_user("ann", password, {}, LOCAL)
    assert access.state.users() == []


def test_a_token_opens_what_it_is_for(access: AccessSetup) -> None:
    """And the database holds its digest only."""
    text_, token = access.accounts.create_token("ci", {"sales": Role.RUNNER}, LOCAL, life=HOUR)
    assert text_.startswith("calve_")
    assert len(text_) == len("calve_") + 43
    principal = access.authenticator.by_token(text_, HERE)
    assert allows(principal, Permission.RUN, "sales.eu")
    assert not allows(principal, Permission.READ, "finance")
    assert text_ not in repr(token)
    assert text_ not in repr(access.state.tokens())


def test_a_token_expires(access: AccessSetup) -> None:
    """At its time, not later."""
    text_, _ = access.accounts.create_token("ci", {ROOT: Role.VIEWER}, LOCAL, life=HOUR)
    access.now += HOUR - 1
    access.authenticator.by_token(text_, HERE)
    access.now += 1
    with pytest.raises(Unauthenticated):
        access.authenticator.by_token(text_, HERE)


def test_a_token_is_revoked_at_once(access: AccessSetup) -> None:
    """The next request with it is refused; a second revocation says that there is nothing to revoke."""
    text_, token = access.accounts.create_token("ci", {ROOT: Role.VIEWER}, LOCAL, life=None)
    access.authenticator.by_token(text_, HERE)
    access.accounts.revoke_token(token.token_id, LOCAL)
    with pytest.raises(Unauthenticated):
        access.authenticator.by_token(text_, HERE)
    with pytest.raises(RequestInvalid):
        access.accounts.revoke_token(token.token_id, LOCAL)


def test_the_last_use_of_a_token_is_written_once_a_minute(access: AccessSetup) -> None:
    """A busy token does not write with each request."""
    text_, _ = access.accounts.create_token("ci", {ROOT: Role.VIEWER}, LOCAL, life=None)
    first = access.now
    seen = []
    for _ in range(4):
        access.authenticator.by_token(text_, HERE)
        seen.append(access.state.tokens()[0].used_at)
        access.now += 30_000
    assert seen == [first, first, first + 60_000, first + 60_000]


def test_a_token_cannot_have_more_permissions_than_its_creator(access: AccessSetup) -> None:
    """Neither by its role nor by its namespace."""
    ann = Actor(Principal("ann", PrincipalKind.USER, {"sales": Role.RUNNER}), HERE)
    for grants in ({"sales": Role.EDITOR}, {ROOT: Role.VIEWER}, {"finance": Role.VIEWER}):
        with pytest.raises(Forbidden):
            access.accounts.create_token("more", grants, ann, life=None)
    access.accounts.create_token("less", {"sales.eu": Role.VIEWER}, ann, life=None)


def test_a_token_can_do_no_more_than_its_owner_can_now(access: AccessSetup) -> None:
    """When a user loses roles, their tokens lose them too."""
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.EDITOR}, LOCAL)
    ann = Actor(access.authenticator.sign_in("ann", PASSWORD, HERE).principal, HERE)
    text_, _ = access.accounts.create_token("ci", {ROOT: Role.EDITOR}, ann, life=None)
    access.accounts.set_grants("ann", {"sales": Role.VIEWER}, LOCAL)
    assert access.authenticator.by_token(text_, HERE).grants == {"sales": Role.VIEWER}


def test_ten_thousand_wrong_tokens_are_refused_quickly(access: AccessSetup) -> None:
    """49: after a few tries a source has to wait, the log has one line of it, and others are not held up."""
    good, _ = access.accounts.create_token("ci", {ROOT: Role.VIEWER}, LOCAL, life=None)
    refused = {Unauthenticated: 0, TooManyAttempts: 0}
    for number in range(10_000):
        with pytest.raises((Unauthenticated, TooManyAttempts)) as raised:
            access.authenticator.by_token(f"calve_{number:043}", HERE)
        refused[raised.type] += 1
        access.now += 10
    assert refused[Unauthenticated] < 20
    assert refused[TooManyAttempts] > 9_900
    assert [act for act in access.acts() if act[2] == "locked"] == [("anonymous", "token", "locked")]
    assert access.authenticator.by_token(good, "198.51.100.7").name == "token:ci"
    assert access.authenticator.by_token(good, HERE).name == "token:ci"


def test_bad_tokens_hold_up_no_password_from_their_address(access: AccessSetup) -> None:
    """Nor wrong passwords a token."""
    good, _ = access.accounts.create_token("ci", {ROOT: Role.VIEWER}, LOCAL, life=None)
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    for _ in range(100):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            access.authenticator.by_token("calve_wrong", HERE)
    assert access.authenticator.sign_in("ann", PASSWORD, HERE).principal.name == "ann"
    for number in range(100):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            access.authenticator.sign_in(f"user{number}", "wrong", HERE)
    assert access.authenticator.by_token(good, HERE).name == "token:ci"
    assert access.authenticator.sign_in("ann", PASSWORD, HERE).principal.name == "ann"


@pytest.mark.parametrize("end", ["has expired", "was revoked", "belongs to a user who is disabled"])
def test_a_token_that_is_over_is_told_so_and_is_no_guess(access: AccessSetup, end: str) -> None:
    """Whoever shows it had it once: a job that was forgotten asks for ever, and does not have to wait."""
    access.accounts.add_user("ann", PASSWORD, {ROOT: Role.VIEWER}, LOCAL)
    ann = Actor(access.authenticator.sign_in("ann", PASSWORD, HERE).principal, HERE)
    text_, token = access.accounts.create_token("nightly", {ROOT: Role.VIEWER}, ann, life=HOUR)
    match end:
        case "has expired":
            access.now += HOUR
        case "was revoked":
            access.accounts.revoke_token(token.token_id, LOCAL)
        case _:
            access.accounts.disable("ann", LOCAL)
    for _ in range(50):
        with pytest.raises(Unauthenticated, match=f"The token nightly {end}"):
            access.authenticator.by_token(text_, HERE)
    with pytest.raises(Unauthenticated, match="missing or invalid"):
        access.authenticator.by_token("calve_wrong", HERE)
    assert not [act for act in access.acts() if act[2] == "locked"]


def test_a_source_waits_longer_with_each_mistake_but_not_for_ever(access: AccessSetup) -> None:
    """It is told for how long."""
    waits = []
    for _ in range(30):
        try:
            access.authenticator.by_token("calve_wrong", HERE)
        except TooManyAttempts as error:
            waits.append(error.context["retry_after"])
            access.now += error.context["retry_after"] * 1_000
        except Unauthenticated:
            pass
    assert waits == sorted(waits)
    assert waits[0] == 1
    access.now += LONGEST_WAIT
    with pytest.raises(Unauthenticated):
        access.authenticator.by_token("calve_wrong", HERE)


def test_strangers_cannot_lock_someone_out(access: AccessSetup) -> None:
    """From however many addresses they try; the audit log says that they do, once."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    for number in range(60):
        with pytest.raises(Unauthenticated):
            access.authenticator.sign_in("ann", "wrong", f"198.51.100.{number}")
    assert access.authenticator.sign_in("ann", PASSWORD, HERE).principal.name == "ann"
    assert [act for act in access.acts() if act[2] == "locked"] == [("anonymous", "sign_in", "locked")]


def test_strangers_at_the_same_address_cannot_lock_out_a_device_that_has_signed_in(access: AccessSetup) -> None:
    """Behind a proxy all have one; with another password, the device is a stranger too."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    device = access.authenticator.sign_in("ann", PASSWORD, HERE).device
    for _ in range(100):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            access.authenticator.sign_in("ann", "wrong", HERE)
    with pytest.raises(TooManyAttempts):
        access.authenticator.sign_in("ann", PASSWORD, HERE)
    assert access.authenticator.sign_in("ann", PASSWORD, HERE, device).device == device
    access.accounts.set_password("ann", "another one than before", LOCAL)
    with pytest.raises(TooManyAttempts):
        access.authenticator.sign_in("ann", "another one than before", HERE, device)


def test_a_device_guesses_no_more_than_a_stranger(access: AccessSetup) -> None:
    """Its mistakes are its own, and it is one of its user only."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    access.accounts.add_user("bob", PASSWORD, {}, LOCAL)
    device = access.authenticator.sign_in("ann", PASSWORD, HERE).device
    for name, shown in (("ann", device), ("bob", device), ("bob", "0123.4567"), ("bob", "."), ("bob", "💧")):
        access.forget_failures()
        for _ in range(FREE_TRIES_OF_NAME + 1):
            with pytest.raises(Unauthenticated):
                access.authenticator.sign_in(name, "wrong", HERE, shown)
        with pytest.raises(TooManyAttempts):
            access.authenticator.sign_in(name, PASSWORD, HERE, shown)


def test_a_strange_token_is_refused_without_asking_the_database(access: AccessSetup) -> None:
    """What does not look like a token is none; a NUL, which PostgreSQL cannot keep, is no error either."""
    for odd in ("", "calve", "Bearer", "calve_\0", "calve_" + "x" * 100_000, "💧"):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            access.authenticator.by_token(odd, HERE)


def test_a_strange_name_is_nobodys(access: AccessSetup) -> None:
    """Neither a NUL nor a very long one is an error of the server."""
    for odd in ("", "a\0b", "x" * 100_000, "💧", "a\nb"):
        with pytest.raises((Unauthenticated, TooManyAttempts)):
            access.authenticator.sign_in(odd, PASSWORD, HERE)


def test_a_bootstrap_token_makes_the_first_administrator_once(access: AccessSetup) -> None:
    """It opens nothing else, and is used up; when there is an administrator, there is no other such token."""
    token = access.accounts.bootstrap_token(LOCAL, life=HOUR)
    assert token is not None
    with pytest.raises(Unauthenticated):
        access.authenticator.by_token(token, HERE)
    access.accounts.bootstrap(token, "root", PASSWORD, HERE)
    with pytest.raises(Unauthenticated):
        access.accounts.bootstrap(token, "mallory", PASSWORD, HERE)
    assert [user.name for user in access.state.users()] == ["root"]
    assert allows(access.authenticator.sign_in("root", PASSWORD, HERE).principal, Permission.ADMINISTER, ROOT)
    assert access.accounts.bootstrap_token(LOCAL, life=HOUR) is None


def test_a_bootstrap_token_is_not_used_up_by_a_weak_password(access: AccessSetup) -> None:
    """Who mistypes may try again; who comes too late may not."""
    token = access.accounts.bootstrap_token(LOCAL, life=HOUR)
    assert token is not None
    with pytest.raises(RequestInvalid):
        access.accounts.bootstrap(token, "root", "short", HERE)
    access.now += HOUR
    with pytest.raises(Unauthenticated):
        access.accounts.bootstrap(token, "root", PASSWORD, HERE)


def test_of_two_who_use_a_bootstrap_token_at_once_one_wins(access: AccessSetup) -> None:
    """Many threads, one administrator."""
    token = access.accounts.bootstrap_token(LOCAL, life=HOUR)
    assert token is not None
    won: list[str] = []

    def try_it(name: str) -> None:
        with suppress(Unauthenticated):
            won.append(access.accounts.bootstrap(token, name, PASSWORD, HERE).name)

    threads = [threading.Thread(target=try_it, args=(f"root{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [user.name for user in access.state.users()] == won
    assert len(won) == 1


def test_someone_vouched_for_gets_the_roles_that_the_provider_says(access: AccessSetup) -> None:
    """Made at the first time, changed at the next ones, and refused once disabled here."""
    first = access.accounts.vouched("oidc:1234", "Ann", {"sales": Role.VIEWER}, LOCAL)
    signed_in = access.authenticator.begin(first, HERE)
    access.accounts.vouched("oidc:1234", "Ann", {"sales": Role.EDITOR}, LOCAL)
    assert access.authenticator.by_session(signed_in.session).grants == {"sales": Role.EDITOR}
    with pytest.raises(Unauthenticated):
        access.authenticator.sign_in("oidc:1234", "", HERE)
    with pytest.raises(RequestInvalid):
        access.accounts.set_password("oidc:1234", PASSWORD, LOCAL)
    access.accounts.disable("oidc:1234", LOCAL)
    with pytest.raises(Unauthenticated):
        access.accounts.vouched("oidc:1234", "Ann", {"sales": Role.EDITOR}, LOCAL)


def test_a_user_who_left_all_listed_groups_loses_all_roles(access: AccessSetup) -> None:
    """With their sessions and tokens too; a new user without a listed group is not even stored."""
    with pytest.raises(Forbidden):
        access.accounts.vouched("oidc:1234", "Ann", {}, LOCAL)
    assert access.state.users() == []
    user = access.accounts.vouched("oidc:1234", "Ann", {"sales": Role.EDITOR}, LOCAL)
    signed_in = access.authenticator.begin(user, HERE)
    token, _ = access.accounts.create_token("ci", {"sales": Role.EDITOR}, Actor(signed_in.principal, HERE), life=None)
    with pytest.raises(Forbidden):
        access.accounts.vouched("oidc:1234", "Ann", {}, LOCAL)
    assert access.authenticator.by_session(signed_in.session).grants == {}
    assert access.authenticator.by_token(token, HERE).grants == {}


def test_the_audit_log_is_one_chain_however_many_write(access: AccessSetup) -> None:
    """Threads side by side leave no gap and no fork."""
    act = Act(access.now, "user:ann", "start", "sales.orders", HERE, "ok", {"number": 1})
    threads = [
        threading.Thread(target=lambda: [access.state.append(act) for _ in range(10)], name=str(number))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    verdict = verify(access.state.entries())
    assert verdict.is_whole
    assert verdict.lines == 40
    assert [one.seq for one in access.state.newest(3)] == [40, 39, 38]
    assert [one.seq for one in access.state.entries(after=5, limit=2)] == [6, 7]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE audit SET who = 'user:eve' WHERE seq = 2", "line 2 was changed"),
        ("UPDATE audit SET detail = '{}' WHERE seq = 2", "line 2 was changed"),
        ("DELETE FROM audit WHERE seq = 2", "line 2 is missing"),
        ("UPDATE audit SET previous = digest WHERE seq = 3", "line 3 does not follow the one before"),
    ],
)
def test_a_changed_audit_log_is_found_out(access: AccessSetup, store: Store, damage: str, problem: str) -> None:
    """Whoever can write to the database still cannot change a line unseen."""
    for number in range(4):
        access.state.append(Act(access.now, "user:ann", "start", "orders", HERE, "ok", {"number": number}))
    with store._database.write("test") as connection:
        connection.execute(text(damage))
    verdict = verify(access.state.entries())
    assert not verdict.is_whole
    assert verdict.problem == problem


def test_a_log_without_its_end_is_found_out_by_a_digest_noted_elsewhere(access: AccessSetup, store: Store) -> None:
    """The chain alone cannot tell that."""
    for _ in range(3):
        last = access.state.append(Act(access.now, "user:ann", "start", "orders", HERE, "ok"))
    assert verify(access.state.entries(), last.digest).is_whole
    with store._database.write("test") as connection:
        connection.execute(text("DELETE FROM audit WHERE seq = 3"))
    assert verify(access.state.entries()).is_whole
    assert not verify(access.state.entries(), last.digest).is_whole


def test_what_is_refused_leaves_no_trace_in_the_log(access: AccessSetup) -> None:
    """Changing a user who does not exist changes nothing."""
    access.accounts.add_user("ann", PASSWORD, {}, LOCAL)
    ghost = replace(access.state.users()[0], name="ghost")
    assert not access.state.change_user(ghost, Act(access.now, "x", "y", "z", HERE, "ok"))
    with pytest.raises(RequestInvalid):
        access.accounts.disable("ghost", LOCAL)
    assert [act[1] for act in access.acts()] == ["add_user"]
