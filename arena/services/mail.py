"""Mail leaves outside the transaction and outside the request."""

from __future__ import annotations

import logging
import smtplib
from threading import Thread

from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction

logger = logging.getLogger(__name__)
THREAD_NAME = "mail"


def mail_is_configured() -> bool:
    return bool(settings.EMAIL_HOST)


def send_mail_after_commit(*, to: str, subject: str, body: str) -> None:
    """Send when the change it tells of is safe.

    A thread of its own: a slow mail server must not hold the page, and its delay must not tell that an account exists.
    """
    message = EmailMessage(subject=subject, body=body, to=[to])
    transaction.on_commit(lambda: Thread(target=_deliver, args=(message,), name=THREAD_NAME).start())


def _deliver(message: EmailMessage) -> None:
    try:
        message.send()
    except (OSError, smtplib.SMTPException):
        # Whoever waits for the mail can ask again; the operator reads why it did not come.
        logger.exception("Mail to %s was not sent. Check EMAIL_HOST and its companions.", message.to)
