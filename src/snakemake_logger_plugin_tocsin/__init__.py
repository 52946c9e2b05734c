"""Snakemake's name for it: `snakemake --logger tocsin`. The work is in `tocsin.integrations`.

Every Snakemake that finds this module imports it, also for runs that want another logger and for
each job that is a process of its own. So it brings along nothing before it is used.
"""

from dataclasses import dataclass, field
from logging import LogRecord
from pathlib import Path
from typing import TYPE_CHECKING, Optional

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.settings import LogHandlerSettingsBase

if TYPE_CHECKING:
    from tocsin.integrations.snakemake.hook import SnakemakeHook

__all__ = ["LogHandler", "LogHandlerSettings"]


@dataclass
class LogHandlerSettings(LogHandlerSettingsBase):
    """`--logger-tocsin-broker` and so on.

    Snakemake makes the options of its command line from the types, and knows no others than these.
    """

    broker: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "Address of the broker, as host:port or URL; else TOCSIN_BROKER, "
            "else 127.0.0.1:8400."
        },
    )
    name: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "Name of the workflow; else that of the Snakefile's directory."},
    )
    run_id: Optional[str] = field(  # noqa: UP045
        default=None, metadata={"help": "Id of this run; else one that Snakemake draws."}
    )
    spool: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "Directory for what the broker cannot take now; else the user's own."},
    )
    token_file: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={
            "help": "File with the token to sign in with; else TOCSIN_TOKEN, TOCSIN_TOKEN_FILE, "
            "else that of `tocsin login`."
        },
    )
    client_cert: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "PEM file of the certificate to sign in with; else TOCSIN_CLIENT_CERT."},
    )
    client_key: Optional[str] = field(  # noqa: UP045
        default=None,
        metadata={"help": "PEM file of its private key; else TOCSIN_CLIENT_KEY."},
    )


class LogHandler(LogHandlerBase):
    """Passes each record on, and says when there are no more."""

    hook: "SnakemakeHook | None" = None

    def __post_init__(self) -> None:
        from tocsin.integrations.snakemake.hook import SnakemakeHook

        settings = self.settings
        if not isinstance(settings, LogHandlerSettings):
            settings = LogHandlerSettings()
        if getattr(self.common_settings, "dryrun", False):
            return  # nothing will happen, so that there is nothing to tell
        spool = Path(settings.spool) if settings.spool else None
        self.hook = SnakemakeHook(
            settings.broker,
            name=settings.name,
            run_id=settings.run_id,
            spool=spool,
            token_file=settings.token_file,
            client_certificate=settings.client_cert,
            client_key=settings.client_key,
        )
        self.hook.watch()

    def emit(self, record: LogRecord) -> None:
        if self.hook is not None:
            self.hook.handle(record)

    def close(self) -> None:
        if self.hook is not None:
            self.hook.close()
        super().close()

    @property
    def writes_to_stream(self) -> bool:
        return False

    @property
    def writes_to_file(self) -> bool:
        return False

    @property
    def has_filter(self) -> bool:
        return True  # of its own: none. Snakemake's would leave out what --quiet hides

    @property
    def has_formatter(self) -> bool:
        return True

    @property
    def needs_rulegraph(self) -> bool:
        return False  # the jobs themselves are sent, with their parents
