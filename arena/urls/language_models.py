from __future__ import annotations

from django.urls import URLPattern, path

from arena.views import language_models, providers

_MODEL = "t/<str:team>/models/<str:language_model>/"
_PROVIDER = "t/<str:team>/providers/<str:provider>/"

urlpatterns: list[URLPattern] = [
    path("t/<str:team>/models/", language_models.model_list, name="model-list"),
    path("t/<str:team>/models/new/", language_models.model_create, name="model-create"),
    path(_MODEL, language_models.model_detail, name="model-detail"),
    path(f"{_MODEL}edit/", language_models.model_edit, name="model-edit"),
    path(f"{_MODEL}delete/", language_models.model_delete, name="model-delete"),
    path(f"{_MODEL}test/", language_models.model_test, name="model-test"),
    path(f"{_MODEL}price/", language_models.model_price, name="model-price"),
    path(f"{_MODEL}enabled/", language_models.model_enabled, name="model-enabled"),
    path("t/<str:team>/providers/new/", providers.provider_create, name="provider-create"),
    path(f"{_PROVIDER}edit/", providers.provider_edit, name="provider-edit"),
    path(f"{_PROVIDER}delete/", providers.provider_delete, name="provider-delete"),
    path(f"{_PROVIDER}models/", providers.provider_models, name="provider-models"),
]
