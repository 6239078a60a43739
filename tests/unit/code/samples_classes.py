"""Languages of classes: a small file of each, and the symbols a reader would name."""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, str, str]] = {
    "java": (
        "java",
        r"""package shop;

/**
 * A cart.
 */
@Entity
public class Cart<T> extends Base implements Pay {
    public static final int LIMIT = 10;
    private int a, b;

    /** Makes one. */
    public Cart(int size) {
        this.a = size;
    }

    @Override
    public <R> R pay(int amount) throws Broke {
        Runnable r = new Runnable() {
            public void run() {}
        };
        return null;
    }

    interface Payer {
        boolean pay(int amount);
    }

    enum Colour { RED, GREEN; int code() { return 1; } }
}

record Point(int x, int y) {
    Point {
    }
    int norm() { return x; }
}

@interface Marker {
    String value() default "";
}
""",
        """
Cart class 6-29
Cart.Cart method 12-14
Cart.pay method 16-22
Cart.Payer interface 24-26
Cart.Payer.pay method 25-25
Cart.Colour enum 28-28
Cart.Colour.code method 28-28
Point class 31-35
Point.Point method 32-33
Point.norm method 34-34
Marker interface 37-39
""",
    ),
    "csharp": (
        "csharp",
        r"""using System;
namespace Shop.Core
{
    /// <summary>
    /// A cart.
    /// </summary>
    [Serializable]
    public class Cart<T> : Base, IPay
    {
        public const int Limit = 10;
        private int a, b;
        public int Total { get; set; }
        public event Action Changed;
        public Cart(int size) { }
        public async Task<int> PayAsync(int amount)
        {
            int Local() => 1;
            return Local();
        }
        public static Cart operator +(Cart a, Cart b) => a;
        public int Twice(int n) => n * 2;
    }
    public interface IPay { Task Pay(int amount); }
    public struct Point { public int X; }
    public enum Colour { Red, Green }
    public record Person(string Name);
    public delegate void Handler(int x);
}
""",
        """
Shop.Core module 2-28
Shop.Core.Cart class 7-22
Shop.Core.Cart.Cart method 14-14
Shop.Core.Cart.PayAsync method 15-19
Shop.Core.Cart.Twice method 21-21
Shop.Core.IPay interface 23-23
Shop.Core.IPay.Pay method 23-23
Shop.Core.Point struct 24-24
Shop.Core.Colour enum 25-25
Shop.Core.Person class 26-26
Shop.Core.Handler type 27-27
""",
    ),
    "csharp, file-scoped namespace": (
        "csharp",
        r"""namespace Shop.Flat;

public static class Ext
{
    public static int Twice(this int n) => n * 2;
}
""",
        """
Shop.Flat module 1-1
Shop.Flat.Ext class 3-6
Shop.Flat.Ext.Twice method 5-5
""",
    ),
    "kotlin": (
        "kotlin",
        r"""package shop

const val LIMIT = 10
private val cache = mutableMapOf<String, Int>()
typealias Id = String

/**
 * A cart.
 */
@Serializable
data class Cart<T>(val size: Int) : Base(), Pay {
    var total = 0
    init { total = 1 }
    constructor(a: String) : this(1)

    /** Pays. */
    override suspend fun pay(amount: Int): Boolean {
        fun inner() = 1
        return true
    }

    companion object {
        fun load(path: String): Cart = Cart(1)
    }
    companion object Named { fun x() {} }
}

interface Pay {
    suspend fun pay(amount: Int): Boolean
}

enum class Colour { RED, GREEN; fun code() = 1 }
object Registry {
    fun find() {}
}
sealed interface Shape

fun String.twice(): String = this + this
fun <T> first(items: List<T>): T = items[0]
""",
        """
LIMIT variable 3-3
cache variable 4-4
Id type 5-5
Cart class 10-26
Cart.pay method 17-20
Cart.load method 23-23
Cart.Named.x method 25-25
Pay interface 28-30
Pay.pay method 29-29
Colour enum 32-32
Colour.code method 32-32
Registry class 33-35
Registry.find method 34-34
Shape interface 36-36
twice function 38-38
first function 39-39
""",
    ),
    "swift": (
        "swift",
        r"""import Foundation

let limit = 10
typealias Id = String

/// A cart.
@MainActor
public final class Cart<T>: Base, Pay {
    var total: Int = 0
    init(size: Int) {
        total = size
    }
    deinit {}

    /// Pays.
    @discardableResult
    func pay(amount: Int) async throws -> Bool {
        func inner() {}
        return true
    }
    static func load(_ path: String) -> Cart { Cart(size: 1) }
    subscript(i: Int) -> Int { i }
}

struct Point { var x = 0; mutating func move() {} }
enum Colour { case red, green
    func code() -> Int { 1 }
}
protocol Pay { func pay(amount: Int) async throws -> Bool; var n: Int { get } }
extension Cart { func extra() {} }
actor Bank { func open() {} }
func helper<T>(x: T) -> T where T: Pay { x }
func plain(x: Int) -> Int { x }
""",
        """
limit variable 3-3
Id type 4-4
Cart class 7-23
Cart.init method 10-12
Cart.pay method 16-20
Cart.load method 21-21
Point struct 25-25
Point.move method 25-25
Colour enum 26-28
Colour.code method 27-27
Pay trait 29-29
Pay.pay method 29-29
Cart.extra method 30-30
Bank class 31-31
Bank.open method 31-31
helper function 32-32
plain function 33-33
""",
    ),
    "scala": (
        "scala",
        r"""package shop

/** A cart. */
@deprecated
case class Cart[T](size: Int) extends Base with Pay {
  val total = 1
  var n: Int = 0
  type Id = String
  def pay(amount: Int): Boolean = {
    def inner = 1
    true
  }
  class Line
}

object Cart {
  val Limit = 10
  def load(path: String): Cart = new Cart(1)
}

trait Pay {
  def pay(amount: Int): Boolean
}

enum Colour:
  case Red, Green

def helper(x: Int)(using y: Int): Int =
  x + y
val top = 1
extension (s: String)
  def twice: String = s + s
""",
        """
Cart class 4-14
Cart.Id type 8-8
Cart.pay method 9-12
Cart.Line class 13-13
Cart class 16-19
Cart.load method 18-18
Pay trait 21-23
Pay.pay method 22-22
Colour enum 25-26
helper function 28-29
top variable 30-30
twice function 32-32
""",
    ),
}
