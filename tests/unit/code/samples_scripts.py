"""Scripting languages: a small file of each, and the symbols a reader would name."""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, str, str]] = {
    "python": (
        "python",
        r'''"""A shop."""

LIMIT = 10
RATE: float = 0.2


class Basket(Base, key=int):
    """What a customer takes.

    It has lines.

    Args: none.
    """

    size = 0

    @property
    def total(self) -> int:
        """Sum it."""
        def inner():
            pass
        return inner()

    async def pay(
        self,
        amount: int,
    ) -> None: ...

    class Line:
        x = 1


@cache
@other(1)
def price(name: str, *, tax: float = RATE) -> float:
    return 1.0


if True:
    def later(): pass
''',
        """
LIMIT variable 3-3
RATE variable 4-4
Basket class 7-30
Basket.total method 17-22
Basket.pay method 24-27
Basket.Line class 29-30
price function 33-36
later function 40-40
""",
    ),
    "javascript": (
        "javascript",
        r"""import x from "x";

/** The most that fits. */
export const LIMIT = 10;

/**
 * Adds two numbers.
 * @param {number} a
 */
export function add(a, b) {
  function inner() {}
  return a + b;
}

// Doubles.
export const twice = async (n) => n * 2;
const old = function (n) {
  return n;
};
var a1 = 1, b1 = () => 2;

export default class Cart extends Base {
  #secret = 1;
  static count = 0;
  handle = (event) => {
    this.x = event;
  };
  constructor(lines) {
    super();
  }
  get total() {
    return 1;
  }
  static async *load() {}
}

function* ids() {}
const Point = class { norm() {} };
module.exports.helper = function () {};
exports.other = () => 1;
const api = { get() {}, put: () => 1 };
""",
        """
LIMIT variable 4-4
add function 10-13
twice function 16-16
old function 17-19
a1 variable 20-20
b1 function 20-20
Cart class 22-35
Cart.handle method 25-27
Cart.constructor method 28-30
Cart.total method 31-33
Cart.load method 34-34
ids function 37-37
Point class 38-38
Point.norm method 38-38
helper function 39-39
other function 40-40
api variable 41-41
api.get method 41-41
""",
    ),
    "typescript": (
        "typescript",
        r"""/** A shape. */
export interface Shape extends Base {
  readonly name: string;
  area(scale: number): number;
}

export type Id = string | number;

export enum Colour {
  Red,
  Green,
}

export abstract class Circle<T> implements Shape {
  private cache = new Map<string, number>();
  constructor(private readonly r: number) {}
  @log()
  area(scale: number): number {
    return 1;
  }
  abstract draw(): void;
  onClick = (e: Event): void => {
    e.stop();
  };
}

export namespace Geometry.Flat {
  export function unit(): number {
    return 1;
  }
  export const one = 1;
}
declare module "thing" {
  function g(): void;
}
export function over(a: string): string;
export function over(a: any): any {
  return a;
}
export const max: number = 3;
export const f = <T,>(x: T): T => x;
declare const VERSION: string;
@Component({})
export class Deco {}
""",
        """
Shape interface 2-5
Shape.area method 4-4
Id type 7-7
Colour enum 9-12
Circle class 14-25
Circle.constructor method 16-16
Circle.area method 18-20
Circle.draw method 21-21
Circle.onClick method 22-24
Geometry.Flat module 27-32
Geometry.Flat.unit function 28-30
Geometry.Flat.one variable 31-31
thing module 33-35
thing.g function 34-34
over function 36-36
over function 37-39
max variable 40-40
f function 41-41
VERSION variable 42-42
Deco class 43-44
""",
    ),
    "tsx": (
        "tsx",
        r"""type Props = { title: string };

/** Shows a title. */
export const Title = ({ title }: Props): JSX.Element => {
  const [open, setOpen] = useState(false);
  const toggle = () => setOpen(!open);
  return <h1 onClick={toggle}>{title}</h1>;
};

export default function App() {
  return (
    <Title title="x" />
  );
}

const Wrapped = memo(function Inner(props: Props) {
  return <Title {...props} />;
});
""",
        """
Props type 1-1
Title function 4-8
App function 10-14
Wrapped variable 16-18
""",
    ),
    "ruby": (
        "ruby",
        r"""# A shop.
module Shop
  LIMIT = 10

  # A cart
  # of lines.
  class Cart < Base
    attr_reader :lines

    def initialize(size = 0)
      @size = size
    end

    def self.load(path)
      new
    end

    def paid?
      true
    end

    class << self
      def build; end
    end

    private def secret(a, *rest, key: 1, &block)
      def inner; end
    end
  end
end

class Shop::Other; end

def helper(x) = x * 2
""",
        """
Shop module 2-30
Shop.LIMIT variable 3-3
Shop.Cart class 7-29
Shop.Cart.initialize method 10-12
Shop.Cart.load method 14-16
Shop.Cart.paid? method 18-20
Shop.Cart.build method 23-23
Shop.Cart.secret method 26-28
Shop.Other class 32-32
helper function 34-34
""",
    ),
    "php": (
        "php",
        r"""<?php
namespace Shop\Core;

const LIMIT = 10;

/**
 * A cart.
 */
#[Entity]
final class Cart extends Base implements Pay
{
    public const MAX = 1;
    private int $size = 0;
    use Loud;

    public function __construct(private int $n) {}

    /** Pays. */
    public static function pay(int $amount): bool
    {
        $f = function ($x) { return $x; };
        return true;
    }

    abstract protected function draw(): void;
}

interface Pay { public function pay(int $amount): bool; }
trait Loud { function shout() {} }
enum Colour: string { case Red = 'r'; public function label(): string { return ''; } }

function helper(array &$x, ...$rest): ?int {
    return null;
}
""",
        """
Shop.Core module 2-2
Shop.Core.LIMIT variable 4-4
Shop.Core.Cart class 9-26
Shop.Core.Cart.__construct method 16-16
Shop.Core.Cart.pay method 19-23
Shop.Core.Cart.draw method 25-25
Shop.Core.Pay interface 28-28
Shop.Core.Pay.pay method 28-28
Shop.Core.Loud trait 29-29
Shop.Core.Loud.shout method 29-29
Shop.Core.Colour enum 30-30
Shop.Core.Colour.label method 30-30
Shop.Core.helper function 32-34
""",
    ),
    "lua": (
        "lua",
        r"""local M = {}
LIMIT = 10
local size, other = 1, 2

--- Adds.
-- @param a number
function M.add(a, b)
  local function inner() end
  return a + b
end

function M:paid(amount)
  return true
end

local function helper(x)
  return x
end

function global() end

M.twice = function(n)
  return n * 2
end

local fast = function() end

return M
""",
        """
M variable 1-1
LIMIT variable 2-2
size variable 3-3
M.add function 7-10
M.paid method 12-14
helper function 16-18
global function 20-20
M.twice function 22-24
fast function 26-26
""",
    ),
    "bash": (
        "bash",
        r"""#!/usr/bin/env bash
set -e
LIMIT=10
readonly NAME="x"
export PATH_TO=1
declare -r D=2

# Says hello
# to a name.
hello() {
  local who=$1
  inner() { :; }
  echo "hi $who"
}

function build {
  make
}
function deploy() {
  X=1
  build
}
""",
        """
LIMIT variable 3-3
NAME variable 4-4
PATH_TO variable 5-5
D variable 6-6
hello function 10-14
build function 16-18
deploy function 19-22
""",
    ),
}
