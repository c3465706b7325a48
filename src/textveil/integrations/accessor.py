"""Accessors: `frame.textveil`, which releases columns of a data frame of pandas or polars.

In: a frame, and the names of its columns. Out: new frames, with one statement for all of a release.
Not here: what is done (`frames`), and where pandas and polars learn of it (`pandas`, `polars`).
"""

from collections.abc import Iterable
from typing import Any

from textveil.errors import ConfigError
from textveil.integrations import frames
from textveil.integrations.releases import RowPrivatizer
from textveil.pipeline import Privatizer, Protector, Synthesis
from textveil.session import Session

__all__ = ["FrameAccessor"]


class FrameAccessor:
    """Releases, searches and restores the columns of a data frame: `frame.textveil`."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def protect(
        self,
        columns: str | Iterable[str] = "text",
        profile: Protector | str = "prompt",
        *,
        keep: str | Iterable[str] = (),
        session: Session | None = None,
        **options: Any,
    ) -> frames.FrameRelease:
        """Hides what is private in columns; the rest of their texts stays.

        Args:
            columns: with the texts.
            profile: a `Protector`, or the name of a profile for one.
            keep: other columns with text that stay as they are.
            session: gives equal values of all rows one placeholder, and restores answers.
            **options: of the profile, such as `protect={"always": ["Alder"]}`.

        Returns:
            The new frame and its statement, as of `frames.privatize`.

        Raises:
            The errors of `frames.privatize`.
        """
        veil = _build(Protector, profile, options)
        return frames.privatize(self._frame, veil, columns, keep=keep, session=session)

    def privatize(
        self,
        columns: str | Iterable[str] = "text",
        profile: RowPrivatizer | str = "document",
        *,
        keep: str | Iterable[str] = (),
        session: Session | None = None,
        **options: Any,
    ) -> frames.FrameRelease:
        """Draws every protected word of columns anew.

        Args and errors as of `protect`; `profile` is a privatizer or the name of a profile.
        """
        veil = _build(Privatizer.from_profile, profile, options)
        return frames.privatize(self._frame, veil, columns, keep=keep, session=session)

    def find(
        self,
        columns: str | Iterable[str] = "text",
        profile: Protector | str = "prompt",
        **options: Any,
    ) -> Any:
        """Finds what is private in columns: a frame of places and reasons, without words.

        See `frames.find`.
        """
        return frames.find(self._frame, _build(Protector, profile, options), columns)

    def restore(self, columns: str | Iterable[str] = "text", *, session: Session) -> Any:
        """Puts originals back into columns of answers; a new frame. See `frames.restore`."""
        return frames.restore(self._frame, session, columns)

    def synthesize(self, text: str = "text", **options: Any) -> tuple[Any, Synthesis]:
        """Makes a frame of public texts in place of all rows. See `frames.synthesize`."""
        return frames.synthesize(self._frame, text, **options)


def _build(build: Any, profile: Any, options: dict[str, Any]) -> Any:
    """Builds what a profile's name and options stand for."""
    if "subject" in options:
        raise ConfigError(
            "the rows of a frame have no subject: leave it out. synthesize has one, and "
            "`textveil corpus run --subject NAME` adds the losses of each up"
        )
    if isinstance(profile, str):
        return build(profile, **options)
    if options:
        raise ConfigError("options go with the name of a profile, not with an object: build it so")
    return profile
