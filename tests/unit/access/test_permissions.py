"""What a role may do, and where."""

import pytest
from hypothesis import given, strategies as st

from calve.access import (
    ANONYMOUS,
    LOOPBACK,
    Permission,
    Principal,
    PrincipalKind,
    Role,
    allows,
    allows_somewhere,
    namespaces,
)
from calve.namespaces import ROOT, namespace_of

NAMES = st.lists(st.sampled_from("ab"), max_size=3).map(".".join)


def somebody(**grants: Role) -> Principal:
    """Return a user with a role in each namespace; two underscores stand for a dot."""
    return Principal("ann", PrincipalKind.USER, {name.replace("__", "."): role for name, role in grants.items()})


@pytest.mark.parametrize(
    ("workflow_id", "namespace"), [("orders", ROOT), ("sales.orders", "sales"), ("sales.eu.orders", "sales.eu")]
)
def test_the_namespace_of_a_workflow_stands_before_its_last_dot(workflow_id: str, namespace: str) -> None:
    """A workflow without a dot is in the root."""
    assert namespace_of(workflow_id) == namespace


def test_a_role_counts_in_its_namespace_and_below_it() -> None:
    """Not above it, nor beside it, nor where a name merely begins alike."""
    ann = somebody(sales=Role.RUNNER)
    assert allows(ann, Permission.RUN, "sales")
    assert allows(ann, Permission.RUN, "sales.eu")
    assert not allows(ann, Permission.RUN, "salesforce")
    assert not allows(ann, Permission.RUN, "finance")
    assert not allows(ann, Permission.RUN, ROOT)


def test_each_role_may_do_more_than_the_one_before() -> None:
    """From viewer to admin."""
    for less, more in zip(list(Role), list(Role)[1:], strict=False):
        assert less.permissions < more.permissions


@pytest.mark.parametrize(
    ("role", "first_refused"),
    [(Role.VIEWER, Permission.RUN), (Role.RUNNER, Permission.EDIT), (Role.EDITOR, Permission.ADMINISTER)],
)
def test_a_weak_role_is_refused_what_the_next_one_may_do(role: Role, first_refused: Permission) -> None:
    """A viewer may not run, a runner may not edit, an editor may not administer."""
    assert allows(somebody(sales=role), Permission.READ, "sales")
    assert not allows(somebody(sales=role), first_refused, "sales")


def test_a_stranger_may_do_only_what_is_public() -> None:
    """No grant, no right."""
    assert [one for one in Permission if allows(ANONYMOUS, one, ROOT)] == [Permission.PUBLIC]
    assert [one for one in Permission if allows_somewhere(ANONYMOUS, one)] == [Permission.PUBLIC]


def test_a_user_without_a_role_may_only_read_their_own_identity() -> None:
    """Being signed in gives no right over any workflow."""
    assert [one for one in Permission if allows(somebody(), one, ROOT)] == [Permission.PUBLIC, Permission.SIGNED_IN]


def test_whoever_sits_at_a_loopback_server_may_do_everything() -> None:
    """There is nobody else."""
    assert all(allows(LOOPBACK, one, "any.where") for one in Permission)


def test_the_best_role_that_covers_a_namespace_counts() -> None:
    """An editor below a viewer's namespace is an editor there, and a viewer elsewhere."""
    ann = somebody(sales=Role.VIEWER, sales__eu=Role.EDITOR)
    assert allows(ann, Permission.EDIT, "sales.eu")
    assert not allows(ann, Permission.EDIT, "sales.us")
    assert namespaces(ann, Permission.READ) == ("sales",)
    assert namespaces(ann, Permission.EDIT) == ("sales.eu",)
    assert namespaces(ann, Permission.ADMINISTER) == ()


@given(st.dictionaries(NAMES, st.sampled_from(Role), max_size=4), st.sampled_from(Permission), NAMES)
def test_the_namespaces_say_exactly_where_something_is_allowed(
    grants: dict[str, Role], permission: Permission, namespace: str
) -> None:
    """Filtering by them gives what asking for each one gives."""
    ann = Principal("ann", PrincipalKind.USER, grants)
    if permission in (Permission.PUBLIC, Permission.SIGNED_IN):
        return
    covering = namespaces(ann, permission)
    covered = any(one in ("", namespace) or namespace.startswith(f"{one}.") for one in covering)
    assert covered == allows(ann, permission, namespace)
    assert allows_somewhere(ann, permission) == bool(covering)
