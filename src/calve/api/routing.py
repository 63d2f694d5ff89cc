"""How a route is written: its path, its name, its policy, the shape of its answer."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

from fastapi import APIRouter, Depends

from calve.api.answers import Document
from calve.api.bodies import text_only
from calve.api.identifiers import PREFIX
from calve.api.policy import Policy
from calve.api.shapes import Error
from calve.api.threads import in_slow_thread, in_thread

Handler = TypeVar("Handler", bound=Callable[..., Any])


class Routes:
    """Routes about one thing.

    Args:
        tag: what it is.
        prefix: what their paths begin with.
        is_slow: whether they may wait for something else than the state database, or a caller can make them long.
    """

    def __init__(self, tag: str, prefix: str = PREFIX, *, is_slow: bool = False) -> None:
        self.router = APIRouter(prefix=prefix, tags=[tag])
        self._is_slow = is_slow

    def get(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer GET."""
        return self._route("GET", path, name, policy, answer, **more)

    def post(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer POST."""
        return self._route("POST", path, name, policy, answer, **more)

    def put(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer PUT."""
        return self._route("PUT", path, name, policy, answer, **more)

    def delete(
        self, path: str, name: str, policy: Policy, answer: Any = None, **more: Any
    ) -> Callable[[Handler], Handler]:
        """Make a function answer DELETE."""
        return self._route("DELETE", path, name, policy, answer, **more)

    def _route(
        self,
        method: str,
        path: str,
        name: str,
        policy: Policy,
        answer: Any,
        *,
        status: int = 200,
        is_slow: bool = False,
        **more: Any,
    ) -> Callable[[Handler], Handler]:
        shape: Mapping[str, Any] = {"model": answer} if answer is not None else {}
        responses: dict[int | str, dict[str, Any]] = {
            status: {"description": "Done.", **shape, **more.pop("answers", {})},
            "default": {"model": Error, "description": "It could not be done."},
        }
        register = self.router.api_route(
            path,
            methods=[method],
            operation_id=name,
            dependencies=[Depends(policy), Depends(text_only)],
            responses=responses,
            response_class=Document,
            response_model=None,
            status_code=status,
            **more,
        )

        def decorate(handler: Handler) -> Handler:
            register(_answering(handler, is_slow=is_slow or self._is_slow))
            return handler

        return decorate


def _answering(handler: Callable[..., Any], *, is_slow: bool) -> Callable[..., Any]:
    """Return what answers a request by a handler, in a thread unless it is made not to need one."""
    if iscoroutinefunction(handler):
        return handler
    thread = in_slow_thread if is_slow else in_thread

    @wraps(handler)
    async def answering(**arguments: Any) -> Any:
        return await thread(handler, **arguments)

    return answering
