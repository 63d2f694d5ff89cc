"""What requests about access hold; what they hold besides is refused."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1_024)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SignIn(_Body):
    """A name and its password."""

    name: Name
    password: Password


class Bootstrap(SignIn):
    """The first administrator, with the token that the server printed."""

    token: Annotated[str, Field(max_length=200)]


class NewUser(_Body):
    """A person to add."""

    name: Name
    password: Password
    grants: list[str] = []


class UserChange(_Body):
    """What is to be changed of a person."""

    password: Password | None = None
    grants: list[str] | None = None
    is_disabled: bool | None = None


class NewToken(_Body):
    """A token to make."""

    name: Name
    grants: list[str]
    expires_in: str | None = "90d"
    """A duration; null: never."""
