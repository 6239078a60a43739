"""A real model, small and foolish, on loopback: what it is asked comes back, is counted as it counts, and is never trusted."""

from __future__ import annotations

import json

from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from recollect.models.providers import open_model
from recollect.settings import ModelUse
from tests.small_model import SmallModel


def use_of(real_model: SmallModel) -> ModelUse:
    return ModelUse(name=real_model.name, endpoint=real_model.endpoint)


async def test_a_model_that_is_opened_answers_in_words(real_model: SmallModel) -> None:
    async with open_model(use_of(real_model), "summaries") as model:
        request = ModelRequest(parts=[UserPromptPart("Say hello")])
        response = await model.request([request], {"max_tokens": 8, "temperature": 0.0}, ModelRequestParameters())
    assert response.text
    assert response.usage.input_tokens > 0
    assert 0 < response.usage.output_tokens <= 8


async def test_an_answer_follows_the_schema_that_it_is_bound_to(real_model: SmallModel) -> None:
    schema = {"type": "object", "properties": {"colour": {"enum": ["red", "green"]}}, "required": ["colour"], "additionalProperties": False}
    wanted = ModelRequestParameters(output_mode="native", output_object=OutputObjectDefinition(schema, name="colour"))
    async with open_model(use_of(real_model), "analysis") as model:
        request = ModelRequest(parts=[UserPromptPart("Name a colour")])
        response = await model.request([request], {"max_tokens": 40, "temperature": 0.0}, wanted)
    assert json.loads(response.text or "")["colour"] in {"red", "green"}


async def test_a_tool_is_called_with_arguments_of_its_schema(real_model: SmallModel) -> None:
    place = {"type": "object", "properties": {"path": {"enum": ["notes.txt", "todo.txt"]}}, "required": ["path"]}
    tool = ToolDefinition(name="read_file", parameters_json_schema=place, description="Read a file.")
    wanted = ModelRequestParameters(function_tools=[tool], allow_text_output=False)
    async with open_model(use_of(real_model), "agent") as model:
        request = ModelRequest(parts=[UserPromptPart("Read the file notes.txt")])
        response = await model.request([request], {"max_tokens": 40, "temperature": 0.0}, wanted)
    called = response.tool_calls[0]
    assert called.tool_name == "read_file"
    assert called.args_as_dict()["path"] in {"notes.txt", "todo.txt"}
