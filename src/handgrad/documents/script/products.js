// An element opened: the terms that it is a sum of, each with its symbols, numbers and value.

const SUM = 1;
const PRODUCT = 2;
const UNARY = 3;
const ATOM = 4;

const fenced = ([text, strength], around) => (strength < around ? `(${text})` : text);
const isNegative = (tree) =>
  isNumber(tree) ? Number(tree[0]) < 0 : tree[0] === "*" && isNumber(tree[1]) && isNegative(tree[1]);

/**
 * Writes trees one after the other, whose leaves follow each other in `indices`.
 *
 * `leaf(array, index)` writes one leaf, `read(array, index)` is its value, and `times` stands
 * between factors.
 */
class TreeWriter {
  constructor(indices, leaf, read, times) {
    Object.assign(this, { indices, leaf, read, times, at: 0 });
  }

  next() {
    this.at += 1;
    return this.indices[this.at - 1];
  }

  /** The text of a tree and how strongly it holds together. */
  write(tree) {
    if (isLeaf(tree)) return this.leaf(tree, this.next());
    if (isNumber(tree)) {
      const value = Number(tree[0]);
      return [alone(value), value < 0 ? SUM : ATOM];
    }
    const [op, ...parts] = tree;
    switch (op) {
      case "+":
        return [this.sum(parts), SUM];
      case "*":
        return this.product(parts);
      case "/": {
        const above = fenced(this.write(parts[0]), PRODUCT);
        return [`${above} / ${fenced(this.write(parts[1]), UNARY)}`, PRODUCT];
      }
      case "^": {
        const base = fenced(this.write(parts[0]), ATOM);
        return [`${base}<sup>${this.write(parts[1])[0]}</sup>`, UNARY];
      }
      case "sqrt":
        return [`√${fenced(this.write(parts[0]), ATOM)}`, UNARY];
      case "abs":
        return [`|${this.write(parts[0])[0]}|`, ATOM];
      case "if":
        return this.chosen(parts);
      case "not":
        return [`¬${fenced(this.write(parts[0]), ATOM)}`, UNARY];
    }
    const several = parts.map((each) => this.write(each)[0]);
    if (/^\w{3,}$/.test(op) && op !== "and") return [`${op}(${several.join(", ")})`, ATOM];
    return [`[${several.join(` ${op} `)}]`, ATOM];
  }

  sum(parts) {
    return parts.reduce((text, each, i) => {
      const minus = isNegative(each);
      const part = fenced(this.write(minus ? opposite(each) : each), i || minus ? PRODUCT : SUM);
      if (!i) return minus ? `−${part}` : part;
      return `${text} ${minus ? "−" : "+"} ${part}`;
    }, "");
  }

  product(parts) {
    if (isNegative(["*", ...parts])) {
      return [`−${fenced(this.write(opposite(["*", ...parts])), PRODUCT)}`, SUM];
    }
    return [parts.map((each) => fenced(this.write(each), PRODUCT)).join(this.times), PRODUCT];
  }

  /** Of a choice, what the run has chosen. */
  chosen([test, yes, no]) {
    const start = this.at;
    this.write(test);
    const after = this.at;
    this.at = start;
    const taken = valueOf(test, (array) => this.read(array, this.next()));
    this.at = after;
    const branches = [this.write(yes), this.write(no)];
    return branches[taken ? 0 : 1];
  }
}

/** The same with the other sign, of a tree that begins with a negative number. */
function opposite(tree) {
  if (isNumber(tree)) return [-Number(tree[0])];
  const rest = Number(tree[1][0]) === -1 ? tree.slice(2) : [opposite(tree[1]), ...tree.slice(2)];
  return rest.length === 1 ? rest[0] : ["*", ...rest];
}

const isSum = (tree) => tree[0] === "+" && tree.length > 2;

/**
 * A tree as what is written in a row: terms, and the signs and brackets between them.
 *
 * Sums within products and fractions are opened as well: ½ · ( … + … ) + …. A term is a tree, the
 * place of its first leaf, and whether the sign before it is its own.
 */
function rowOf(tree) {
  const found = [];
  let at = 0;
  const sign = (text) => found.push({ sign: text });
  const term = (each, minus = false) => {
    found.push({ tree: minus ? opposite(each) : each, at });
    at += leavesOf(each).length;
  };
  const open = (each) => {
    sign("(");
    row(each);
    sign(")");
  };
  const factors = (parts) =>
    parts.forEach((each, i) => {
      if (i) sign("·");
      if (isSum(each)) open(each);
      else term(each);
    });
  const row = (each) => {
    if (isSum(each)) {
      each.slice(1).forEach((part, i) => {
        const minus = isNegative(part);
        if (i || minus) sign(minus ? "−" : "+");
        one(minus ? opposite(part) : part);
      });
    } else one(each);
  };
  const one = (each) => {
    const parts = isLeaf(each) ? [] : each.slice(1);
    if (each[0] === "*" && parts.filter(isSum).length === 1) factors(parts);
    else if (each[0] === "/" && isSum(parts[0])) {
      open(parts[0]);
      sign("/");
      term(parts[1]);
    } else term(each);
  };
  row(tree);
  return found;
}
