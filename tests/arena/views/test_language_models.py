from __future__ import annotations

import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from arena.encryption import decrypt
from arena.models import Call, LanguageModel, Membership, Price, Provider, Role, Team
from arena.services.language_models import ModelFields, create_language_model
from tests.arena.models_world import make_used
from tests.personas import World
from tests.samples.language_models import LIMITS

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret-0123456789"


@pytest.fixture
def url(world: World) -> Callable[..., str]:
    def make(name: str, **kwargs: str) -> str:
        return reverse(f"arena:{name}", kwargs={"team": world.own.team_id, **kwargs})

    return make


def provider_data(**changes: Any) -> dict[str, Any]:
    return {"name": "house", "kind": "openai", "base_url": "https://llm.example.com/v1", **LIMITS} | changes


def model_data(world: World, **changes: Any) -> dict[str, Any]:
    return {"provider": world.own.objects["provider"].public_id, "model_id": "gpt-mini", "enabled": "on"} | changes


def text(response: Any) -> str:
    return str(response.content.decode())


def test_a_key_never_comes_back(admin: Client, url: Callable[..., str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    pages = [admin.post(url("provider-create"), provider_data(key=KEY, base_url="nonsense"))]
    assert pages[0].status_code == 422
    created = admin.post(url("provider-create"), provider_data(key=KEY))
    assert created.status_code == 303
    provider = Provider.objects.get(name="house")
    assert decrypt(provider.encrypted_key) == KEY
    edit = url("provider-edit", provider=provider.public_id)
    pages += [created, admin.get(created["Location"]), admin.get(edit), admin.get(url("model-list"))]
    pages += [admin.get(url("audit-log")), admin.post(edit, provider_data(key=KEY, connect_timeout_s="x"))]
    for page in pages:
        assert "very-secret" not in text(page)
        assert provider.encrypted_key not in text(page)
    assert "A key is stored" in text(admin.get(edit))
    assert "very-secret" not in caplog.text


def test_a_new_host_without_the_key_says_that_it_is_gone(admin: Client, url: Callable[..., str]) -> None:
    admin.post(url("provider-create"), provider_data(key=KEY))
    provider = Provider.objects.get(name="house")
    edit = url("provider-edit", provider=provider.public_id)
    page = admin.post(edit, provider_data(base_url="https://other.example.com/v1"), follow=True)
    assert "The stored key was removed" in text(page)
    provider.refresh_from_db()
    assert provider.encrypted_key == ""


def test_removing_a_key(admin: Client, url: Callable[..., str]) -> None:
    admin.post(url("provider-create"), provider_data(key=KEY))
    provider = Provider.objects.get(name="house")
    admin.post(url("provider-edit", provider=provider.public_id), provider_data(remove_key="on"))
    provider.refresh_from_db()
    assert provider.encrypted_key == ""


def test_presets_fill_in_the_form(admin: Client, url: Callable[..., str]) -> None:
    page = text(admin.get(f"{url('provider-create')}?preset=ollama"))
    assert 'value="http://localhost:11434/v1"' in page
    assert 'value="ollama"' in page


@pytest.mark.parametrize(("kind", "host"), [("anthropic", "api.anthropic.com"), ("gemini", "googleapis.com")])
def test_a_provider_of_another_format(
    admin: Client, world: World, url: Callable[..., str], kind: str, host: str
) -> None:
    page = text(admin.get(f"{url('provider-create')}?preset={kind}"))
    assert f'<option value="{kind}" selected' in page
    assert host in page
    assert '<option value="demo"' not in page
    assert admin.post(url("provider-create"), provider_data(kind="demo")).status_code == 422
    assert admin.post(url("provider-create"), provider_data(kind=kind, base_url="", key=KEY)).status_code == 303
    provider = Provider.objects.get(name="house")
    assert (provider.kind, host in provider.base_url) == (kind, True)
    edit = url("provider-edit", provider=provider.public_id)
    assert provider.get_kind_display() in text(admin.get(edit))
    # Its format stays, whatever is posted.
    admin.post(edit, provider_data(kind="openai", base_url=provider.base_url))
    provider.refresh_from_db()
    assert provider.kind == kind


def test_all_that_is_wrong_for_a_format_is_said_at_once(admin: Client, world: World, url: Callable[..., str]) -> None:
    admin.post(url("provider-create"), provider_data(kind="gemini", base_url=""))
    provider = Provider.objects.get(name="house").public_id
    data = model_data(world, provider=provider, parameters='{"candidateCount": 2}', max_tokens="none")
    page = text(admin.post(url("model-create"), data))
    assert "candidateCount" in page
    assert "Enter a whole number" in page


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ('{"temperature": 0.7', "line 1, column 20"),
        ("[1, 2]", "Write an object"),
        ('{"stream": false}', "stream"),
        ('{"temperature": NaN}', "NaN and Infinity"),
    ],
)
def test_wrong_parameters_stay_as_typed(
    admin: Client, world: World, url: Callable[..., str], parameters: str, sentence: str
) -> None:
    page = admin.post(url("model-create"), model_data(world, parameters=parameters, display_name="Kept <name>"))
    assert page.status_code == 422
    assert sentence in text(page)
    assert page.context["form"]["parameters"].value() == parameters
    assert "Kept &lt;name&gt;" in text(page)
    assert not LanguageModel.objects.filter(model_id="gpt-mini").exists()


def test_a_model_is_added_with_its_price(admin: Client, world: World, url: Callable[..., str]) -> None:
    data = model_data(world, parameters='{"temperature": 0}', price_input="0.5", price_output="20", takes_pdf="on")
    response = admin.post(url("model-create"), data)
    model = LanguageModel.objects.get(model_id="gpt-mini")
    assert response.status_code == 303
    assert response["Location"] == url("model-detail", language_model=model.public_id)
    assert (model.parameters, model.pdf_input, model.family) == ({"temperature": 0}, "base64", "openai")
    page = text(admin.get(response["Location"]))
    assert "$0.50 in, $20.00 out" in page
    assert "entered by hand" in page
    edit = text(admin.get(url("model-edit", language_model=model.public_id)))
    assert 'value="20"' in edit


def test_half_a_price_is_none(admin: Client, world: World, url: Callable[..., str]) -> None:
    page = admin.post(url("model-create"), model_data(world, price_input="0.5"))
    assert page.status_code == 422
    assert "price_output" in page.context["form"].errors


def test_a_changed_number_does_not_keep_the_old_source(admin: Client, world: World, url: Callable[..., str]) -> None:
    model = world.own.objects["language_model"]
    price = Price.objects.get(language_model=model)
    data = model_data(world, model_id=model.model_id, price_input="7", price_output="2")
    data |= {"price_source": price.source, "price_valid_from": price.valid_from.isoformat()}
    admin.post(url("model-edit", language_model=model.public_id), data)
    newest = Price.objects.filter(language_model=model).latest()
    assert (newest.input_per_million, newest.source) == (Decimal(7), "entered by hand")


def test_no_price_is_not_nought(admin: Client, world: World, url: Callable[..., str]) -> None:
    admin.post(url("model-create"), model_data(world))
    model = LanguageModel.objects.get(model_id="gpt-mini")
    assert "no price" in text(admin.get(url("model-detail", language_model=model.public_id)))
    assert "no price" in text(admin.get(url("model-list")))


def test_an_edit_of_a_used_model_leads_to_its_new_version(admin: Client, world: World, url: Callable[..., str]) -> None:
    model = world.own.objects["language_model"]
    make_used(model)
    data = model_data(world, model_id=model.model_id, max_tokens="77")
    page = admin.post(url("model-edit", language_model=model.public_id), data, follow=True)
    assert "saved as a new version" in text(page)
    new = LanguageModel.objects.current().get(lineage=model.lineage)
    assert page.redirect_chain[-1][0] == url("model-detail", language_model=new.public_id)
    assert url("model-detail", language_model=model.public_id) in text(page)
    stale = admin.post(url("model-edit", language_model=model.public_id), data | {"max_tokens": "78"})
    assert stale.status_code == 422
    assert "newer version" in text(stale)


def test_a_price_is_added_from_the_page_of_the_model(admin: Client, world: World, url: Callable[..., str]) -> None:
    model = world.own.objects["language_model"]
    target = url("model-price", language_model=model.public_id)
    assert admin.post(target, {"price_input": "3"}).status_code == 422
    future = {"price_input": "3", "price_output": "4", "price_valid_from": "2999-01-01"}
    wrong = admin.post(target, future)
    assert "cannot begin in the future" in text(wrong)
    done = admin.post(target, {"price_input": "3", "price_output": "4", "price_source": "their page"})
    assert done.status_code == 303
    assert Price.objects.filter(language_model=model).latest().source == "their page"


def test_a_test_without_a_key_says_why(admin: Client, world: World, url: Callable[..., str]) -> None:
    target = url("model-test", language_model=world.own.objects["language_model"].public_id)
    plain = admin.post(target, follow=True)
    assert "TILTYARD_KEY_UNSET_IN_TESTS is not set" in text(plain)
    fragment = admin.post(target, headers={"HX-Request": "true"})
    assert "TILTYARD_KEY_UNSET_IN_TESTS is not set" in text(fragment)
    assert not Call.objects.exists()


def test_a_list_without_a_key_says_why(admin: Client, world: World, url: Callable[..., str]) -> None:
    target = url("provider-models", provider=world.own.objects["provider"].public_id)
    assert "TILTYARD_KEY_UNSET_IN_TESTS is not set" in text(admin.post(target))
    fragment = text(admin.post(target, headers={"HX-Request": "true"}))
    assert "<html" not in fragment
    assert "TILTYARD_KEY_UNSET_IN_TESTS is not set" in fragment


def test_members_see_no_buttons(member: Client, world: World, url: Callable[..., str]) -> None:
    for page in (
        text(member.get(url("model-list"))),
        text(member.get(url("model-detail", language_model=world.own.objects["language_model"].public_id))),
    ):
        assert "/edit/" not in page
        assert "/test/" not in page
        assert "/providers/" not in page


def test_a_provider_of_another_team_cannot_be_chosen(admin: Client, world: World, url: Callable[..., str]) -> None:
    data = model_data(world, provider=world.other.objects["provider"].public_id)
    page = admin.post(url("model-create"), data)
    assert page.status_code == 422
    assert "provider" in page.context["form"].errors


def queries(client: Client, address: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_no_query_per_row(member: Client, world: World, url: Callable[..., str]) -> None:
    model = world.own.objects["language_model"]
    make_used(model)
    addresses = [url("model-list"), url("model-detail", language_model=model.public_id)]
    before = [queries(member, address) for address in addresses]
    for number in range(5):
        fields = ModelFields(provider=model.provider, model_id=f"m{number}")
        more = create_language_model(team=world.own.team, actor=None, fields=fields)
        make_used(more, name=f"T{number}")
        make_used(model, name=f"Judged {number}", by="judge")
        Price.objects.create(
            language_model=model,
            input_per_million=Decimal(number),
            output_per_million=1,
            source="s",
            valid_from="2026-01-01",
        )
    assert [queries(member, address) for address in addresses] == before
    assert max(before) <= 16


def test_the_team_without_models_is_led_on(world: World) -> None:
    empty = Team.objects.create(name="Empty")
    Membership.objects.create(team=empty, user=world.own.user(Role.ADMIN), role=Role.ADMIN)
    page = world.client(Role.ADMIN).get(reverse("arena:model-create", kwargs={"team": empty.public_id}))
    assert page.status_code == 303
    assert page["Location"] == reverse("arena:provider-create", kwargs={"team": empty.public_id})
