"""Sentences as people and agents write them about one project's code, each with the symbols it speaks of, labelled by hand."""

from __future__ import annotations

from recollect.model import Scope

_SYMBOLS = (
    ("src/auth.py", "class", "Door", 4, 30),
    ("src/auth.py", "method", "Door.open", 8, 14),
    ("src/auth.py", "method", "Door.unlock_door", 16, 28),
    ("src/auth.py", "function", "login_user", 33, 48),
    ("src/auth.py", "function", "get", 50, 52),
    ("src/auth.py", "variable", "MAX_TRIES", 1, 1),
    ("src/cart.py", "class", "ShoppingCart", 3, 60),
    ("src/cart.py", "method", "ShoppingCart.add", 10, 20),
    ("src/cart.py", "method", "ShoppingCart.total", 22, 40),
    ("src/cart.py", "function", "checkout", 63, 90),
    ("src/cart.py", "function", "parse", 92, 99),
    ("src/pay.py", "function", "parse", 5, 9),
    ("src/pay.py", "function", "refund_order", 11, 40),
    ("src/pay.py", "class", "PaymentError", 42, 44),
    ("src/pay.py", "function", "main", 50, 60),
    ("web/app.ts", "function", "renderCart", 3, 20),
    ("web/app.ts", "class", "CartView", 22, 80),
    ("web/app.ts", "method", "CartView.render", 30, 44),
    ("a.py", "function", "to_json", 1, 3),
    ("b.py", "function", "to_json", 1, 3),
    ("c.py", "function", "to_json", 1, 3),
    ("d.py", "function", "to_json", 1, 3),
)

SCOPES = [
    Scope(id=f"{path}:{qualified}", project_id="p", name=qualified.rpartition(".")[2], qualified=qualified, kind=kind, file_path=path,
          line_start=first, line_end=last)
    for path, kind, qualified, first, last in _SYMBOLS
]  # fmt: skip

LABELLED: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Why does login_user crash when the token has expired?", ("src/auth.py:login_user",)),
    ("Please get the main thing open and add a door.", ()),
    ("The door is open, total chaos; parse that.", ()),
    ("`Door.open` should not raise", ("src/auth.py:Door.open",)),
    ("door.open() fails because Door.unlock_door returns None", ("src/auth.py:Door.unlock_door",)),
    ("I renamed ShoppingCart to Basket", ("src/cart.py:ShoppingCart",)),
    ("ShoppingCart.total is wrong by a cent", ("src/cart.py:ShoppingCart.total",)),
    ("src/cart.py:25 rounds too early", ("src/cart.py:ShoppingCart.total",)),
    ("see cart.py line 70", ("src/cart.py:checkout",)),
    ("src/pay.py#L12 has the bug", ("src/pay.py:refund_order",)),
    ("look at src/nothing.py:12", ()),
    ("call `checkout()` again", ("src/cart.py:checkout",)),
    ("go to checkout and pay", ()),
    ("`parse()` is slow", ()),
    ("`parse()` in src/pay.py is slow", ("src/pay.py:parse",)),
    ("`get()` is a bad name", ()),
    ("`main` branch is red", ()),
    ("to_json is defined in four places", ()),
    ("to_json of b.py loses the time zone", ("b.py:to_json",)),
    ("raise PaymentError(order) instead of returning None", ("src/pay.py:PaymentError",)),
    ("The PaymentErrors table is empty", ()),
    ("renderCart runs twice", ("web/app.ts:renderCart",)),
    ("CartView.render calls renderCart", ("web/app.ts:CartView.render", "web/app.ts:renderCart")),
    ("this.CartView.render(x)", ("web/app.ts:CartView.render",)),
    ("the cart view renders twice", ()),
    ("```python\ndef checkout(cart):\n    return cart\n```", ("src/cart.py:checkout",)),
    ("```python\ndef refund_order(order, reason):\n```", ("src/pay.py:refund_order",)),
    ("```python\ndef main():\n    pass\n```", ("src/pay.py:main",)),
    ("refund order 12 for the customer", ()),
    ("refund-order is a route", ()),
    ("GET /orders/refund_order/12 answers 500", ()),
    ("from src.pay import refund_order", ("src/pay.py:refund_order",)),
    ("MAX_TRIES is too low", ()),
    ("self.login_user(name) is called in a loop", ("src/auth.py:login_user",)),
    ("tests for login_user and refund_order pass now", ("src/auth.py:login_user", "src/pay.py:refund_order")),
    ('Traceback: File "src/auth.py", line 40, in login_user', ("src/auth.py:login_user",)),
    ("The login user interface is ugly", ()),
    ("auth.py:10: error: Door has no attribute", ("src/auth.py:Door.open",)),
    ("Jean-Paul and McDonald met iPhone users", ()),
    ("LOGIN_USER environment variable", ()),
)  # fmt: skip
