"""The long conversation that the demo condenses: a service moved to another database, module by module; data, nothing else."""

from __future__ import annotations

from typing import Any

PROJECT = "shop"
CHAT = "migration"
TITLE = "Move the shop to PostgreSQL"

# module, what was found, what was decided, what failed, how it was fixed, what is left
_MODULES = (
    ("orders", "orders.py builds its queries from strings", "all queries go through the repository class", "test_orders_total",
     "the total was summed as text, because SQLite had no decimal type", "the nightly report still reads the old file"),
    ("customers", "customers.py compares e-mail addresses case by case", "a citext column instead of lower() in every query",
     "test_duplicate_email", "two rows differed in case only; they were merged by the older id", "the import script needs the same rule"),
    ("invoices", "invoice numbers come from max(id) + 1", "a sequence per year, never reused", "test_invoice_gap",
     "a rolled-back transaction left a gap, which the tax office allows", "the printed template must say so"),
    ("stock", "stock.py locks the whole table for each sale", "row locks with skip locked", "test_two_sales_at_once",
     "two workers took the same item; the lock was taken after the read", "measure it with forty workers"),
    ("search", "search.py uses like '%word%'", "a tsvector column with the german and the simple dictionary", "test_find_umlaut",
     "the dictionary dropped the umlaut; unaccent runs first now", "ranking by sales is not done yet"),
    ("payments", "payments.py keeps the gateway's answer as pickled bytes", "jsonb, with the gateway's own field names",
     "test_refund_twice", "the refund id was not unique; it is a constraint now", "old pickles are read by a script, once"),
    ("reports", "reports.py runs for eleven minutes at night", "materialised views, refreshed concurrently", "test_month_end",
     "the month ended in local time and the view in UTC", "the time zone is a setting of the shop"),
    ("sessions", "sessions.py writes at every request", "sessions go to Redis, PostgreSQL keeps only logins", "test_logout_everywhere",
     "logging out left the other devices signed in, because keys had no user prefix", "nothing"),
    ("shipping", "shipping.py rounds weights to whole kilograms", "grams as integers everywhere", "test_heavy_parcel",
     "the carrier's limit was compared in kilograms", "the carrier's price list is still in kilograms"),
    ("coupons", "coupons.py checks the date in Python", "a daterange with an exclusion constraint", "test_overlapping_coupon",
     "two coupons of one code overlapped by a day", "marketing must end the old one"),
    ("reviews", "reviews.py counts stars at every page view", "a counter table, updated by trigger", "test_star_average",
     "deleting a review did not lower the counter", "spam is still counted"),
    ("catalogue", "catalogue.py loads every product into memory", "cursors of five hundred rows", "test_export_all",
     "the export held one transaction for an hour", "a read replica would help"),
    ("taxes", "taxes.py has the rates in the code", "a table of rates with the dates they hold", "test_rate_change",
     "an order of midnight got tomorrow's rate", "the accountant reviews the table"),
    ("returns", "returns.py deletes the order line", "a return is a row of its own, nothing is deleted", "test_partial_return",
     "returning two of three items refunded all three", "the shop's page shows the old number"),
    ("mailing", "mailing.py sends inside the transaction", "an outbox table and a worker", "test_mail_once",
     "a retry sent the confirmation twice; the outbox id is the message id now", "bounces are not read"),
    ("wishlists", "wishlists.py stores a list of ids in one text field", "a table of its own, with an order column",
     "test_move_to_cart", "moving an item to the cart lost the ones after it", "shared lists come later"),
    ("pricing", "pricing.py keeps money as floating point numbers", "numeric with two places, and one rounding rule",
     "test_discount_cent", "three discounts of a third added up to 99 cents", "the front end still sends floats"),
    ("imports", "imports.py inserts one row at a time", "copy into a staging table, then one merge", "test_supplier_file",
     "the supplier's file has a byte order mark", "two suppliers still send spreadsheets"),
    ("audit", "audit.py writes to a log file", "an append-only table, partitioned by month", "test_who_changed_it",
     "changes made by triggers had no user; the session variable carries it now", "old log files stay where they are"),
    ("backups", "the backup copies the SQLite file", "pg_dump every night and wal archiving", "test_restore",
     "the restore missed the extensions", "restore it every month, by a job"),
)  # fmt: skip


def _request(number: int, messages: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    return {
        "request_id": f"req_move_{number}",
        "project_id": PROJECT,
        "timestamp": f"2026-02-{1 + number // 4:02}T{9 + number % 4:02}:15:00Z",
        "title": TITLE,
        "chat_meta": {"chat_id": CHAT, "chat_mode": "AGENT"},
        "messages": messages,
        **parts,
    }


def requests() -> list[dict[str, Any]]:
    """Return the requests in order: for each module what it does, the change, the failing test."""
    found: list[dict[str, Any]] = []
    for module, seen, decided, test, cause, left in _MODULES:
        path = f"src/{module}.py"
        read = {"id": "a", "type": "function", "function": {"name": "read_file", "arguments": {"path": path}}}
        edit = {"id": "b", "type": "function", "function": {"name": "edit_file", "arguments": {"path": path}}}
        run = {"id": "c", "type": "function", "function": {"name": "shell", "arguments": {"command": f"pytest tests/{test}.py"}}}
        found += [
            _request(len(found), [
                {"role": "user", "content": f"Look at {path} and tell me what stands in the way of PostgreSQL in the {module} module."},
                {"role": "assistant", "content": None, "tool_calls": [read]},
                {"role": "tool", "tool_call_id": "a", "content": f"# {module}\n" + "x = 1\n" * 30},
                {"role": "assistant", "content": f"I read the {module} module from top to bottom. The problem is that {seen}. "
                 "That works with one writer and a small file, and it will not with several. "
                 f"Everything else in {path} is plain SQL and can stay as it is. "
                 f"The functions of {module} are called from the checkout page, from the nightly job and from two scripts in tools/, "
                 f"and all of them pass plain values to {path}."},
            ]),
            _request(len(found) + 1, [
                {"role": "user", "content": f"Then change it. Never touch the public functions of {module}, other services call them."},
                {"role": "assistant", "content": None, "tool_calls": [edit]},
                {"role": "tool", "tool_call_id": "b", "content": "1 file changed"},
                {"role": "assistant", "content": f"I decided on this: {decided}. "
                 f"The public functions of {module} keep their names and arguments. "
                 f"The change is in {path} only, with a migration beside it, and the old code is gone. "
                 f"The migration of {module} runs in one transaction, can be repeated, "
                 f"and leaves the old file of {module} untouched until the shop has run on the new one for a week."},
            ], code_changes=[{"file_path": path, "lines_added": 40 + len(module), "lines_removed": 25, "tool_call_id": "b"}]),
            _request(len(found) + 2, [
                {"role": "user", "content": f"Run the tests of {module} against the new database."},
                {"role": "assistant", "content": None, "tool_calls": [run]},
                {"role": "tool", "tool_call_id": "c", "content": f"FAILED tests/{test}.py\n1 failed, 11 passed", "tool_failed": True},
                {"role": "assistant", "content": f"{test} failed because {cause}. "
                 f"It passes now, together with the other eleven tests of {module}. I ran the {module} suite three times against a fresh "
                 f"database and once against a copy of last month's data, with the same outcome. What is left: {left}."},
            ]),
        ]  # fmt: skip
    return found
