"""Systems languages: a small file of each, and the symbols a reader would name."""

from __future__ import annotations

SAMPLES: dict[str, tuple[str, str, str]] = {
    "go": (
        "go",
        r"""// Package shop sells.
package shop

const Limit = 10

var (
	cache = map[string]int{}
	a, b  int
)

// Cart holds lines.
// It is not safe.
type Cart struct {
	lines []string
}

type (
	// Payer pays.
	Payer interface {
		Pay(amount int) error
	}
	ID string
)

// New makes a cart.
func New(size int) *Cart {
	inner := func() {}
	return &Cart{}
}

// Add adds a line.
func (c *Cart) Add(
	line string,
) error {
	return nil
}

func (l List[T]) Len() int { return 0 }

type List[T any] []T
type Alias = Cart
""",
        """
Limit variable 4-4
cache variable 7-7
a variable 8-8
Cart struct 13-15
Payer interface 19-21
Payer.Pay method 20-20
ID type 22-22
New function 26-29
Cart.Add method 32-36
List.Len method 38-38
List type 40-40
Alias type 41-41
""",
    ),
    "rust": (
        "rust",
        r"""//! Crate doc.

/// The most.
pub const LIMIT: usize = 10;
static NAME: &str = "x";

/// A cart.
///
/// With lines.
#[derive(Debug, Clone)]
pub struct Cart<T> {
    lines: Vec<T>,
}

pub enum Colour { Red, Green }

pub trait Pay: Send {
    fn pay(&self, amount: u32) -> bool;
    fn twice(&self) -> bool {
        true
    }
}

impl<T> Cart<T> {
    /// Makes one.
    #[inline]
    pub fn new(size: usize) -> Self {
        fn inner() {}
        Self { lines: vec![] }
    }
}

impl<T: Send> Pay for shop::Cart<T> where T: Clone {
    fn pay(&self, amount: u32) -> bool { false }
}

type Id = u64;
union U { a: u8, b: u8 }
macro_rules! square { ($x:expr) => { $x * $x }; }

mod tests {
    fn works() {}
}

pub async fn run<F>(f: F) -> Result<(), E>
where
    F: Fn(),
{
    Ok(())
}
""",
        """
LIMIT variable 4-4
NAME variable 5-5
Cart struct 11-13
Colour enum 15-15
Pay trait 17-22
Pay.pay method 18-18
Pay.twice method 19-21
Cart.new method 27-30
Cart.pay method 34-34
Id type 37-37
U struct 38-38
square function 39-39
tests module 41-43
tests.works function 42-42
run function 45-50
""",
    ),
    "c": (
        "c",
        r"""#include <stdio.h>
#define LIMIT 10
#define SQUARE(x) ((x) * (x))

/* A point
 * in the plane. */
struct point {
    int x, y;
};

typedef struct {
    int w;
} box_t;

typedef struct node node;
typedef int (*handler)(int);

enum colour { RED, GREEN };
union value { int i; float f; };

static const int max_size = 3;
int a, *b = 0;
extern int shared;

int add(int a, int b);

/* Adds. */
static int
add(int a, int b)
{
    return a + b;
}

struct point *make(void) { return 0; }
void (*signal(int sig, void (*func)(int)))(int) { return 0; }
""",
        """
LIMIT variable 2-2
SQUARE function 3-3
point struct 7-9
box_t struct 11-13
node type 15-15
handler type 16-16
colour enum 18-18
value struct 19-19
max_size variable 21-21
a variable 22-22
b variable 22-22
shared variable 23-23
add function 25-25
add function 28-32
make function 34-34
signal function 35-35
""",
    ),
    "cpp": (
        "cpp",
        r"""#pragma once
namespace shop::inner {

/// A cart.
template <typename T>
class Cart : public Base {
public:
    explicit Cart(int size);
    ~Cart() {}
    int total() const { return 1; }
    virtual void pay(int amount) = 0;
    bool operator==(const Cart& other) const { return true; }
    struct Line { int n; };
    static int count;
private:
    int size_ = 0;
};

enum class Colour { Red };
using Id = int;
typedef long Big;
concept Small = true;

template <typename T>
T max(T a, T b) { return a > b ? a : b; }

}  // namespace

int shop::Cart::total(int x) const {
    auto f = [](int y) { return y; };
    return 1;
}
int& ref(int& a) { return a; }
Cart::Cart(int n) : size_(n) {}
constexpr int LIMIT = 3;
extern "C" {
void c_api(int x) {}
}
""",
        """
shop.inner module 2-27
shop.inner.Cart class 5-17
shop.inner.Cart.Cart method 8-8
shop.inner.Cart.~Cart method 9-9
shop.inner.Cart.total method 10-10
shop.inner.Cart.pay method 11-11
shop.inner.Cart.operator== method 12-12
shop.inner.Cart.Line struct 13-13
shop.inner.Colour enum 19-19
shop.inner.Id type 20-20
shop.inner.Big type 21-21
shop.inner.Small type 22-22
shop.inner.max function 24-25
shop.Cart.total method 29-32
ref function 33-33
Cart.Cart method 34-34
LIMIT variable 35-35
c_api function 37-37
""",
    ),
}
