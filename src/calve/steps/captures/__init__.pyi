from .icdc import ICDC as ICDC
from .ip_capture import IpCapture as IpCapture
from .ip_commit import IpCommit as IpCommit
from .request import declared_in as declared_in
