"""The items and tools of OpenAI's responses: the tables of their leaves.

In: nothing. Out: `ITEM` and `TOOL` for requests, `SAID_ITEM` for answers.
Not here: requests, answers and events (`responses`).
"""

from textveil.gateway.leaves import (
    ID,
    NAME,
    NUMBER,
    Act,
    LeafRule,
    each,
    either,
    fields,
    mapping,
    one_of,
    record,
    shaped,
    text,
    typed,
    whole,
)

PROTECTED, ARGUMENTS = text(), text(Act.ARGUMENTS)
ANY, DROPPED, MEDIA, PASSED, REFUSED, SCHEMA = map(
    whole, (Act.OBJECT, Act.DROP, Act.MEDIA, Act.PASS, Act.REFUSE, Act.SCHEMA)
)
OPAQUE = shaped(r"[A-Za-z0-9+/=_.:\-]*")
"""Rule for strings that the upstream has sealed, and opens again."""
DOMAIN = shaped(r"[A-Za-z0-9.*\-]{1,253}")
PLACE = shaped(r"https?://[A-Za-z0-9.\-]{1,253}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~\-]{0,200}){0,20}")
"""Rule for a program's URL, without parts that could be secret."""

EFFORT = one_of("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITY = one_of("low", "medium", "high")
BRIEF = one_of("auto", "concise", "detailed")
REASONING = record(
    context=one_of("auto", "current_turn", "all_turns"),
    effort=EFFORT,
    generate_summary=BRIEF,
    mode=one_of("standard", "pro"),
    summary=BRIEF,
)
FORMAT = typed(
    text=record(),
    json_object=record(),
    json_schema=record(name=NAME, description=SCHEMA, schema=SCHEMA, strict=NUMBER),
)

# ---- tools ---------------------------------------------------------------------------------------

DETAIL = one_of("low", "high", "auto", "original")
QUALITY = one_of("low", "medium", "high", "xhigh", "max", "auto")
GROUND = one_of("transparent", "opaque", "auto")
IMAGE_FORM = one_of("png", "webp", "jpeg", "gif", "svg")
SIZE = shaped(r"auto|[0-9]{1,5}x[0-9]{1,5}")
CALLERS = each(one_of("direct", "programmatic"))
MEMORY = one_of("1g", "4g", "16g", "64g")
NETWORK = typed(
    disabled=record(), allowlist=record(allowed_domains=each(DOMAIN), domain_secrets=REFUSED)
)
LOCAL_SKILL = record(name=NAME, description=SCHEMA, path=PROTECTED)
ENVIRONMENT = typed(
    container_auto=record(
        file_ids=each(ID),
        memory_limit=MEMORY,
        network_policy=NETWORK,
        skills=each(
            typed(
                skill_reference=record(skill_id=ID, version=ID),
                inline=record(name=NAME, description=SCHEMA, source=MEDIA),
            )
        ),
    ),
    local=record(skills=each(LOCAL_SKILL)),
    container_reference=record(container_id=ID),
)
COMPARED: dict[str, LeafRule] = {
    "key": NAME,
    "type": one_of("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "and", "or"),
    "value": either(PROTECTED, NUMBER, each(either(PROTECTED, NUMBER))),
}
FILTERS = record(**COMPARED, filters=each(record(**COMPARED, filters=each(record(**COMPARED)))))
_COUNTRY = shaped("[A-Za-z]{2}")
USER_LOCATION = record(
    type=one_of("approximate"), city=PROTECTED, region=PROTECTED, country=_COUNTRY, timezone=DROPPED
)
SEARCH = record(
    external_web_access=NUMBER,
    filters=record(allowed_domains=each(DOMAIN), blocked_domains=each(DOMAIN)),
    search_content_types=each(one_of("text", "image")),
    search_context_size=VERBOSITY,
    user_location=USER_LOCATION,
)
TOOLS_NAMED = record(read_only=NUMBER, tool_names=each(NAME))
_GIVEN = {"allowed_callers": CALLERS, "defer_loading": NUMBER, "async": NUMBER}
FUNCTION = record(
    **fields(SCHEMA, "description parameters output_schema"), name=NAME, strict=NUMBER, **_GIVEN
)
CUSTOM = record(
    name=NAME,
    description=SCHEMA,
    format=typed(text=record(), grammar=record(definition=SCHEMA, syntax=one_of("lark", "regex"))),
    **_GIVEN,
)
TOOL = typed(
    function=FUNCTION,
    custom=CUSTOM,
    namespace=record(
        name=NAME, description=SCHEMA, tools=each(typed(function=FUNCTION, custom=CUSTOM))
    ),
    file_search=record(
        vector_store_ids=each(ID),
        filters=FILTERS,
        max_num_results=NUMBER,
        ranking_options=record(
            ranker=one_of("auto", "default-2024-11-15"),
            score_threshold=NUMBER,
            hybrid_search=record(embedding_weight=NUMBER, text_weight=NUMBER),
        ),
    ),
    **fields(SEARCH, "web_search web_search_2025_08_26"),
    **fields(SEARCH, "web_search_preview web_search_preview_2025_03_11"),
    **fields(record(), "computer programmatic_tool_calling local_shell"),
    computer_use_preview=record(
        environment=one_of("windows", "mac", "linux", "ubuntu", "browser"),
        **fields(NUMBER, "display_height display_width"),
    ),
    mcp=record(
        server_label=NAME,
        server_description=SCHEMA,
        server_url=PLACE,
        allowed_callers=CALLERS,
        allowed_tools=either(each(NAME), TOOLS_NAMED),
        connector_id=shaped("connector_[a-z]{1,40}"),
        defer_loading=NUMBER,
        require_approval=either(
            one_of("always", "never"), record(always=TOOLS_NAMED, never=TOOLS_NAMED)
        ),
        tunnel_id=ID,
        **fields(REFUSED, "authorization headers"),
    ),
    code_interpreter=record(
        allowed_callers=CALLERS,
        container=either(
            ID,
            record(
                type=one_of("auto"), file_ids=each(ID), memory_limit=MEMORY, network_policy=NETWORK
            ),
        ),
    ),
    image_generation=record(
        action=one_of("generate", "edit", "auto"),
        background=GROUND,
        complexity=VERBOSITY,
        input_fidelity=one_of("high", "low"),
        input_image_mask=MEDIA,
        model=NAME,
        moderation=one_of("auto", "low"),
        output_format=IMAGE_FORM,
        quality=QUALITY,
        size=SIZE,
        svg=record(model=NAME, reasoning=record(effort=EFFORT)),
        **fields(NUMBER, "frame_count frame_duration_ms output_compression partial_images"),
    ),
    shell=record(allowed_callers=CALLERS, environment=ENVIRONMENT),
    tool_search=record(description=SCHEMA, execution=one_of("server", "client"), parameters=SCHEMA),
    apply_patch=record(allowed_callers=CALLERS),
)
TOOL_CHOICE = either(
    one_of("none", "auto", "required"),
    typed(
        allowed_tools=record(mode=one_of("auto", "required"), tools=each(SCHEMA)),
        function=record(name=NAME),
        mcp=record(server_label=NAME, name=NAME),
        custom=record(name=NAME),
        **fields(record(), "file_search web_search web_search_preview"),
        **fields(record(), "web_search_preview_2025_03_11 computer computer_use"),
        **fields(record(), "computer_use_preview image_generation code_interpreter"),
        **fields(record(), "programmatic_tool_calling apply_patch shell"),
    ),
)

# ---- items ---------------------------------------------------------------------------------------

OFFSET = whole(Act.OFFSET)
ANNOTATION = typed(
    url_citation=record(title=PROTECTED, url=PROTECTED, start_index=OFFSET, end_index=OFFSET),
    file_citation=record(file_id=ID, filename=PROTECTED, index=OFFSET),
    container_file_citation=record(
        container_id=ID, file_id=ID, filename=PROTECTED, start_index=OFFSET, end_index=OFFSET
    ),
    file_path=record(file_id=ID, index=OFFSET),
)
_DOES = ("searching", "generating", "interpreting", "calling", "failed")
STATUS = one_of("in_progress", "completed", "incomplete", *_DOES)
BREAKPOINT = record(mode=one_of("explicit"), ttl=one_of("30m", "12h"))
SHARED = {"id": ID, "status": STATUS, "created_by": ID}
CALL = {
    **SHARED,
    "call_id": ID,
    "caller": typed(direct=record(), program=record(caller_id=ID)),
    "async": NUMBER,
}
KEYS = {"x": NUMBER, "y": NUMBER, "keys": each(PROTECTED)}
ACTION = typed(
    click=record(button=one_of("left", "right", "wheel", "back", "forward"), **KEYS),
    double_click=record(**KEYS),
    drag=record(path=each(record(x=NUMBER, y=NUMBER)), keys=each(PROTECTED)),
    keypress=record(keys=each(PROTECTED)),
    move=record(**KEYS),
    screenshot=record(),
    scroll=record(scroll_x=NUMBER, scroll_y=NUMBER, **KEYS),
    type=record(text=PROTECTED),
    wait=record(),
)
CHECKS = each(record(id=ID, code=ID, message=PROTECTED))
DIFF = record(diff=PROTECTED, path=PROTECTED)
SCREENSHOT = record(type=one_of("computer_screenshot"), file_id=MEDIA, image_url=MEDIA)


def _build_part(citations: LeafRule) -> LeafRule:
    """Builds the rule for a part of a message."""
    return typed(
        input_text=record(text=PROTECTED, prompt_cache_breakpoint=BREAKPOINT),
        input_image=record(
            detail=DETAIL, file_id=MEDIA, image_url=MEDIA, prompt_cache_breakpoint=BREAKPOINT
        ),
        input_file=record(
            detail=DETAIL,
            filename=PROTECTED,
            prompt_cache_breakpoint=BREAKPOINT,
            **fields(MEDIA, "file_data file_id file_url"),
        ),
        output_text=record(text=PROTECTED, annotations=each(citations), logprobs=each(DROPPED)),
        refusal=record(refusal=PROTECTED),
        reasoning_text=record(text=PROTECTED),
        summary_text=record(text=PROTECTED),
        text=record(text=PROTECTED),
        computer_screenshot=SCREENSHOT,
    )


def _build_item(part: LeafRule) -> LeafRule:
    """Builds the rule for an item of a conversation."""
    phase = one_of("commentary", "final_answer")
    role = one_of("user", "assistant", "system", "developer")
    content = either(PROTECTED, each(part))
    result = either(PROTECTED, each(part))
    kinds = {
        "": record(role=role, content=content, phase=phase),
        "message": record(role=role, content=content, phase=phase, **SHARED),
        "reasoning": record(
            summary=each(part), content=each(part), encrypted_content=OPAQUE, **SHARED
        ),
        "function_call": record(name=NAME, namespace=NAME, arguments=ARGUMENTS, **CALL),
        "function_call_output": record(name=NAME, namespace=NAME, output=result, **CALL),
        "custom_tool_call": record(name=NAME, namespace=NAME, input=PROTECTED, **CALL),
        "custom_tool_call_output": record(output=result, **CALL),
        "file_search_call": record(
            queries=each(PROTECTED),
            results=each(
                record(
                    attributes=mapping(either(PROTECTED, NUMBER)),
                    file_id=ID,
                    filename=PROTECTED,
                    score=NUMBER,
                    text=PROTECTED,
                )
            ),
            **SHARED,
        ),
        "web_search_call": record(
            action=typed(
                search=record(
                    query=PROTECTED,
                    queries=each(PROTECTED),
                    sources=each(record(type=one_of("url"), url=PROTECTED)),
                ),
                open_page=record(url=PROTECTED),
                find_in_page=record(pattern=PROTECTED, url=PROTECTED),
            ),
            **SHARED,
        ),
        "computer_call": record(
            action=ACTION, actions=each(ACTION), pending_safety_checks=CHECKS, **CALL
        ),
        "computer_call_output": record(
            output=SCREENSHOT, acknowledged_safety_checks=CHECKS, **CALL
        ),
        "tool_search_call": record(arguments=ANY, execution=one_of("server", "client"), **CALL),
        "tool_search_output": record(
            tools=each(TOOL), execution=one_of("server", "client"), **CALL
        ),
        "additional_tools": record(role=one_of("developer"), tools=each(TOOL), id=ID),
        "configuration_update": record(
            id=ID, reasoning=REASONING, text=record(format=FORMAT, verbosity=VERBOSITY)
        ),
        "compaction": record(encrypted_content=OPAQUE, **SHARED),
        "compaction_trigger": record(id=ID),
        "image_generation_call": record(
            action=one_of("generate", "edit", "auto"),
            background=GROUND,
            error=record(
                message=PROTECTED,
                moderation_details=record(
                    categories=each(NAME), moderation_stage=one_of("input", "output", "unknown")
                ),
                **fields(ID, "code param type"),
            ),
            output_format=IMAGE_FORM,
            quality=QUALITY,
            result=MEDIA,
            revised_prompt=PROTECTED,
            size=SIZE,
            svg_usage=record(
                model=NAME,
                **fields(NUMBER, "input_tokens output_tokens reasoning_tokens total_tokens"),
            ),
            **SHARED,
        ),
        "code_interpreter_call": record(
            code=PROTECTED,
            container_id=ID,
            outputs=each(typed(logs=record(logs=PROTECTED), image=record(url=MEDIA))),
            **SHARED,
        ),
        "local_shell_call": record(
            action=record(
                type=one_of("exec"),
                command=each(PROTECTED),
                env=mapping(PROTECTED),
                timeout_ms=NUMBER,
                user=PROTECTED,
                working_directory=PROTECTED,
            ),
            **CALL,
        ),
        "local_shell_call_output": record(output=PROTECTED, **CALL),
        "shell_call": record(
            action=record(commands=each(PROTECTED), max_output_length=NUMBER, timeout_ms=NUMBER),
            environment=ENVIRONMENT,
            **CALL,
        ),
        "shell_call_output": record(
            max_output_length=NUMBER,
            output=each(
                record(
                    stdout=PROTECTED,
                    stderr=PROTECTED,
                    created_by=ID,
                    outcome=typed(exit=record(exit_code=NUMBER), timeout=record()),
                )
            ),
            **CALL,
        ),
        "apply_patch_call": record(
            operation=typed(create_file=DIFF, update_file=DIFF, delete_file=DIFF), **CALL
        ),
        "apply_patch_call_output": record(output=PROTECTED, **CALL),
        "mcp_list_tools": record(
            error=PROTECTED,
            server_label=NAME,
            tools=each(
                record(name=NAME, description=SCHEMA, input_schema=SCHEMA, annotations=SCHEMA)
            ),
            **SHARED,
        ),
        "mcp_approval_request": record(name=NAME, server_label=NAME, arguments=ARGUMENTS, **SHARED),
        "mcp_approval_response": record(
            approval_request_id=ID, approve=NUMBER, reason=PROTECTED, **SHARED
        ),
        "mcp_call": record(
            arguments=ARGUMENTS,
            approval_request_id=ID,
            error=either(
                PROTECTED,
                typed(
                    mcp_protocol_error=record(code=NUMBER, message=PROTECTED),
                    mcp_tool_execution_error=record(content=ANY),
                    http_error=record(code=NUMBER, message=PROTECTED),
                ),
            ),
            output=PROTECTED,
            **SHARED,
            **fields(NAME, "name server_label"),
        ),
        "program": record(code=PROTECTED, fingerprint=OPAQUE, **CALL),
        "program_output": record(result=PROTECTED, **CALL),
        "item_reference": record(id=shaped(r"[A-Za-z0-9_:\-]{1,256}")),
    }
    return typed(**kinds)


PART, SAID_PART = _build_part(DROPPED), _build_part(ANNOTATION)
ITEM, SAID_ITEM = _build_item(PART), _build_item(SAID_PART)
