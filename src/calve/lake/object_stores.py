"""Object stores: how they are opened, and what their errors mean."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from calve.errors import CalveError, FilesLost, LakeRefused, LakeUnavailable

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

S3_SCHEMES = frozenset({"s3", "s3a", "s3n"})
AZURE_SCHEMES = frozenset({"abfs", "abfss", "wasb", "wasbs"})
STORE_SCHEMES = S3_SCHEMES | AZURE_SCHEMES | {"gs"}
PATH_STYLE, VIRTUAL_HOST = "s3.path-style-access", "s3.force-virtual-addressing"
_OWN_IO = "calve.lake.store_file_io.StoreFileIO"
_OWN_REGION = "us-east-1"
"""What stores other than Amazon's call their region unless they are told otherwise."""
_SECTION = "where calve.toml defines the catalog, or in logs.properties"
_KEYS = "; without keys in the settings, those of the environment and of AWS profiles count"
_CODE = re.compile(
    r"AWS Error (\w+)(?: \(HTTP status (\d+)\))? during \w+ operation:(?: Unable to parse ExceptionName: (\w+))?"
)
_OTHER_CODE = re.compile(r"google::cloud::Status\((\w+):|Azure Error: \[(\w+)\]")
_CURL = re.compile(r"curlCode: (\d+)")
_THROTTLED = frozenset(
    [
        *("503", "429", "SLOWDOWN", "THROTTLING", "THROTTLED", "REQUESTLIMITEXCEEDED", "SERVICEUNAVAILABLE"),
        *("RESOURCEEXHAUSTED", "SERVERBUSY"),  # of GCS and ADLS
    ]
)
_NO_BUCKET = "NOSUCHBUCKET"
_REFUSED = {
    "INVALIDACCESSKEYID": ("does not know the access key", f"Check s3.access-key-id {_SECTION}{_KEYS}."),
    "SIGNATUREDOESNOTMATCH": (
        "knows the access key, but not with this secret",
        f"Check s3.secret-access-key {_SECTION}{_KEYS}.",
    ),
    "INVALIDTOKEN": (
        "does not accept the session token",
        f"Check s3.session-token {_SECTION}; keys that do not expire need none.",
    ),
    _NO_BUCKET: (
        "has no such bucket",
        "Create the bucket, or correct the location (warehouse, capture.location, logs.location) or s3.endpoint.",
    ),
    "AUTHORIZATIONHEADERMALFORMED": ("belongs to another region", f"Set s3.region {_SECTION}."),
    "PERMANENTREDIRECT": ("has the bucket in another region", f"Set s3.region {_SECTION}."),
    "301": ("has the bucket in another region", f"Set s3.region {_SECTION}."),
    "REQUESTTIMETOOSKEWED": ("sees another time", "Set the clock of this machine."),
    "ACCESSDENIED": (
        "denies access",
        "Grant the access key permission to read, write, delete and list; without the last, what is missing is denied.",
    ),
}
_MISSING = _REFUSED[_NO_BUCKET]
_DENIED = ("rejects the credentials, or denies access", f"Check the properties gcs.* or adls.* {_SECTION}.")
_REFUSED |= {"CONTAINERNOTFOUND": _MISSING, "PERMISSIONDENIED": _DENIED, "UNAUTHENTICATED": _DENIED}
_REFUSED |= dict.fromkeys(["AUTHENTICATIONFAILED", "AUTHORIZATIONFAILURE", "AUTHORIZATIONPERMISSIONMISMATCH"], _DENIED)
"""What a store refuses, by its code in capitals without underscores: the AWS SDK spells those it knows its own way."""
_NETWORK = {
    "6": "Correct the host name in s3.endpoint; for virtual-host style, DNS has to know BUCKET.HOST.",
    "7": "Check s3.endpoint, the network, and whether the store runs.",
    "28": "Check s3.endpoint, the network, and the store's load; s3.connect-timeout and s3.request-timeout set how "
    "long to wait, in seconds.",
    "35": "TLS fails: check whether s3.endpoint begins with the right one of http:// and https://.",
    "60": "The store's certificate is not trusted: add its authority to this machine's.",
}
"""What helps, by the error codes of curl."""


def open_io(properties: Mapping[str, str], location: str) -> "FileIO":
    """Return PyIceberg's file system for a location."""
    from pyiceberg.io import load_file_io

    return load_file_io(dict(with_own_io(properties, location)), location)


def with_own_io(properties: Mapping[str, str], location: str) -> Mapping[str, str]:
    """Return properties with which PyIceberg opens a location by calve's class, unless they name another. Pure."""
    # For ADLS, PyIceberg itself prefers a library that calve does not bring.
    is_store = location.partition(":")[0] in STORE_SCHEMES
    return {"py-io-impl": _OWN_IO} | dict(properties) if is_store else properties


def s3_defaults(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return properties for S3, with what follows from those given. Pure."""
    endpoint = properties.get("s3.endpoint", "")
    implied = {}
    # Else PyIceberg asks Amazon for the region of the bucket, which takes seconds where Amazon cannot be reached.
    if endpoint and "amazonaws.com" not in endpoint and not {"s3.region", "client.region"} & properties.keys():
        implied["s3.region"] = _OWN_REGION
    # Spark has path style as a property where PyIceberg has virtual-host style.
    if (style := properties.get(PATH_STYLE)) is not None:
        implied[VIRTUAL_HOST] = str(style.lower() == "false").lower()
    return implied | dict(properties)


def is_throttled(error: Exception) -> bool:
    """Tell whether a store asks for fewer requests."""
    return not _THROTTLED.isdisjoint(_codes(error))


def failure(error: Exception, path: str, io: "FileIO | None") -> CalveError:
    """Return the error of calve for one of an object store's."""
    told = error
    if path.partition(":")[0] in S3_SCHEMES and io is not None and _is_unexplained(error):
        told = _reason(io, path) or error
    if isinstance(error, FileNotFoundError) and _NO_BUCKET not in _codes(told):
        told = error
    codes = _codes(told)
    if (code := next((code for code in codes if code in _REFUSED), None)) is not None:
        what, remedy = _REFUSED[code]
        return LakeRefused(f"{path}: the object store {what}. {_said(told)}", remedy=remedy, path=path)
    if isinstance(told, FileNotFoundError):
        return FilesLost(f"{path} is gone.", path=path)
    return LakeUnavailable(f"{path} cannot be reached: {_said(told)}", remedy=_remedy(told, codes), path=path)


def _remedy(error: Exception, codes: list[str]) -> str:
    """Return what helps against an error that may pass."""
    if is_throttled(error):
        return "The store asks for fewer requests: try again later, or raise its limits."
    if "EXPIREDTOKEN" in codes:
        return "The session token has expired: set new credentials, or let the catalog hand them out."
    curl = _CURL.search(str(error))
    unknown = "Check the address and the credentials of the object store."
    return unknown if curl is None else _NETWORK.get(curl[1], _NETWORK["7"])


def _codes(error: Exception) -> list[str]:
    """Return what an error of a store's library calls its cause, the most telling first."""
    if (found := _CODE.search(str(error))) is not None:
        parts = [found[3], found[1], found[2]]
    else:
        other = _OTHER_CODE.search(str(error))
        parts = [] if other is None else list(other.groups())
    return [part.replace("_", "").upper() for part in parts if part]


def _is_unexplained(error: Exception) -> bool:
    """Tell whether the answer had no text that says why: that of a HEAD request has none."""
    return isinstance(error, FileNotFoundError) or ("No response body" in str(error) and not is_throttled(error))


def _reason(io: "FileIO", path: str) -> Exception | None:
    """Ask the store for something that it refuses with the reason; None if it does not refuse."""
    from pyarrow.fs import FileSelector, FileType
    from pyiceberg.io.pyarrow import PyArrowFile

    file = io.new_input(path)
    if not isinstance(file, PyArrowFile):
        return None
    bucket, store = file._path.partition("/")[0], file._filesystem  # noqa: SLF001 - PyIceberg lists nothing
    try:
        # Nothing is below the name of a file, so the list is empty. A missing bucket is an empty list too.
        store.get_file_info(FileSelector(file._path, allow_not_found=True))  # noqa: SLF001
        is_there = store.get_file_info(bucket).type != FileType.NotFound
    except Exception as error:  # noqa: BLE001 - the reason is what is asked for
        return error
    return None if is_there else OSError(f"AWS Error NO_SUCH_BUCKET during HeadBucket operation: {bucket}")


def _said(error: Exception) -> str:
    """Return an error's text on one line."""
    return " ".join(str(error).split())
