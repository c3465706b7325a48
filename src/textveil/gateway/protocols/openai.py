"""Errors in OpenAI's form, which all its routes share.

In: a `RequestError`. Out: JSON.
Not here: any route.
"""

from textveil.gateway.errors import RequestError
from textveil.gateway.protocols.operation import JsonObject

ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


def build_error(refused: RequestError) -> JsonObject:
    """Converts an error to OpenAI's form."""
    kind = ERROR_TYPES.get(
        refused.status, "invalid_request_error" if refused.status < 500 else "server_error"
    )
    return {
        "error": {
            "message": refused.full_message,
            "type": refused.kind or kind,
            "param": refused.param,
            "code": refused.code,
        }
    }
