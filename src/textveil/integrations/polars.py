"""polars: importing this gives every data frame `frame.textveil`.

In: nothing. Out: a namespace of polars.
Not here: what it does (`accessor`, `frames`).
"""

from textveil.config.extras import explain_missing
from textveil.integrations.accessor import FrameAccessor

with explain_missing():
    import polars

__all__ = ["FrameAccessor"]

polars.api.register_dataframe_namespace("textveil")(FrameAccessor)
