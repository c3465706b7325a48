"""What clients are told when a request is refused, or an upstream fails.

In: a status and one line. Out: `RequestError`; each API writes it in its own form.
Not here: why (`app`, `requests`), and the forms (`protocols`).
"""


class RequestError(Exception):
    """An HTTP error returned to the client. The message is one line and quotes neither request nor answer.

    Args:
        status: the HTTP status.
        message: what is wrong, or what must hold.
        param: the field at fault, if its name is known.
        code: a machine-readable reason.
        kind: the upstream's own type of error, where it has one.
        headers: of the response, such as Retry-After.
        own: whether the gateway says it; else the upstream does.
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
        own: bool = True,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code, self.kind = status, message, param, code, kind
        self.headers, self.own = headers or {}, own

    @property
    def said(self) -> str:
        """The message, and who says it."""
        return f"textveil: {self.message}" if self.own else self.message
