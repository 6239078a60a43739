"""A name for every limit; a leaf of the import graph.

Text is counted in characters, files and results in bytes. What is longer is cut with a mark and keeps the
hash and size of the whole (`text.cut`); what cannot be cut is refused with `TooLargeError`.
"""

from __future__ import annotations

# one payload, before it is parsed
PAYLOAD_BYTES_MAX = 512 * 1024 * 1024
PAYLOAD_DEPTH_MAX = 64
INTEGER_MAX = 2**63 - 1

# one turn
TURN_MESSAGES_MAX = 20_000
TURN_TOOL_CALLS_MAX = 20_000
TURN_PARTS_MAX = 20_000

# one field
MESSAGE_CHARS_MAX = 1_000_000
REASONING_CHARS_MAX = 200_000
RESULT_CHARS_MAX = 200_000
ERROR_CHARS_MAX = 20_000
ARGUMENT_CHARS_MAX = 200_000
DIFF_CHARS_MAX = 200_000
SUMMARY_CHARS_MAX = 200
TITLE_CHARS_MAX = 200
TAG_CHARS_MAX = 100
TAGS_MAX = 50
ID_CHARS_MAX = 300
NAME_CHARS_MAX = 200
PATH_CHARS_MAX = 4_096
SYMBOLS_MAX = 200
ACCESSES_PER_CALL_MAX = 500
HASHED_BYTES_MAX = 1_000_000

# times
FUTURE_SECONDS_MAX = 24 * 60 * 60

# passages and search
PASSAGE_CHARS_MAX = 1_200
TOOL_STEP_CHARS_MAX = 2_400
PASSAGES_PER_TURN_MAX = 2_000
QUERY_CHARS_MAX = 4_000
QUERY_TERMS_MAX = 64
CANDIDATES_MAX = 600
NEIGHBOUR_PASSAGES_MAX = 450
NEIGHBOURS_MIN = 60
SEARCH_LIMIT_MAX = 1_000

# the SQLite file: scope is a range of passage numbers (workspace | project | conversation | passage)
WORKSPACES_PER_FILE_MAX = 2**12 - 1
PROJECTS_PER_WORKSPACE_MAX = 2**14 - 1
CONVERSATIONS_PER_PROJECT_MAX = 2**17 - 1
PASSAGES_PER_CONVERSATION_MAX = 2**20 - 1

# analysis: what is shown of one conversation, what may be answered, how many at once
ANALYSIS_CHARS_MAX = 40_000
ANALYSIS_TURNS_MAX = 20
ANALYSIS_AT_ONCE_MAX = 64
ANALYSIS_RETRIES_MAX = 10
INSIGHT_CHARS_MAX = 50_000
TASK_CHARS_MAX = 4_000
SCHEMA_CHARS_MAX = 50_000

# counting
COUNT_MAX = 1_000_000_000

# waiting
BUSY_TIMEOUT_MS = 5_000
BUSY_ATTEMPTS_MAX = 6
UNITS_TOGETHER_MAX = 32
HEAD_MOVED_ATTEMPTS_MAX = 50

# reading in pieces
TURNS_PER_PAGE = 200
BRANCH_DEPTH_MAX = 64
