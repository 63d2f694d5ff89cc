from .checks import CHECKS as CHECKS, CLEANUP as CLEANUP, Check as Check
from .model import (
    CheckResult as CheckResult,
    Leftover as Leftover,
    Outcome as Outcome,
    Proof as Proof,
    ProofOptions as ProofOptions,
    Skipped as Skipped,
)
from .proof import prove as prove
from .report import proof_document as proof_document, proof_markdown as proof_markdown
from .workspace import Workspace as Workspace
