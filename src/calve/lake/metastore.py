"""Connections to a Hive metastore, with time limits, and its errors."""

import logging
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from calve.errors import LakeError, LakeUnavailable, SettingsInvalid

_PORT = 9083
_TO_CONNECT_MS, _TO_ANSWER_MS = 10_000, 60_000
_ADDRESS = "Check that the metastore runs, and the address: catalogs.{catalog}.uri."
_SERVER = "The log of the metastore says more."


class Metastore:
    """Opens a connection for each use, so that threads need not share one."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        """Take PyIceberg's properties: ``uri``, of which several may be listed, ``ugi``, and those of Kerberos.

        Raises:
            SettingsInvalid: an address is invalid, or a package is not installed.
        """
        self._catalog = catalog
        self._properties = properties
        self._addresses = [self._address(uri.strip()) for uri in properties.get("uri", "").split(",")]
        with self.errors():
            import thrift.transport.TSocket

            # It logs each failure to connect, even where the next address is tried; the error says it all.
            logging.getLogger(thrift.transport.TSocket.__name__).setLevel(logging.CRITICAL)

    @contextmanager
    def client(self) -> Iterator[Any]:
        """Yield a client of the first metastore that can be reached.

        Raises:
            LakeUnavailable: none can be reached, or it failed; a call may have had its effect nevertheless.
            LakeError: it refused what was asked.
        """
        with self.errors():
            transport = self._open()
            try:
                yield self._client_on(transport)
            finally:
                transport.close()

    def _open(self) -> Any:
        from thrift.transport.TTransport import TTransportException

        *others, last = self._addresses
        for host, port in others:
            try:
                return self._opened(host, port)
            except TTransportException:
                continue
        return self._opened(*last)

    def _opened(self, host: str, port: int) -> Any:
        from thrift.transport.TSocket import TSocket
        from thrift.transport.TTransport import TBufferedTransport, TSaslClientTransport

        socket = TSocket(host, port)
        socket.setTimeout(_TO_CONNECT_MS)
        if self._properties.get("hive.kerberos-authentication", "").lower() == "true":
            service = self._properties.get("hive.kerberos-service-name", "hive")
            transport = TSaslClientTransport(socket, host=host, service=service)
        else:
            transport = TBufferedTransport(socket)
        transport.open()
        socket.setTimeout(_TO_ANSWER_MS)
        return transport

    def _client_on(self, transport: Any) -> Any:
        from hive_metastore.ThriftHiveMetastore import Client
        from thrift.protocol.TBinaryProtocol import TBinaryProtocol

        # Strict: what is no answer of Thrift is an error at once, and not the length of a gigabyte to wait for.
        client = Client(TBinaryProtocol(transport, strictRead=True))
        if ugi := self._properties.get("ugi"):
            user, *groups = ugi.split(":")
            client.set_ugi(user, groups)
        return client

    def _address(self, uri: str) -> tuple[str, int]:
        try:
            url = urlsplit(uri)
            host, port = url.hostname, url.port or _PORT
        except ValueError:
            host = None
        if not host or url.scheme != "thrift":
            raise SettingsInvalid(
                f"catalogs.{self._catalog}.uri: {uri!r} is not the address of a Hive metastore.",
                remedy="Write thrift://HOST:9083; separate several addresses with commas.",
                catalog=self._catalog,
            )
        return host, port

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of Thrift and of the metastore into ours."""
        try:
            yield
        except ImportError as error:
            raise _not_installed(self._catalog, error) from error
        except (OSError, EOFError, struct.error, UnicodeError) as error:
            raise self._unreachable(error) from error
        except Exception as error:
            if (found := self._explained(error)) is None:
                raise
            raise found from error

    def _explained(self, error: Exception) -> LakeError | None:
        """Return the error for one of Thrift's; None if it is none."""
        from thrift.protocol.TProtocol import TProtocolException
        from thrift.Thrift import TApplicationException, TException
        from thrift.transport.TTransport import TTransportException

        if not isinstance(error, TException):
            return None
        message = getattr(error, "message", None) or str(error)
        if isinstance(error, (TTransportException, TProtocolException)):
            return self._unreachable(getattr(error, "inner", None) or message)
        name = type(error).__name__
        failed = isinstance(error, TApplicationException) or name == "MetaException"
        kind = LakeUnavailable if failed else LakeError
        return kind(
            f"The metastore of the catalog {self._catalog} reports {name}: {message}",
            remedy=_SERVER,
            catalog=self._catalog,
        )

    def _unreachable(self, reason: object) -> LakeUnavailable:
        where = ", ".join(f"{host}:{port}" for host, port in self._addresses)
        return LakeUnavailable(
            f"The catalog {self._catalog} cannot be reached: the metastore at {where} does not answer: {reason}",
            remedy=_ADDRESS.format(catalog=self._catalog),
            catalog=self._catalog,
        )


def _not_installed(catalog: str, error: ImportError) -> SettingsInvalid:
    return SettingsInvalid(
        f"The catalog {catalog} is a Hive catalog, and a package for it is not installed: {error}",
        remedy="pip install 'calve[hive]'; for Kerberos, pip install 'pyiceberg[hive-kerberos]'",
        catalog=catalog,
    )
