"""The items and tools of OpenAI's responses: the tables of their leaves.

In: nothing. Out: `ITEM` and `TOOL` for requests, `ANSWER_ITEM` for answers.
Not here: requests, answers and events (`responses`).
"""

from textveil.gateway.protocols.field_rules import (
    API_NAME,
    ID,
    NUMBER,
    Act,
    LeafRule,
    any_value,
    array,
    choice,
    map_fields,
    mapping,
    pattern,
    record,
    text,
    union,
    variants,
)

PROTECTED, ARGUMENTS = text(), text(Act.ARGUMENTS)
ANY, DROPPED, MEDIA, PASSED, REFUSED, SCHEMA = map(
    any_value, (Act.OBJECT, Act.DROP, Act.MEDIA, Act.PASS, Act.REFUSE, Act.SCHEMA)
)
OPAQUE = pattern(r"[A-Za-z0-9+/=_.:\-]*")
"""Rule for strings that the upstream has sealed, and opens again."""
DOMAIN = pattern(r"[A-Za-z0-9.*\-]{1,253}")
PROGRAM_URL = pattern(
    r"https?://[A-Za-z0-9.\-]{1,253}(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~\-]{0,200}){0,20}"
)
"""Rule for a program's URL, without parts that could be secret."""

EFFORT = choice("none", "minimal", "low", "medium", "high", "xhigh", "max")
VERBOSITY = choice("low", "medium", "high")
SUMMARY_LEVEL = choice("auto", "concise", "detailed")
REASONING = record(
    context=choice("auto", "current_turn", "all_turns"),
    effort=EFFORT,
    generate_summary=SUMMARY_LEVEL,
    mode=choice("standard", "pro"),
    summary=SUMMARY_LEVEL,
)
FORMAT = variants(
    text=record(),
    json_object=record(),
    json_schema=record(name=API_NAME, description=SCHEMA, schema=SCHEMA, strict=NUMBER),
)

# ---- tools ---------------------------------------------------------------------------------------

DETAIL = choice("low", "high", "auto", "original")
QUALITY = choice("low", "medium", "high", "xhigh", "max", "auto")
BACKGROUND = choice("transparent", "opaque", "auto")
IMAGE_FORMAT = choice("png", "webp", "jpeg", "gif", "svg")
SIZE = pattern(r"auto|[0-9]{1,5}x[0-9]{1,5}")
CALLERS = array(choice("direct", "programmatic"))
MEMORY = choice("1g", "4g", "16g", "64g")
NETWORK = variants(
    disabled=record(), allowlist=record(allowed_domains=array(DOMAIN), domain_secrets=REFUSED)
)
LOCAL_SKILL = record(name=API_NAME, description=SCHEMA, path=PROTECTED)
ENVIRONMENT = variants(
    container_auto=record(
        file_ids=array(ID),
        memory_limit=MEMORY,
        network_policy=NETWORK,
        skills=array(
            variants(
                skill_reference=record(skill_id=ID, version=ID),
                inline=record(name=API_NAME, description=SCHEMA, source=MEDIA),
            )
        ),
    ),
    local=record(skills=array(LOCAL_SKILL)),
    container_reference=record(container_id=ID),
)
COMPARISON_FIELDS: dict[str, LeafRule] = {
    "key": API_NAME,
    "type": choice("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "and", "or"),
    "value": union(PROTECTED, NUMBER, array(union(PROTECTED, NUMBER))),
}
FILTERS = record(
    **COMPARISON_FIELDS,
    filters=array(record(**COMPARISON_FIELDS, filters=array(record(**COMPARISON_FIELDS)))),
)
_COUNTRY = pattern("[A-Za-z]{2}")
USER_LOCATION = record(
    type=choice("approximate"), city=PROTECTED, region=PROTECTED, country=_COUNTRY, timezone=DROPPED
)
SEARCH = record(
    external_web_access=NUMBER,
    filters=record(allowed_domains=array(DOMAIN), blocked_domains=array(DOMAIN)),
    search_content_types=array(choice("text", "image")),
    search_context_size=VERBOSITY,
    user_location=USER_LOCATION,
)
TOOL_SELECTION = record(read_only=NUMBER, tool_names=array(API_NAME))
_TOOL_FIELDS = {"allowed_callers": CALLERS, "defer_loading": NUMBER, "async": NUMBER}
FUNCTION = record(
    **map_fields(SCHEMA, "description parameters output_schema"),
    name=API_NAME,
    strict=NUMBER,
    **_TOOL_FIELDS,
)
CUSTOM = record(
    name=API_NAME,
    description=SCHEMA,
    format=variants(
        text=record(), grammar=record(definition=SCHEMA, syntax=choice("lark", "regex"))
    ),
    **_TOOL_FIELDS,
)
TOOL = variants(
    function=FUNCTION,
    custom=CUSTOM,
    namespace=record(
        name=API_NAME, description=SCHEMA, tools=array(variants(function=FUNCTION, custom=CUSTOM))
    ),
    file_search=record(
        vector_store_ids=array(ID),
        filters=FILTERS,
        max_num_results=NUMBER,
        ranking_options=record(
            ranker=choice("auto", "default-2024-11-15"),
            score_threshold=NUMBER,
            hybrid_search=record(embedding_weight=NUMBER, text_weight=NUMBER),
        ),
    ),
    **map_fields(SEARCH, "web_search web_search_2025_08_26"),
    **map_fields(SEARCH, "web_search_preview web_search_preview_2025_03_11"),
    **map_fields(record(), "computer programmatic_tool_calling local_shell"),
    computer_use_preview=record(
        environment=choice("windows", "mac", "linux", "ubuntu", "browser"),
        **map_fields(NUMBER, "display_height display_width"),
    ),
    mcp=record(
        server_label=API_NAME,
        server_description=SCHEMA,
        server_url=PROGRAM_URL,
        allowed_callers=CALLERS,
        allowed_tools=union(array(API_NAME), TOOL_SELECTION),
        connector_id=pattern("connector_[a-z]{1,40}"),
        defer_loading=NUMBER,
        require_approval=union(
            choice("always", "never"), record(always=TOOL_SELECTION, never=TOOL_SELECTION)
        ),
        tunnel_id=ID,
        **map_fields(REFUSED, "authorization headers"),
    ),
    code_interpreter=record(
        allowed_callers=CALLERS,
        container=union(
            ID,
            record(
                type=choice("auto"), file_ids=array(ID), memory_limit=MEMORY, network_policy=NETWORK
            ),
        ),
    ),
    image_generation=record(
        action=choice("generate", "edit", "auto"),
        background=BACKGROUND,
        complexity=VERBOSITY,
        input_fidelity=choice("high", "low"),
        input_image_mask=MEDIA,
        model=API_NAME,
        moderation=choice("auto", "low"),
        output_format=IMAGE_FORMAT,
        quality=QUALITY,
        size=SIZE,
        svg=record(model=API_NAME, reasoning=record(effort=EFFORT)),
        **map_fields(NUMBER, "frame_count frame_duration_ms output_compression partial_images"),
    ),
    shell=record(allowed_callers=CALLERS, environment=ENVIRONMENT),
    tool_search=record(description=SCHEMA, execution=choice("server", "client"), parameters=SCHEMA),
    apply_patch=record(allowed_callers=CALLERS),
)
TOOL_CHOICE = union(
    choice("none", "auto", "required"),
    variants(
        allowed_tools=record(mode=choice("auto", "required"), tools=array(SCHEMA)),
        function=record(name=API_NAME),
        mcp=record(server_label=API_NAME, name=API_NAME),
        custom=record(name=API_NAME),
        **map_fields(record(), "file_search web_search web_search_preview"),
        **map_fields(record(), "web_search_preview_2025_03_11 computer computer_use"),
        **map_fields(record(), "computer_use_preview image_generation code_interpreter"),
        **map_fields(record(), "programmatic_tool_calling apply_patch shell"),
    ),
)

# ---- items ---------------------------------------------------------------------------------------

OFFSET = any_value(Act.OFFSET)
ANNOTATION = variants(
    url_citation=record(title=PROTECTED, url=PROTECTED, start_index=OFFSET, end_index=OFFSET),
    file_citation=record(file_id=ID, filename=PROTECTED, index=OFFSET),
    container_file_citation=record(
        container_id=ID, file_id=ID, filename=PROTECTED, start_index=OFFSET, end_index=OFFSET
    ),
    file_path=record(file_id=ID, index=OFFSET),
)
_ACTIVITIES = ("searching", "generating", "interpreting", "calling", "failed")
STATUS = choice("in_progress", "completed", "incomplete", *_ACTIVITIES)
BREAKPOINT = record(mode=choice("explicit"), ttl=choice("30m", "12h"))
SHARED_FIELDS = {"id": ID, "status": STATUS, "created_by": ID}
CALL_FIELDS = {
    **SHARED_FIELDS,
    "call_id": ID,
    "caller": variants(direct=record(), program=record(caller_id=ID)),
    "async": NUMBER,
}
POSITION_FIELDS = {"x": NUMBER, "y": NUMBER, "keys": array(PROTECTED)}
ACTION = variants(
    click=record(button=choice("left", "right", "wheel", "back", "forward"), **POSITION_FIELDS),
    double_click=record(**POSITION_FIELDS),
    drag=record(path=array(record(x=NUMBER, y=NUMBER)), keys=array(PROTECTED)),
    keypress=record(keys=array(PROTECTED)),
    move=record(**POSITION_FIELDS),
    screenshot=record(),
    scroll=record(scroll_x=NUMBER, scroll_y=NUMBER, **POSITION_FIELDS),
    type=record(text=PROTECTED),
    wait=record(),
)
CHECKS = array(record(id=ID, code=ID, message=PROTECTED))
DIFF = record(diff=PROTECTED, path=PROTECTED)
SCREENSHOT = record(type=choice("computer_screenshot"), file_id=MEDIA, image_url=MEDIA)


def _build_part(citations: LeafRule) -> LeafRule:
    """Builds the rule for a part of a message."""
    return variants(
        input_text=record(text=PROTECTED, prompt_cache_breakpoint=BREAKPOINT),
        input_image=record(
            detail=DETAIL, file_id=MEDIA, image_url=MEDIA, prompt_cache_breakpoint=BREAKPOINT
        ),
        input_file=record(
            detail=DETAIL,
            filename=PROTECTED,
            prompt_cache_breakpoint=BREAKPOINT,
            **map_fields(MEDIA, "file_data file_id file_url"),
        ),
        output_text=record(
            text=PROTECTED,
            annotations=array(citations),
            logprobs=array(DROPPED),
            parsed=DROPPED,  # OpenAI's SDK adds what it has read of the text
        ),
        refusal=record(refusal=PROTECTED),
        reasoning_text=record(text=PROTECTED),
        summary_text=record(text=PROTECTED),
        text=record(text=PROTECTED),
        computer_screenshot=SCREENSHOT,
    )


def _build_item(part: LeafRule) -> LeafRule:
    """Builds the rule for an item of a conversation."""
    phase = choice("commentary", "final_answer")
    role = choice("user", "assistant", "system", "developer")
    content = union(PROTECTED, array(part))
    result = union(PROTECTED, array(part))
    kinds = {
        "": record(role=role, content=content, phase=phase),
        "message": record(role=role, content=content, phase=phase, **SHARED_FIELDS),
        "reasoning": record(
            summary=array(part), content=array(part), encrypted_content=OPAQUE, **SHARED_FIELDS
        ),
        "function_call": record(
            name=API_NAME,
            namespace=API_NAME,
            arguments=ARGUMENTS,
            parsed_arguments=DROPPED,
            **CALL_FIELDS,
        ),
        "function_call_output": record(
            name=API_NAME, namespace=API_NAME, output=result, **CALL_FIELDS
        ),
        "custom_tool_call": record(
            name=API_NAME, namespace=API_NAME, input=PROTECTED, **CALL_FIELDS
        ),
        "custom_tool_call_output": record(output=result, **CALL_FIELDS),
        "file_search_call": record(
            queries=array(PROTECTED),
            results=array(
                record(
                    attributes=mapping(union(PROTECTED, NUMBER)),
                    file_id=ID,
                    filename=PROTECTED,
                    score=NUMBER,
                    text=PROTECTED,
                )
            ),
            **SHARED_FIELDS,
        ),
        "web_search_call": record(
            action=variants(
                search=record(
                    query=PROTECTED,
                    queries=array(PROTECTED),
                    sources=array(record(type=choice("url"), url=PROTECTED)),
                ),
                open_page=record(url=PROTECTED),
                find_in_page=record(pattern=PROTECTED, url=PROTECTED),
            ),
            **SHARED_FIELDS,
        ),
        "computer_call": record(
            action=ACTION, actions=array(ACTION), pending_safety_checks=CHECKS, **CALL_FIELDS
        ),
        "computer_call_output": record(
            output=SCREENSHOT, acknowledged_safety_checks=CHECKS, **CALL_FIELDS
        ),
        "tool_search_call": record(
            arguments=ANY, execution=choice("server", "client"), **CALL_FIELDS
        ),
        "tool_search_output": record(
            tools=array(TOOL), execution=choice("server", "client"), **CALL_FIELDS
        ),
        "additional_tools": record(role=choice("developer"), tools=array(TOOL), id=ID),
        "configuration_update": record(
            id=ID, reasoning=REASONING, text=record(format=FORMAT, verbosity=VERBOSITY)
        ),
        "compaction": record(encrypted_content=OPAQUE, **SHARED_FIELDS),
        "compaction_trigger": record(id=ID),
        "image_generation_call": record(
            action=choice("generate", "edit", "auto"),
            background=BACKGROUND,
            error=record(
                message=PROTECTED,
                moderation_details=record(
                    categories=array(API_NAME),
                    moderation_stage=choice("input", "output", "unknown"),
                ),
                **map_fields(ID, "code param type"),
            ),
            output_format=IMAGE_FORMAT,
            quality=QUALITY,
            result=MEDIA,
            revised_prompt=PROTECTED,
            size=SIZE,
            svg_usage=record(
                model=API_NAME,
                **map_fields(NUMBER, "input_tokens output_tokens reasoning_tokens total_tokens"),
            ),
            **SHARED_FIELDS,
        ),
        "code_interpreter_call": record(
            code=PROTECTED,
            container_id=ID,
            outputs=array(variants(logs=record(logs=PROTECTED), image=record(url=MEDIA))),
            **SHARED_FIELDS,
        ),
        "local_shell_call": record(
            action=record(
                type=choice("exec"),
                command=array(PROTECTED),
                env=mapping(PROTECTED),
                timeout_ms=NUMBER,
                user=PROTECTED,
                working_directory=PROTECTED,
            ),
            **CALL_FIELDS,
        ),
        "local_shell_call_output": record(output=PROTECTED, **CALL_FIELDS),
        "shell_call": record(
            action=record(commands=array(PROTECTED), max_output_length=NUMBER, timeout_ms=NUMBER),
            environment=ENVIRONMENT,
            **CALL_FIELDS,
        ),
        "shell_call_output": record(
            max_output_length=NUMBER,
            output=array(
                record(
                    stdout=PROTECTED,
                    stderr=PROTECTED,
                    created_by=ID,
                    outcome=variants(exit=record(exit_code=NUMBER), timeout=record()),
                )
            ),
            **CALL_FIELDS,
        ),
        "apply_patch_call": record(
            operation=variants(create_file=DIFF, update_file=DIFF, delete_file=DIFF), **CALL_FIELDS
        ),
        "apply_patch_call_output": record(output=PROTECTED, **CALL_FIELDS),
        "mcp_list_tools": record(
            error=PROTECTED,
            server_label=API_NAME,
            tools=array(
                record(name=API_NAME, description=SCHEMA, input_schema=SCHEMA, annotations=SCHEMA)
            ),
            **SHARED_FIELDS,
        ),
        "mcp_approval_request": record(
            name=API_NAME, server_label=API_NAME, arguments=ARGUMENTS, **SHARED_FIELDS
        ),
        "mcp_approval_response": record(
            approval_request_id=ID, approve=NUMBER, reason=PROTECTED, **SHARED_FIELDS
        ),
        "mcp_call": record(
            arguments=ARGUMENTS,
            approval_request_id=ID,
            error=union(
                PROTECTED,
                variants(
                    mcp_protocol_error=record(code=NUMBER, message=PROTECTED),
                    mcp_tool_execution_error=record(content=ANY),
                    http_error=record(code=NUMBER, message=PROTECTED),
                ),
            ),
            output=PROTECTED,
            **SHARED_FIELDS,
            **map_fields(API_NAME, "name server_label"),
        ),
        "program": record(code=PROTECTED, fingerprint=OPAQUE, **CALL_FIELDS),
        "program_output": record(result=PROTECTED, **CALL_FIELDS),
        "item_reference": record(id=pattern(r"[A-Za-z0-9_:\-]{1,256}")),
    }
    return variants(**kinds)


PART, ANSWER_PART = _build_part(DROPPED), _build_part(ANNOTATION)
ITEM, ANSWER_ITEM = _build_item(PART), _build_item(ANSWER_PART)
