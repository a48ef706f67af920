from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.conf import settings
from django.contrib.auth import password_validation
from django.contrib.auth.forms import AuthenticationForm, PasswordResetForm
from django.core.exceptions import ValidationError
from django.template.loader import render_to_string
from django.utils.translation import gettext_lazy as _

from arena.models import Role, Team, User
from arena.services.logins import TooManyAttempts, check_password, take_attempt
from arena.services.mail import send_mail_after_commit
from arena.services.members import roles_within

if TYPE_CHECKING:
    UserModelForm = forms.ModelForm[User]
    TeamModelForm = forms.ModelForm[Team]
else:  # Generic for the type checker only.
    UserModelForm = TeamModelForm = forms.ModelForm

TOO_MANY = _("Too many attempts. Wait %(minutes)s minutes, then try again.")


def too_many_attempts() -> ValidationError:
    minutes = -(-settings.LOGIN_LOCK_SECONDS // 60)
    return ValidationError(TOO_MANY, code="too_many_attempts", params={"minutes": minutes})


class LoginForm(AuthenticationForm):
    error_messages = {
        "invalid_login": _("This address and password do not go together. Check both and try again."),
        "inactive": _("This address and password do not go together. Check both and try again."),
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["username"] = forms.EmailField(
            label=_("E-mail address"),
            max_length=254,
            widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
        )

    def clean(self) -> dict[str, Any]:
        email, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if email and password and self.request is not None:
            try:
                self.user_cache = check_password(self.request, email=email, password=password)
            except TooManyAttempts as error:
                raise too_many_attempts() from error
            if self.user_cache is None:
                raise self.get_invalid_login_error()
        return self.cleaned_data


class MailResetForm(PasswordResetForm):
    """Django's form, sent on our own path: limited, and no slower for an address that exists."""

    def __init__(self, *args: Any, request: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_email(self) -> str:
        email = str(self.cleaned_data["email"])
        try:
            take_attempt(self.request, email=email, kind="reset")
        except TooManyAttempts as error:
            raise too_many_attempts() from error
        return email

    def send_mail(
        self,
        subject_template_name: str,
        email_template_name: str,
        context: dict[str, Any],
        from_email: str | None,
        to_email: str,
        html_email_template_name: str | None = None,
    ) -> None:
        subject = " ".join(render_to_string(subject_template_name, context).split())
        body = render_to_string(email_template_name, context)
        send_mail_after_commit(to=to_email, subject=subject, body=body)


class ProfileForm(UserModelForm):
    language = forms.ChoiceField(
        label=_("Language"),
        choices=[("", _("As the browser asks")), *settings.LANGUAGES],
        required=False,
    )

    class Meta:
        model = User
        fields = ["name"]
        widgets = {"name": forms.TextInput(attrs={"autocomplete": "name"})}


class TeamForm(TeamModelForm):
    class Meta:
        model = Team
        fields = ["name"]
        labels = {"name": _("Name of the team")}


class InvitationForm(forms.Form):
    email = forms.EmailField(
        label=_("E-mail address"), max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, granted_by: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(role.value, role.label) for role in roles_within(granted_by)]
        self.fields["role"] = forms.ChoiceField(label=_("Role"), initial=Role.MEMBER, choices=choices)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class DeleteTeamForm(forms.Form):
    name = forms.CharField(label=_("Name of the team"), widget=forms.TextInput(attrs={"autocomplete": "off"}))

    def __init__(self, *args: Any, team: Team, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.team = team

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        if name != self.team.name.strip():
            raise ValidationError(_("This is not the team's name. Nothing was deleted."))
        return name


class NewPasswordForm(forms.Form):
    """Two equal passwords that pass the rules for `user`."""

    password = forms.CharField(
        label=_("New password"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 10 characters, not only digits, and nothing that others would guess."),
    )
    password_again = forms.CharField(
        label=_("New password again"),
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        password, again = cleaned.get("password"), cleaned.get("password_again")
        if password and again and password != again:
            self.add_error("password_again", _("The two passwords differ."))
        elif password:
            try:
                password_validation.validate_password(password, self.user)
            except ValidationError as error:
                self.add_error("password", error)
        return cleaned


class RegistrationForm(NewPasswordForm):
    name = forms.CharField(label=_("Your name"), max_length=120, widget=forms.TextInput(attrs={"autocomplete": "name"}))
    field_order = ["name", "password", "password_again"]

    def clean_name(self) -> str:
        # The password rules compare the password with what is known of the person.
        self.user.name = str(self.cleaned_data["name"])
        return self.user.name
