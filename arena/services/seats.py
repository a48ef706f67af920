"""Who takes part, pinned: a snapshot says what a model was when it entered, whatever its live row becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arena.models import Judge, Jury, LanguageModel
from arena.selectors.specs import named
from arena.services.wire import current_price


def seat_judges(jury: Jury, judges: Sequence[LanguageModel], replacement_judges: Sequence[LanguageModel]) -> None:
    for models, replacement in ((judges, False), (replacement_judges, True)):
        for position, (model, label, full_id) in enumerate(named(models)):
            Judge.objects.create(
                jury=jury,
                language_model=model,
                position=position,
                replacement=replacement,
                label=label,
                full_id=full_id,
                snapshot=snapshot_of(model),
            )


def snapshot_of(model: LanguageModel) -> dict[str, Any]:
    """What the model was when it entered: reports and audits read this, never the live row."""
    price = current_price(model.pk)
    return {
        "model_id": model.model_id,
        "provider": model.provider.name if model.provider else None,
        "kind": model.provider.kind if model.provider else None,
        "base_url": model.provider.base_url if model.provider else None,
        "full_id": model.full_id,
        "display_name": model.display_name,
        "family": model.family,
        "system_prompt": model.system_prompt,
        "parameters": model.parameters,
        "max_tokens": model.max_tokens,
        "pdf_input": model.pdf_input,
        "image_input": model.image_input,
        "fingerprint": model.fingerprint,
        "price": None
        if price is None
        else {
            "input_per_million": str(price.input_per_million),
            "output_per_million": str(price.output_per_million),
            "source": price.source,
            "valid_from": price.valid_from.isoformat(),
        },
    }
