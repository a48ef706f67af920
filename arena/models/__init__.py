from arena.models.audit_log import AuditLog
from arena.models.base import Outcome, PublicModel, make_public_id
from arena.models.calls import Call, CallStatus, PaidCall, Worker
from arena.models.juries import Ballot, Decision, DecisionOutcome, Judge, Jury, Tally, Verdict
from arena.models.language_models import LanguageModel, Price, Provider
from arena.models.rendered import RenderedText
from arena.models.task_sets import Attachment, Sample, SampleAttachment, TaskSet, UploadDraft
from arena.models.teams import ROLE_ORDER, Invitation, LoginLink, Membership, Role, Team, User
from arena.models.tournaments import BenchProbe, Candidate, Match, Step, Tournament, Trial, TrialRequest

__all__ = [
    "ROLE_ORDER",
    "Attachment",
    "AuditLog",
    "Ballot",
    "BenchProbe",
    "Call",
    "CallStatus",
    "Candidate",
    "Decision",
    "DecisionOutcome",
    "Invitation",
    "Judge",
    "Jury",
    "LanguageModel",
    "LoginLink",
    "Match",
    "Membership",
    "Outcome",
    "PaidCall",
    "Price",
    "Provider",
    "PublicModel",
    "RenderedText",
    "Role",
    "Sample",
    "SampleAttachment",
    "Step",
    "Tally",
    "TaskSet",
    "Team",
    "Tournament",
    "Trial",
    "TrialRequest",
    "UploadDraft",
    "User",
    "Verdict",
    "Worker",
    "make_public_id",
]
