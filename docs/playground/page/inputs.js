// The inputs of forward: a table of numbers each, with its shape and kind.

const KINDS = { float: "numbers", int: "whole numbers", bool: "true, false" };
const NEW = { kind: "float", values: [[1, 2, 0], [-1, 3, 1]] };

export class Inputs {
  constructor(element, changed) {
    this.element = element;
    this.changed = changed;
    this.inputs = [];
  }

  set(inputs) {
    this.inputs = structuredClone(inputs);
    this.draw();
  }

  get() {
    return structuredClone(this.inputs);
  }

  // Keep what there is under these names, and begin the others.
  rename(names) {
    const known = new Map(this.inputs.map((each) => [each.name, each]));
    this.inputs = names.map((name) => known.get(name) ?? { name, ...structuredClone(NEW) });
    this.draw();
  }

  draw() {
    this.element.replaceChildren(...this.inputs.map((each) => this.drawInput(each)));
  }

  drawInput(input) {
    const box = make("fieldset", { className: "input" });
    const legend = make("legend", {}, make("code", { textContent: input.name }));
    const size = make("input", {
      value: shape(input.values).join(", "),
      className: "shape",
      spellcheck: false,
      ariaLabel: `shape of ${input.name}`,
      onchange: () => this.resize(input, size),
    });
    const kind = make("select", { ariaLabel: `kind of ${input.name}` });
    for (const [value, label] of Object.entries(KINDS)) kind.append(new Option(label, value));
    kind.value = input.kind;
    kind.onchange = () => {
      input.kind = kind.value;
      input.values = map(input.values, input.kind === "bool" ? (v) => v > 0 : (v) => Math.round(v));
      this.redrawn();
    };
    box.append(legend, make("span", { className: "settings" }, size, kind), this.drawValues(input));
    return box;
  }

  drawValues(input) {
    const table = make("table");
    let row;
    every(input.values, (value, position) => {
      if ((position.at(-1) ?? 0) === 0) table.append((row = make("tr")));
      row.append(make("td", {}, this.drawCell(input, value, position)));
    });
    return make("div", { className: "scroll" }, table);
  }

  drawCell(input, value, position) {
    const label = `${input.name}[${position.join(", ")}]`;
    if (input.kind === "bool") {
      const cell = make("input", { type: "checkbox", checked: value, ariaLabel: label });
      cell.onchange = () => this.put(input, position, cell.checked);
      return cell;
    }
    const cell = make("input", { type: "number", step: "any", value, ariaLabel: label });
    cell.oninput = () => {
      const valid = cell.value !== "" && (input.kind === "float" || Number.isInteger(+cell.value));
      cell.ariaInvalid = String(!valid);
      if (valid) this.put(input, position, Number(cell.value));
    };
    return cell;
  }

  put(input, position, value) {
    if (position.length === 0) input.values = value;
    else position.slice(0, -1).reduce((part, i) => part[i], input.values)[position.at(-1)] = value;
    this.changed();
  }

  resize(input, field) {
    const sizes = field.value.trim() === "" ? [] : field.value.split(/[\s,×x]+/).filter(Boolean).map(Number);
    const count = sizes.reduce((product, size) => product * size, 1);
    const allowed = sizes.every((size) => Number.isInteger(size) && size > 0) && count <= 400;
    field.ariaInvalid = String(!allowed);
    field.title = allowed ? "" : "allowed: sizes such as 2, 3, at most 400 values";
    if (!allowed) return;
    const old = [];
    every(input.values, (value) => old.push(value));
    let next = 0;
    input.values = fill(sizes, () => old[next++ % old.length]);
    this.redrawn();
  }

  redrawn() {
    this.draw();
    this.changed();
  }
}

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function shape(values) {
  return Array.isArray(values) ? [values.length, ...shape(values[0])] : [];
}

function every(values, visit, position = []) {
  if (!Array.isArray(values)) visit(values, position);
  else values.forEach((each, i) => every(each, visit, [...position, i]));
}

function map(values, change) {
  return Array.isArray(values) ? values.map((each) => map(each, change)) : change(Number(values));
}

function fill([size, ...rest], value) {
  return size === undefined ? value() : Array.from({ length: size }, () => fill(rest, value));
}
