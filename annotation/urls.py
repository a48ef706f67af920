from __future__ import annotations

from django.urls import URLPattern, path

from annotation.views import campaigns, joining, quality, rating

app_name = "annotation"
_ONE = "t/<str:team>/campaigns/<str:campaign>/"
_RATE = "rate/<str:campaign>/"

urlpatterns: list[URLPattern] = [
    path("t/<str:team>/campaigns/", campaigns.campaign_list, name="campaign-list"),
    path("t/<str:team>/campaigns/new/", campaigns.campaign_create, name="campaign-create"),
    path("t/<str:team>/campaigns/waiting/", campaigns.waiting_fragment, name="waiting-fragment"),
    path(_ONE, campaigns.campaign_detail, name="campaign-detail"),
    path(f"{_ONE}edit/", campaigns.campaign_edit, name="campaign-edit"),
    path(f"{_ONE}open/", campaigns.campaign_open, name="campaign-open"),
    path(f"{_ONE}close/", campaigns.campaign_close, name="campaign-close"),
    path(f"{_ONE}reveal/", campaigns.campaign_reveal, name="campaign-reveal"),
    path(f"{_ONE}grow/", campaigns.campaign_grow, name="campaign-grow"),
    path(f"{_ONE}invitations/", campaigns.campaign_invite, name="campaign-invite"),
    path(
        f"{_ONE}invitations/<str:invitation>/revoke/",
        campaigns.campaign_revoke_invitation,
        name="campaign-revoke-invitation",
    ),
    path(f"{_ONE}open-link/", campaigns.campaign_open_link, name="campaign-open-link"),
    path(f"{_ONE}open-link/revoke/", campaigns.campaign_revoke_open_link, name="campaign-revoke-open-link"),
    path(f"{_ONE}raters/<str:rater>/block/", campaigns.campaign_block_rater, name="campaign-block-rater"),
    path(f"{_ONE}raters/<str:rater>/screen/", quality.rater_screen, name="rater-screen"),
    path(f"{_ONE}quality/", quality.campaign_quality, name="campaign-quality"),
    path(f"{_ONE}screen/", quality.campaign_screen, name="campaign-screen"),
    path(f"{_ONE}leave-out/", quality.campaign_leave_out, name="campaign-leave-out"),
    path(f"{_ONE}adjudication/", quality.campaign_adjudication, name="campaign-adjudication"),
    path(f"{_ONE}adjudication/<str:pair>/", quality.adjudication_pair, name="adjudication-pair"),
    path(f"{_ONE}anchor/", quality.campaign_anchor, name="campaign-anchor"),
    path(f"{_ONE}export/", quality.campaign_export, name="campaign-export"),
    path(f"{_ONE}export/<str:name>", quality.campaign_export_file, name="campaign-export-file"),
    path("t/<str:team>/tournaments/<str:tournament>/people/", quality.people, name="people"),
    path(_RATE, rating.rate, name="rate"),
    path(f"{_RATE}join/", rating.rate_join, name="rate-join"),
    path(f"{_RATE}vote/", rating.rate_vote, name="rate-vote"),
    path(f"{_RATE}undo/", rating.rate_undo, name="rate-undo"),
    path(f"{_RATE}draft/", rating.rate_draft, name="rate-draft"),
    path(f"{_RATE}leak/", rating.rate_leak, name="rate-leak"),
    path(f"{_RATE}guidelines/", rating.rate_guidelines, name="rate-guidelines"),
    path(f"{_RATE}votes/", rating.rate_votes, name="rate-votes"),
    path(f"{_RATE}pairs/<str:token>/", rating.rate_pair, name="rate-pair"),
    path(f"{_RATE}pairs/<str:token>/files/<int:number>/", rating.rate_file, name="rate-file"),
    path("guests/<str:token>/", joining.guest_join, name="guest-join"),
    path("open-campaigns/<str:token>/", joining.open_join, name="open-join"),
]
