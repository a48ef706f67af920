from __future__ import annotations

from annotation.models import Campaign
from arena.models import Membership, Role


def tournaments_concealed_from(membership: Membership) -> set[int]:
    """The tournaments of the open campaigns in which this member votes; owners and admins keep theirs.

    Their votes are marked instead: see `Rater.could_see_names`.
    """
    if membership.at_least(Role.ADMIN):
        return set()
    keys = Campaign.objects.open().filter(team=membership.team_id, raters__user=membership.user_id)
    return {key for key in keys.values_list("tournaments", flat=True) if key is not None}
