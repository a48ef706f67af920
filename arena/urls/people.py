from __future__ import annotations

from django.urls import URLPattern, path

from arena.views import auth, home, invitations, people

urlpatterns: list[URLPattern] = [
    path("", home.home, name="home"),
    path("login/", auth.LoginView.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("login-links/<str:token>/", auth.login_link, name="login-link"),
    path("password-reset/", auth.PasswordResetView.as_view(), name="password-reset"),
    path("password-reset/sent/", auth.PasswordResetSentView.as_view(), name="password-reset-sent"),
    path(
        "password-reset/<str:uidb64>/<str:token>/",
        auth.PasswordResetConfirmView.as_view(),
        name="password-reset-confirm",
    ),
    path("profile/", auth.profile, name="profile"),
    path("profile/password/", auth.PasswordChangeView.as_view(), name="password-change"),
    path("invitations/<str:token>/", invitations.invitation_accept, name="invitation-accept"),
    path("teams/", home.team_list, name="team-list"),
    path("teams/new/", home.team_create, name="team-create"),
    path("t/<str:team>/", home.team_home, name="team-home"),
    path("t/<str:team>/settings/", people.team_settings, name="team-settings"),
    path("t/<str:team>/settings/delete/", people.team_delete, name="team-delete"),
    path("t/<str:team>/settings/audit-log/", people.audit_log, name="audit-log"),
    path("t/<str:team>/leave/", people.team_leave, name="team-leave"),
    path("t/<str:team>/members/", people.member_list, name="member-list"),
    path("t/<str:team>/members/<int:member>/role/", people.member_role, name="member-role"),
    path("t/<str:team>/members/<int:member>/remove/", people.member_remove, name="member-remove"),
    path("t/<str:team>/members/<int:member>/login-link/", people.member_login_link, name="member-login-link"),
    path("t/<str:team>/invitations/", people.invitation_create, name="invitation-create"),
    path("t/<str:team>/invitations/<str:invitation>/revoke/", people.invitation_revoke, name="invitation-revoke"),
]
