"""Immutability of language models: what a result rests on keeps its row, and an edit makes the next one."""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

from arena.models import Candidate, Judge, LanguageModel, Price, Trial, User, make_public_id
from arena.models.language_models import LanguageModelQuerySet
from arena.services import audit


def used_models(models: LanguageModelQuerySet) -> LanguageModelQuerySet:
    """Those that a candidate, a judge or a trial refers to."""
    own = {"language_model": OuterRef("pk")}
    return models.filter(
        Exists(Candidate.objects.filter(**own))
        | Exists(Judge.objects.filter(**own))
        | Q(Exists(Trial.objects.filter(**own)))
    )


def is_used(language_model: LanguageModel) -> bool:
    return used_models(LanguageModel.objects.filter(pk=language_model.pk)).exists()


def next_version(language_model: LanguageModel) -> LanguageModel:
    """A new current row of the lineage with the values at hand, which may differ from the stored ones.

    Inside a transaction that holds the lock of the old row.
    """
    old_pk = language_model.pk
    LanguageModel.objects.filter(pk=old_pk).update(superseded_at=timezone.now())
    language_model.pk = None
    language_model._state.adding = True
    language_model.public_id = make_public_id()
    language_model.superseded_at = None
    language_model.save()
    return language_model


def copy_price(*, old_pk: int, language_model: LanguageModel) -> None:
    """The price in force goes along with the next version; the history stays where its calls were paid."""
    price = Price.objects.filter(language_model_id=old_pk).order_by("valid_from", "id").last()
    if price is not None:
        Price.objects.create(
            language_model=language_model,
            input_per_million=price.input_per_million,
            output_per_million=price.output_per_million,
            source=price.source,
            valid_from=price.valid_from,
        )


def renew_fingerprint(language_model: LanguageModel, *, actor: User | None) -> LanguageModel:
    """After a change of its provider's address."""
    old_pk, old = language_model.pk, language_model.fingerprint
    language_model.fingerprint = language_model.compute_fingerprint()
    # What another endpoint accepts is not known yet.
    language_model.learned = {}
    versioned = is_used(language_model)
    if versioned:
        next_version(language_model)
        copy_price(old_pk=old_pk, language_model=language_model)
    else:
        language_model.save(update_fields=["fingerprint", "learned"])
    audit.record(
        team=language_model.team,
        actor=actor,
        action="language_model.version" if versioned else "language_model.update",
        target=language_model.full_id,
        old={"fingerprint": old},
        new={"fingerprint": language_model.fingerprint},
    )
    return language_model
