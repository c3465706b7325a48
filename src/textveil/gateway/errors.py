"""Errors for clients, where a request is refused or an upstream fails.

In: a status and one line. Out: `RequestError`; each API writes it in its own form.
Not here: the reasons (`api_routes`, `request_flow`, `parsed_request`), and the forms (`protocols`).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from textveil.errors import InputError, LimitReached, StoreError


class RequestError(Exception):
    """HTTP error returned to the client.

    The message is one line and quotes neither request nor answer.

    Args:
        status: the HTTP status.
        message: the fault, or the condition that must hold.
        param: path of the field at fault in the request.
        code: a machine-readable reason.
        kind: the type of the upstream's error, if it has one.
        headers: of the response, such as Retry-After.
        is_gateway_error: true for an error of the gateway, false for one of the upstream.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        kind: str | None = None,
        headers: dict[str, str] | None = None,
        is_gateway_error: bool = True,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind = status, message, kind
        self.param, self.code = param, code
        self.headers, self.is_gateway_error = headers or {}, is_gateway_error

    @property
    def full_message(self) -> str:
        """Message with its author: "textveil:" before errors of the gateway."""
        return f"textveil: {self.message}" if self.is_gateway_error else self.message


@contextmanager
def convert_errors() -> Iterator[None]:
    """Turns failures to privatize into client errors that quote no text."""
    try:
        yield
        return
    except RequestError:
        raise
    except RecursionError:
        failure = RequestError(400, "JSON in the request is nested too deeply")
    except InputError as error:  # its message quotes no text
        failure = RequestError(400, str(error))
    except (LimitReached, StoreError) as error:
        is_limit = isinstance(error, LimitReached)
        failure = RequestError(
            429 if is_limit else 500,
            str(error),
            code="limit" if is_limit else "store",
            headers={"x-should-retry": "false"}
            if is_limit
            else None,  # a retry would be refused again
        )
    except Exception as error:
        kind = type(error).__name__
        failure = RequestError(
            500, f"the messages could not be privatized ({kind}); nothing was sent"
        )
    raise failure from None  # else Python chains it to the error in the block
