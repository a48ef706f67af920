from annotation.models.campaigns import Campaign, CampaignItem, GoldItem, GuidelineVersion
from annotation.models.raters import GuestInvitation, OpenLink, Rater
from annotation.models.votes import Adjudication, Assignment, Side, Vote, VoteTally

__all__ = [
    "Adjudication",
    "Assignment",
    "Campaign",
    "CampaignItem",
    "GoldItem",
    "GuestInvitation",
    "GuidelineVersion",
    "OpenLink",
    "Rater",
    "Side",
    "Vote",
    "VoteTally",
]
