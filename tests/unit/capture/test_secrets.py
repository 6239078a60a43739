from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.capture.secrets import Redactor, SecretRule, default_redactor, library_rules, redactor_with
from recollect.errors import ConfigError
from tests.planted import PLANTED


def test_the_rule_set_has_at_least_150_kinds_from_the_dependency() -> None:
    assert len({rule.kind for rule in library_rules()}) >= 150


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_planted_secret_is_removed_and_its_kind_named(kind: str) -> None:
    text, secret = PLANTED[kind]
    redacted = default_redactor().redact(text)
    assert secret not in redacted
    assert f"[redacted:{kind}]" in redacted


@pytest.mark.parametrize(
    "after", [".", ",", ")", "]", "}", ":", "<", ">", "?", "!", "|", "*", "/", "\\", ".py", ", and", "…", "-old", "&x=1"]
)
@pytest.mark.parametrize("kind", sorted(set(PLANTED) - {"private-key-block", "generic-api-key", "slack-webhook-url", "url-password"}))
def test_a_secret_in_a_sentence_a_path_or_a_call_is_removed_whatever_follows_it(kind: str, after: str) -> None:
    text, secret = PLANTED[kind]
    assert secret not in default_redactor().redact(text.replace(secret, secret + after)), after


@pytest.mark.parametrize("text", ["the api_key is: {}, as before", "login(api_key={})", "[api_key = {}]", "{{api_key: {}}}"])
def test_a_key_that_only_its_name_tells_is_removed_from_sentences_and_calls(text: str) -> None:
    _, secret = PLANTED["generic-api-key"]
    assert secret not in default_redactor().redact(text.format(secret))


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ('{"password": "it\'s-my-Secr3t"}', "my-Secr3t"),
        ('PASSWORD="abc\\defGHI99"', "defGHI99"),
        ('password="Tr0ub4\'REST_OF_IT9"', "REST_OF_IT9"),
        ("PASSWORD=Xk9p(mQ2z", "mQ2z"),
        ("export DB_PASS=abcd1234", "abcd1234"),
        ("dbPassword: 'abcd1234'", "abcd1234"),
        ("PGPASSWORD=abcd1234 psql", "abcd1234"),
        ('{\\"password\\": \\"abcd1234\\"}', "abcd1234"),
        ("password: `abcd1234`", "abcd1234"),
        ("curl 'https://x/?password=letmein&y=1'", "letmein"),
        ("login --password=letmein", "letmein"),
        ("db_pwd = 'abcd1234'", "abcd1234"),
        ("GITHUB_TOKEN=abcd1234efgh", "abcd1234"),
        ("api_key_prod: abcd1234efgh", "abcd1234"),
    ],
)
def test_an_assigned_secret_is_removed_whole(text: str, secret: str) -> None:
    assert secret not in default_redactor().redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "def login(password: str, token: Optional[str] = None) -> None:",
        "self.password = password",
        "api_key = os.environ['API_KEY']",
        "password=${DB_PASSWORD}",
        "password_hash = hash_password(text)",
        "password = getpass.getpass()",
        "token_count: 5000, max_tokens=100",
        "if password == 'secret':",
        "raise ValueError('password is required')",
        "label: 'Password is required'",
        "https://example.com/path?x=1 and user@example.com",
        "secret_key: SecretStr",
        "sha256:" + "a" * 64,
        "pwd=/home/ada/shop",
        "the password: please choose one",
        "client = OpenAI(api_key=api_key)",
        "User.create(password=hashed, token=raw_token)",
        "self.password = user, password",
        "const password = formData",
        "refreshToken = newRefreshToken;",
        "password = config['password']",
        "accessToken: AccessToken;",
        "password: Annotated[str, Field()]",
        "password: String!",
        "access_token_ttl = 86400",
        "PASSWORD_MIN_LENGTH=12345",
        'API_KEY_HEADER = "X-API-Key"',
        'password_reset_url = "/accounts/reset/"',
        'access_token = "https://example.com/token"',
        "Fix password: reset link was broken",
        "test_password_reset: PASSED",
        "pwd: expected bytes",
        "PWD=/srv/shop",
        "MAX_TOKEN=4096",
        'key = "Europe/Dublin"',
        '<Foo key="item-1a2b3c4d5e">',
        "sorted(names, sort_key=by_name_then_date2)",
        "cache_key=build_cache_key_v2(request, user)",
        "the primary key, then (foreign_key=users_accounts_id)",
        "",
    ],
)
def test_ordinary_code_and_prose_stay_as_they_are(text: str) -> None:
    assert default_redactor().redact(text) == text


@given(
    st.text()
    | st.sampled_from([text for text, _ in PLANTED.values()]).flatmap(lambda t: st.tuples(st.text(), st.just(t), st.text()).map(" ".join))
)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    clean = text.encode(errors="replace").decode()
    once = default_redactor().redact(clean)
    assert default_redactor().redact(once) == once


@given(st.lists(st.sampled_from([text for text, _ in PLANTED.values()] + ["harmless", "x = 1", "the password", "token", ""]), max_size=8))
def test_looking_at_many_texts_at_once_misses_nothing(texts: list[str]) -> None:
    redactor = default_redactor()
    if redactor.finds_nothing(texts):
        assert [redactor.redact(text) for text in texts] == texts


def test_a_user_may_add_rules_and_exceptions() -> None:
    rule = SecretRule(kind="employee-number", regex=r"EMP-\d{6}", keywords=("emp-",))
    redactor = redactor_with([rule], [r"^hunter2hunter2$"])
    assert redactor.redact("EMP-123456 and password=hunter2hunter2") == "[redacted:employee-number] and password=hunter2hunter2"
    always = redactor_with([SecretRule(kind="always", regex=r"^zzz(\d+)$", group=1)], [])
    assert always.redact("zzz42") == "zzz[redacted:always]"
    assert not always.finds_nothing(["zzz42"]), "an anchored rule cannot be looked for among joined texts"


def test_a_rule_or_exception_that_is_no_expression_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="broken"):
        redactor_with([SecretRule(kind="broken", regex="(")], [])
    with pytest.raises(ConfigError, match="exception"):
        redactor_with([], ["("])


def test_overlapping_secrets_go_together_under_the_foremost_name() -> None:
    redactor = Redactor([SecretRule(kind="first", regex="bcd", keywords=("b",)), SecretRule(kind="second", regex="abc", keywords=("a",))])
    assert redactor.redact("xabcdy") == "x[redacted:first]y"
