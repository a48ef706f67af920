from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from arena.forms.people import LoginForm, MailResetForm, NewPasswordForm, ProfileForm
from arena.models import User
from arena.selectors.teams import login_link_by_token, memberships_of
from arena.services.logins import LOGIN_LINK_HOURS, use_login_link
from arena.services.mail import mail_is_configured
from arena.services.members import Refused
from arena.views.people_base import log_in, site_root, this_user

LANGUAGE_COOKIE_SECONDS = 365 * 24 * 3600


class LoginView(auth_views.LoginView):
    template_name = "registration/login.html"
    authentication_form = LoginForm
    redirect_authenticated_user = True

    def get_success_url(self) -> str:
        url = super().get_success_url()
        # Django answers 500 to somebody who is signed in and would be led back to this very page.
        return self.get_default_redirect_url() if url.partition("?")[0] == self.request.path else url


class LogoutView(auth_views.LogoutView):
    http_method_names = ["post", "options"]


class PasswordChangeView(auth_views.PasswordChangeView):
    template_name = "registration/password_change.html"
    success_url = reverse_lazy("arena:profile")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your password is changed. Other sessions were signed out."))
        return super().form_valid(form)


class PasswordResetView(auth_views.PasswordResetView):
    template_name = "registration/password_reset.html"
    email_template_name = "registration/password_reset_mail.txt"
    subject_template_name = "registration/password_reset_subject.txt"
    form_class = MailResetForm
    success_url = reverse_lazy("arena:password-reset-sent")

    def get_form_kwargs(self) -> dict[str, Any]:
        return {**super().get_form_kwargs(), "request": self.request}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(mail_is_configured=mail_is_configured(), **kwargs)

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not mail_is_configured():
            return self.get(request)
        self.extra_email_context = {"root": site_root(request)}
        return super().post(request, *args, **kwargs)


class PasswordResetSentView(auth_views.PasswordResetDoneView):
    template_name = "registration/password_reset_sent.html"


class PasswordResetConfirmView(auth_views.PasswordResetConfirmView):
    template_name = "registration/password_reset_confirm.html"
    success_url = reverse_lazy("arena:login")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, _("Your new password is set. Sign in with it."))
        return super().form_valid(form)


@login_required
def profile(request: HttpRequest) -> HttpResponse:
    user = this_user(request)
    cookie = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
    form = ProfileForm(request.POST or None, instance=user, initial={"language": cookie})
    if request.method != "POST" or not form.is_valid():
        context = {"form": form, "memberships": memberships_of(user)}
        return render(request, "arena/people/profile.html", context)
    form.save()
    response = redirect("arena:profile")
    language = form.cleaned_data["language"]
    if language:
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=LANGUAGE_COOKIE_SECONDS,
            secure=request.is_secure(),
            httponly=True,
            samesite="Lax",
        )
    else:
        response.delete_cookie(settings.LANGUAGE_COOKIE_NAME)
    messages.success(request, _("Your profile is saved."))
    return response


@never_cache
def login_link(request: HttpRequest, token: str) -> HttpResponse:
    """GET only shows a button, so that a mail scanner or a preview uses nothing up."""
    link = login_link_by_token(token)
    if link is None:
        return render(request, "arena/people/login_link_closed.html", {"hours": LOGIN_LINK_HOURS}, status=410)
    form = NewPasswordForm(request.POST or None, user=link.user) if link.sets_password else None
    if request.method == "POST" and (form is None or form.is_valid()):
        try:
            user: User = use_login_link(link=link, password=form.cleaned_data["password"] if form else None)
        except Refused:
            # Somebody else was faster.
            return render(request, "arena/people/login_link_closed.html", {"hours": LOGIN_LINK_HOURS}, status=410)
        log_in(request, user)
        return redirect("arena:home")
    return render(request, "arena/people/login_link.html", {"link": link, "form": form})
