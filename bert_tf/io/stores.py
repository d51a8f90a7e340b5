"""Calls of the object stores behind gs:// and s3://, by fsspec.

The packages of the stores retry failed calls for some seconds. `Store` retries them for half a
minute more, and turns an error that remains into one sentence. Credentials and endpoints are those
of the stores' own environment variables and files.
"""

import contextlib
import datetime
import errno
import functools
import os
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

from bert_tf.console import logger
from bert_tf.dependencies import optional
from bert_tf.errors import UserError

# The package of each scheme, the extra that installs it, and where it takes credentials from.
_GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS, or run gcloud auth application-default login"
_AMAZON = "AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
SCHEMES = {"gs": ("gcsfs.core", "gcs", _GOOGLE), "s3": ("s3fs", "s3", _AMAZON)}
ENDPOINTS = {"gs": "STORAGE_EMULATOR_HOST", "s3": "AWS_ENDPOINT_URL"}
_PART = 2**24  # the bytes of a part of an upload
_WAITS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between attempts
_DOWN = 60.0  # seconds without retries after a store could not be reached
_LONG = 4.0  # waits of this length or more are printed
# The packages whose network errors are not OSErrors.
_OF_NETWORK = ("aiohttp", "botocore", "fsspec", "gcsfs", "requests", "urllib3")
# Errors of credentials. Google's and Amazon's packages have no common class for them.
_REFUSALS = (
    "CredentialRetrievalError",
    "DefaultCredentialsError",
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "RefreshError",
    "TokenRetrievalError",
    "UnauthorizedSSOTokenError",
)


class Found(NamedTuple):
    """What a store says of an object. A folder, which stores have only in names, has the tag ""."""

    size: int
    tag: str  # changes with the content
    changed: float  # when


class Store:
    """Objects by names such as "bucket/folder/file". All methods raise UserError without a bucket
    or credentials, or if the store cannot be reached.
    """

    def __init__(self, scheme: str):
        self.scheme, self._failed = scheme, -_DOWN
        package, extra, _ = SCHEMES[scheme]
        self._package = optional(package, extra, f"reading and writing {scheme}://")

    @property
    def _files(self) -> Any:
        """The file system; fsspec's own cache makes one per process, also after a fork."""
        # The class of `gcsfs.core` uses only HTTP. The class that the package exports looks up the
        # kind of each bucket by gRPC, which takes a minute on an emulator without gRPC.
        name = "GCSFileSystem" if self.scheme == "gs" else "S3FileSystem"
        return getattr(self._package, name)(use_listings_cache=False)

    def info(self, key: str) -> Found | None:
        """The object or folder of that name; None if there is none."""
        try:
            return self._found(self._tried(key, "info"))
        except FileNotFoundError:
            return None

    def find(self, key: str) -> dict[str, Found]:
        """All objects in a folder and in the folders below it, by their whole names."""
        try:
            found = self._tried(key, "find", detail=True)
        except FileNotFoundError:
            return {}
        inside = f"{key}/" if key else ""
        return {
            name: self._found(each)
            for name, each in sorted(found.items())
            # Some tools store a folder as an empty object.
            if name.startswith(inside) and not name.endswith("/") and each["type"] == "file"
        }

    def glob(self, pattern: str) -> dict[str, Found]:
        """The objects that a pattern finds, in which `**` stands for any folders."""
        found = self._tried(pattern, "glob", detail=True)
        return {n: self._found(each) for n, each in sorted(found.items()) if each["type"] == "file"}

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        """The bytes from `start` to `end`. Raises FileNotFoundError."""
        return self._tried(key, "cat_file", start=start, end=end)

    def put(self, file: str | os.PathLike, key: str) -> Found | None:
        """Stores a file; returns what is there now."""
        self._tried(key, "put_file", os.fspath(file), chunksize=_PART)
        return self.info(key)

    def remove(self, keys: Iterable[str]) -> None:
        """Removes objects; it is no mistake if one is gone."""
        for key in keys:
            with contextlib.suppress(FileNotFoundError):
                self._tried(key, "rm_file")

    def write(self, key: str, data: bytes, tag: str | None = None) -> bool:
        """Stores a small object if the object that is there has this tag; with None, if there is no
        such object. Returns whether it is stored.
        """
        try:
            if self.scheme == "s3":
                condition = {"mode": "create"} if tag is None else {"IfMatch": tag}
                self._tried(key, "pipe_file", data, **condition)
            else:
                # gcsfs has no condition for a generation other than 0.
                bucket, _, name = key.partition("/")
                where = f"{self._files._location}/upload/storage/v1/b/{bucket}/o"
                options = {"uploadType": "media", "name": name, "ifGenerationMatch": tag or "0"}
                self._tried(key, "call", "POST", where, data=data, **options)
        except FileExistsError:
            # An attempt whose answer was lost may have stored it.
            return self.info(key) is not None and self.read(key) == data
        except FileNotFoundError:
            if tag is None:
                raise
            return False  # the object to replace is gone
        return True

    def _found(self, info: dict[str, Any]) -> Found:
        if info["type"] == "directory":
            return Found(0, "", 0.0)
        tag = info["generation"] if self.scheme == "gs" else info["ETag"]
        changed = info["mtime"] if self.scheme == "gs" else info["LastModified"]
        at = changed.timestamp() if isinstance(changed, datetime.datetime) else 0.0
        return Found(int(info["size"]), str(tag), at)

    def _tried(self, key: str, method: str, *args: Any, **options: Any) -> Any:
        """Calls a method of fsspec, and again if the network fails; `key` is its first argument.
        FileExistsError means that a condition of a write does not hold.
        """
        address = f"{self.scheme}://{key}"
        if method == "put_file":
            args = (*args, key)
        elif method != "call":
            args = (key, *args)
        # If the store could not be reached a moment ago, this call does not wait.
        is_down = time.monotonic() - self._failed < _DOWN
        for wait in (None,) if is_down else (*_WAITS, None):
            try:
                return getattr(self._files, method)(*args, **options)
            except FileExistsError:
                raise
            except FileNotFoundError as error:
                self._check_bucket(key, error)
                raise
            except Exception as error:
                words = " ".join(str(error).split())[:200] or type(error).__name__
                if "PreconditionFailed" in str(error.__cause__):
                    raise FileExistsError(address) from error
                if "InvalidRange" in str(error.__cause__):  # it is shorter now
                    raise FileNotFoundError(address) from error
                if _is_refused(error):
                    raise UserError(
                        f"{address} is refused ({words}); check the credentials "
                        f"({SCHEMES[self.scheme][2]}), and that they may read and write there"
                    ) from error
                package = type(error).__module__.partition(".")[0]
                if not isinstance(error, OSError) and package not in _OF_NETWORK:
                    raise
                if wait is None:
                    self._failed = time.monotonic()
                    raise UserError(
                        f"{address} cannot be reached ({words}); check the network and "
                        f"{ENDPOINTS[self.scheme]}, and start again"
                    ) from error
                if wait >= _LONG:
                    logger.warning(f"{address} ({words}): trying again in {wait:.0f} s")
                time.sleep(wait)

    def _check_bucket(self, key: str, error: FileNotFoundError) -> None:
        """Raises UserError if the bucket itself is missing."""
        bucket = key.split("/")[0]
        said = (f"b/{bucket}/o", f"b/{bucket}", "bucket does not exist")
        if key == bucket or str(error).endswith(said):
            raise UserError(
                f"there is no bucket {self.scheme}://{bucket}; create it, or correct the name"
            ) from error


def _is_refused(error: Exception) -> bool:
    if isinstance(error, PermissionError) or type(error).__name__ in _REFUSALS:
        return True
    # Amazon reports an expired token as a bad request, and without a message if the request was for
    # the size of an object.
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL
    return invalid or str(error).startswith("Forbidden") or getattr(error, "code", 0) in (401, 403)


store_of = functools.cache(Store)  # the store of "gs" or "s3"
