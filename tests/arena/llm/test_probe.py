from __future__ import annotations

from datetime import UTC, datetime

import pypdfium2
import pytest

from arena.llm import ErrorCode
from arena.llm.probe import MAX_ATTEMPTS, one_page_pdf, probe
from tests.arena.llm.loopback import DONE, USAGE, Loopback, Reply, chunked, delta, event, plain


def _says(text: str, finish: str = "stop") -> Reply:
    return chunked(event(delta(text)), event(delta(finish=finish)), USAGE, DONE)


def _refuses(message: str, status: int = 400, **fields: object) -> Reply:
    return plain({"error": {"message": message, **fields}}, status)


OK = _says('{"ok": true}')


def test_all_is_well(server: Loopback) -> None:
    server.replies = [OK]
    before = datetime.now(UTC)
    result = probe(server.endpoint(), "m")
    assert result.ok
    assert (result.structured, result.structured_known, result.streaming) == ("schema", True, True)
    assert result.latency_ms is not None
    assert result.pdf_accepted is None
    assert result.changes == ()
    assert result.model_reported == "test-model-1"
    assert result.sentence.endswith("It follows a JSON schema.")
    (attempt,) = result.attempts
    assert before <= attempt.started_at <= attempt.ended_at <= datetime.now(UTC)
    assert (attempt.purpose, attempt.usage.input_tokens, attempt.error) == ("probe", 7, None)


def test_schema_refused(server: Loopback) -> None:
    server.replies = [_refuses("response_format json_schema is not supported"), OK]
    result = probe(server.endpoint(), "m")
    assert (result.ok, result.structured, result.changes) == (True, "json", ("no_schema",))
    assert [attempt.error is None for attempt in result.attempts] == [False, True]
    assert "no schema" in result.sentence
    assert server.received[1].payload["response_format"] == {"type": "json_object"}


def test_schema_taken_but_not_followed(server: Loopback) -> None:
    server.replies = [_says("Sure! true"), _says("Sure! true")]
    result = probe(server.endpoint(), "m")
    assert (result.ok, result.structured, result.structured_known) == (True, None, True)
    assert result.changes == ("no_schema", "no_json")
    assert len(result.attempts) == 2


def test_answer_cut_short_says_nothing_about_the_format(server: Loopback) -> None:
    server.replies = [_says("", finish="length")]
    result = probe(server.endpoint(), "m")
    assert (result.ok, result.structured, result.structured_known) == (True, None, False)
    assert len(result.attempts) == 1


def test_every_refused_parameter_is_dropped(server: Loopback) -> None:
    server.replies = [
        _refuses("Unsupported parameter", code="unsupported_parameter", param="max_tokens"),
        _refuses("Unsupported value", code="unsupported_value", param="temperature"),
        OK,
    ]
    result = probe(server.endpoint(), "m", parameters={"temperature": 0})
    assert (result.ok, result.changes) == (True, ("max_completion_tokens", "no:temperature"))
    payload = server.received[-1].payload
    assert "temperature" not in payload
    assert "max_completion_tokens" in payload


def test_server_that_refuses_everything_is_not_asked_for_ever(server: Loopback) -> None:
    server.replies = [
        _refuses("Unsupported parameter", param="max_tokens"),
        _refuses("Unsupported", param="max_completion_tokens"),
    ]
    server.replies *= MAX_ATTEMPTS
    result = probe(server.endpoint(), "m")
    assert (result.ok, result.error_code) == (False, ErrorCode.UNSUPPORTED_PARAMETER)
    assert len(result.attempts) == MAX_ATTEMPTS


@pytest.mark.parametrize(
    ("status", "code", "words"),
    [(401, ErrorCode.AUTH, "refused the key"), (404, ErrorCode.NOT_FOUND, "does not know this model")],
)
def test_failure_in_a_plain_sentence(server: Loopback, status: int, code: ErrorCode, words: str) -> None:
    server.replies = [_refuses("Nope.", status)]
    result = probe(server.endpoint(), "m")
    assert (result.ok, result.error_code, len(result.attempts)) == (False, code, 1)
    assert words in result.sentence
    assert result.sentence.endswith("Nope.")


def test_server_that_does_not_stream(server: Loopback) -> None:
    message = {"role": "assistant", "content": '{"ok": true}'}
    server.replies = [plain({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})]
    result = probe(server.endpoint(), "m")
    assert (result.streaming, result.ttft_ms) == (False, None)
    assert "does not stream" in result.sentence


class TestPdf:
    @pytest.mark.parametrize(("reply", "read"), [("Heron.", True), ("I see no file", False)])
    def test_accepted(self, server: Loopback, reply: str, read: bool) -> None:
        server.replies = [OK, _says(reply)]
        result = probe(server.endpoint(), "m", pdf=one_page_pdf("heron"), pdf_word="heron")
        assert (result.pdf_accepted, result.pdf_read) == (True, read)
        assert [attempt.purpose for attempt in result.attempts] == ["probe", "probe-pdf"]
        payload = server.received[-1].payload
        assert "data:application/pdf;base64," in str(payload["messages"])
        assert "response_format" not in payload

    def test_refused(self, server: Loopback) -> None:
        server.replies = [OK, _refuses("Invalid content type 'file'")]
        result = probe(server.endpoint(), "m", pdf=one_page_pdf("heron"))
        assert (result.ok, result.pdf_accepted) == (True, False)
        assert "takes no PDFs" in result.sentence

    def test_undecided(self, server: Loopback) -> None:
        server.replies = [OK, _refuses("boom", 500)]
        result = probe(server.endpoint(), "m", pdf=one_page_pdf("heron"))
        assert (result.ok, result.pdf_accepted) == (True, None)

    def test_generated_document_can_be_read(self) -> None:
        document = pypdfium2.PdfDocument(one_page_pdf("heron"))
        assert len(document) == 1
        page = document[0]
        text = page.get_textpage()
        assert text.get_text_range() == "heron"
        for part in (text, page, document):
            part.close()

    def test_only_plain_words(self) -> None:
        with pytest.raises(ValueError, match="ASCII"):
            one_page_pdf("(x)")
