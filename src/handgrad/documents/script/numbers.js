// Numbers: how an element is computed from others, and how a number is written.

const sum = (...parts) => parts.reduce((a, b) => a + b, 0);
const product = (...parts) => parts.reduce((a, b) => a * b, 1);

const OPERATIONS = {
  "+": sum,
  "*": product,
  "/": (a, b) => a / b,
  "^": (a, b) => a ** b,
  ">": (a, b) => Number(a > b),
  "<": (a, b) => Number(a < b),
  "≥": (a, b) => Number(a >= b),
  "≤": (a, b) => Number(a <= b),
  "=": (a, b) => Number(a === b),
  "≠": (a, b) => Number(a !== b),
  and: (a, b) => Number(Boolean(a) && Boolean(b)),
  or: (a, b) => Number(Boolean(a) || Boolean(b)),
  not: (a) => Number(!a),
  if: (test, yes, no) => (test ? yes : no),
  max: Math.max,
  min: Math.min,
  abs: Math.abs,
  sign: Math.sign,
  exp: Math.exp,
  expm1: Math.expm1,
  log: Math.log,
  log1p: Math.log1p,
  sqrt: Math.sqrt,
  tanh: Math.tanh,
  sin: Math.sin,
  cos: Math.cos,
  erf,
};

/** The error function by its series, and far out by a continued fraction. */
function erf(x) {
  const size = Math.abs(x);
  if (size > 3) {
    let tail = 0;
    for (let k = 60; k > 0; k -= 1) tail = k / 2 / (size + tail);
    const rest = Math.exp(-size * size) / (Math.sqrt(Math.PI) * (size + tail));
    return Math.sign(x) * (1 - rest);
  }
  let term = x;
  let total = x;
  for (let n = 1; n < 80; n += 1) {
    term *= (-x * x) / n;
    total += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * total;
}

const isLeaf = (tree) => typeof tree === "number";
const isNumber = (tree) => Array.isArray(tree) && tree.length === 1;

/** The leaves of a tree, as the numbers of their arrays in order. */
function leavesOf(tree) {
  if (isLeaf(tree)) return [tree];
  return isNumber(tree) ? [] : tree.slice(1).flatMap(leavesOf);
}

/** The value of a tree; `next` gives that of the next leaf of an array. */
function valueOf(tree, next) {
  if (isLeaf(tree)) return next(tree);
  if (isNumber(tree)) return Number(tree[0]);
  return OPERATIONS[tree[0]](...tree.slice(1).map((each) => valueOf(each, next)));
}

/** The numbers of every step anew, in order, from those that are given. */
function computeAnew({ quantities, steps }) {
  for (const { results } of steps) {
    for (const { quantity, trees, elements } of results) {
      quantities[quantity].values = elements.map(([kind, ...indices]) => {
        let at = 0;
        return valueOf(trees[kind], (array) => quantities[array].values[indices[at++]]);
      });
    }
  }
}

/** To how many decimal places the numbers of an array are written. */
function placesOf(values) {
  const broken = values.filter((each) => Number.isFinite(each) && !Number.isInteger(each));
  const plain = broken.map(Math.abs).filter((each) => each >= 1e-4 && each < 1e6);
  if (!plain.length) return 0;
  const decade = (each) => Math.floor(Math.log10(each));
  let places = Math.max(3 - decade(Math.max(...plain)), -decade(Math.min(...plain)), 1);
  const same = (each) => Math.abs(Number(each.toFixed(places - 1)) - each) <= 1e-12 * each;
  while (places > 1 && plain.every(same)) places -= 1;
  return places;
}

const RAISED = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

/** A number as it is read: integers bare, very large and small ones with a power of ten. */
function written(value, places) {
  if (Number.isNaN(value)) return "NaN";
  const sign = value < 0 ? "−" : "";
  const size = Math.abs(value);
  if (size === Infinity) return `${sign}∞`;
  if (Number.isInteger(size) && size < 1e15) return `${sign}${size}`;
  if (size >= 1e-4 && size < 1e6) return sign + size.toFixed(places);
  const [mantissa, power] = size.toExponential(3).split("e");
  const raised = [...power.replace("+", "")].map((each) => RAISED[each]).join("");
  return `${sign}${mantissa} · 10${raised}`;
}

/** One number with four digits that count. */
const alone = (value) => written(value, placesOf([value]));
