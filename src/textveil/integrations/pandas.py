"""pandas: importing this gives every data frame `frame.textveil`.

In: nothing. Out: an accessor of pandas.
Not here: what it does (`accessor`, `frames`).
"""

from textveil.config.extras import explain_missing
from textveil.integrations.accessor import FrameAccessor

with explain_missing():
    import pandas

__all__ = ["FrameAccessor"]

pandas.api.extensions.register_dataframe_accessor("textveil")(FrameAccessor)
