from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import reverse

from arena.models import User
from arena.services.logins import LOGIN_LINK_HOURS, create_login_link


class Command(BaseCommand):
    help = "Print a single-use link that opens an account, where a password is lost and no mail can be sent."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("email", help="the account's e-mail address")
        parser.add_argument(
            "--keep-password", action="store_true", help="log in only; without it the link asks for a new password"
        )
        parser.add_argument("--host", default="", help="begin the link with this instead of SITE_URL")

    def handle(self, *, email: str, keep_password: bool, host: str, **options: Any) -> None:
        user = User.objects.filter(email__iexact=email, is_active=True).first()
        if user is None:
            raise CommandError(f"No active account has the address {email}. `manage.py createsuperuser` makes one.")
        token = create_login_link(user=user, sets_password=not keep_password)
        root = (host or settings.SITE_URL or "http://localhost:8000").rstrip("/")
        self.stdout.write(f"{root}{reverse('arena:login-link', kwargs={'token': token})}")
        self.stderr.write(f"It works once, within {LOGIN_LINK_HOURS} hours.")
