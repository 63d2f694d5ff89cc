"""What errors of object stores mean, and what follows from the properties of one."""

import pytest

from calve.errors import CalveError, FilesLost, LakeRefused, LakeUnavailable
from calve.lake.object_stores import failure, is_throttled, s3_defaults, with_own_io

_AWS = "When reading 'k': AWS Error {} during GetObject operation: {}"
_GCS = "google::cloud::Status({}: Permanent error, with a last message of x)"
_ADLS = "GetProperties failed for 'https://a/c/k'. Azure Error: [{}] 403 Server failed."


@pytest.mark.parametrize(
    ("text", "kind", "remedy"),
    [
        (_AWS.format("ACCESS_DENIED", "Access Denied."), LakeRefused, "permission"),
        (_AWS.format("UNKNOWN (HTTP status 301)", "No response body."), LakeRefused, "s3.region"),
        (
            _AWS.format("UNKNOWN (HTTP status 400)", "Unable to parse ExceptionName: ExpiredToken"),
            LakeUnavailable,
            "expired",
        ),
        (_AWS.format("UNKNOWN (HTTP status 503)", "No response body."), LakeUnavailable, "fewer requests"),
        (_AWS.format("NETWORK_CONNECTION", "curlCode: 6, no host"), LakeUnavailable, "DNS"),
        (_AWS.format("NETWORK_CONNECTION", "curlCode: 35, SSL connect error"), LakeUnavailable, "http://"),
        (_GCS.format("PERMISSION_DENIED"), LakeRefused, "gcs.*"),
        (_GCS.format("RESOURCE_EXHAUSTED"), LakeUnavailable, "fewer requests"),
        (_ADLS.format("AuthorizationFailure"), LakeRefused, "adls.*"),
        (_ADLS.format("ContainerNotFound"), LakeRefused, "Create the bucket"),
        ("something else", LakeUnavailable, "address"),
    ],
)
def test_an_error_says_what_helps(text: str, kind: type[CalveError], remedy: str) -> None:
    """A refusal is permanent; what may pass is retried."""
    error = failure(OSError(text), "s3://b/k", None)
    assert type(error) is kind
    assert remedy in error.remedy
    assert is_throttled(OSError(text)) == ("fewer" in remedy)


def test_a_missing_file_is_lost() -> None:
    """The store knows nothing of it."""
    assert isinstance(failure(FileNotFoundError("k"), "gs://b/k", None), FilesLost)


@pytest.mark.parametrize(
    ("given", "implied"),
    [
        ({}, {}),
        ({"s3.endpoint": "http://minio"}, {"s3.region": "us-east-1"}),
        ({"s3.endpoint": "http://minio", "client.region": "r"}, {}),
        ({"s3.endpoint": "https://s3.eu-west-1.amazonaws.com"}, {}),
        ({"s3.path-style-access": "false"}, {"s3.force-virtual-addressing": "true"}),
        ({"s3.path-style-access": "false", "s3.force-virtual-addressing": "false"}, {}),
    ],
)
def test_properties_of_s3_follow_from_others(given: dict[str, str], implied: dict[str, str]) -> None:
    """What is given wins."""
    assert s3_defaults(given) == given | implied


def test_a_class_of_the_users_own_wins() -> None:
    """Stores are opened by calve's class otherwise, and other locations by PyIceberg's."""
    own = {"py-io-impl": "my.FileIO"}
    assert with_own_io(own, "s3://b") == own
    assert with_own_io({}, "/folder") == {}
    assert with_own_io({}, "gs://b")["py-io-impl"].startswith("calve.")
