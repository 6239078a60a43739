"""Planted secrets of many kinds: kind → (a text that holds it, the secret itself); none of them opens anything.

They are put together from pieces, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

_A = "aB3dE5fG7hJ9kL1mN3pQ5rS7tV9wX1yZ"
_HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"


def _planted(text: str, secret: str) -> tuple[str, str]:
    return text.replace("{}", secret), secret


PLANTED: dict[str, tuple[str, str]] = {
    "url-password": _planted("connect to postgres://shop:{}@db.example/shop", "s3cr3t-" + "pw"),
    "assigned-secret": _planted("set password={} please", "correct-" + "horse9"),
    "private-key-block": _planted("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----", "MIIEpAIBAAKCAQEA" + _A),
    "authorization-header": _planted("curl -H 'Authorization: Bearer {}'", "abcdefghijklmno" + "12345"),
    "github-pat": _planted("use {} to push", "gh" + "p_" + _A + "abcd"),
    "github-oauth": _planted("use {} to push", "gh" + "o_" + _A + "abcd"),
    "github-app-token": _planted("use {} to push", "gh" + "s_" + _A + "abcd"),
    "github-fine-grained-pat": _planted("use {} to push", "github" + "_pat_" + _A + _A + "ABCDEFGHIJKLMNOPQR"),
    "gitlab-pat": _planted("use {} to push", "gl" + "pat-" + _A[:20]),
    "aws-access-token": _planted("key {} here", "AK" + "IA" + "Q3EGRTHV5WXYZ2AB"),
    "gcp-api-key": _planted("key {} here", "AI" + "za" + "SyB3dE5fG7hJ9kL1mN3pQ5rS7tV9wX1yZaB"),
    "slack-bot-token": _planted("bot {} here", "xo" + "xb-123456789012-1234567890123-" + _A[:24]),
    "slack-webhook-url": _planted("post to {} now", "https://hooks.slack" + ".com/services/T0123ABCD/B0123ABCD/" + _A[:24]),
    "stripe-access-token": _planted("pay with {} here", "sk" + "_live_" + _A[:24]),
    "sendgrid-api-token": _planted("mail with {} here", "SG" + "." + _A[:22] + "." + _A + "abcdefghijk"),
    "npm-access-token": _planted("publish with {} here", "np" + "m_" + _A.lower() + "0123"),
    "pypi-upload-token": _planted("publish with {} here", "py" + "pi-AgEIcHlwaS5vcmc" + _A + _A),
    "openai-api-key": _planted("ask with {} here", "s" + "k-" + _A[:20] + "T3Blbk" + "FJ" + _A[:20]),
    "anthropic-api-key": _planted("ask with {} here", "s" + "k-ant-api03-" + (_A * 3)[:93] + "AA"),
    "huggingface-access-token": _planted("load with {} here", "h" + "f_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZaBcDeFgH"),
    "digitalocean-pat": _planted("deploy with {} here", "do" + "p_v1_" + _HEX + _HEX),
    "shopify-access-token": _planted("shop with {} here", "shp" + "at_" + _HEX),
    "telegram-bot-api-token": _planted("telegram_bot = '{}'", "123456789:A" + "A" + _A + "B"),
    "twilio-api-key": _planted("call with {} here", "S" + "K" + _HEX),
    "jwt": _planted("token {} here", "ey" + "JhbGciOiJIUzI1NiJ9.ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0." + _A[:30]),
    "age-secret-key": _planted(
        "decrypt with {} here", "AGE-SECRET-" + "KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"
    ),
    "databricks-api-token": _planted("query with {} here", "da" + "pi" + _HEX),
    "doppler-api-token": _planted("config with {} here", "d" + "p.pt." + (_A * 2)[:43]),
    "linear-api-key": _planted("issue with {} here", "lin" + "_api_" + (_A * 2)[:40]),
    "postman-api-token": _planted("post with {} here", "PM" + "AK-" + "0f1e2d3c4b5a69788796a5b4-" + _HEX + "01"),
    "pulumi-api-token": _planted("up with {} here", "pu" + "l-" + _HEX + "01234567"),
    "planetscale-password": _planted("connect with {} here", "pscale" + "_pw_" + _A),
    "new-relic-user-api-key": _planted("new-relic key = '{}'", "NR" + "AK-" + "0F1E2D3C4B5A69788796A5B4C3D"),
    "recollect-token": _planted("ask with {} here", "rc" + "l_" + (_A * 2)[:43]),
    "generic-api-key": _planted('client_api_key = "{}"', "q7w8e9r0t1y2u3i4o5p6a7s8"),
}
