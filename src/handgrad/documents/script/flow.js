// The picture: every array as a block of its size, forward from left to right, and below each the
// gradient of it, so that the backward pass walks back to the left.

const UNIT = 5;
const LARGEST = 7;

const clamped = (count) => UNIT * Math.min(Math.max(count, 1), LARGEST) + 3;

class Flow {
  constructor(story, jump) {
    this.blocks = [];
    this.links = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    this.links.setAttribute("class", "links");
    this.columns = element("div", { class: "columns" });
    this.node = element("div", { class: "flow", "aria-hidden": "true" }, this.columns);
    this.columns.append(this.links);
    const stacks = [];
    const columnOf = new Map();
    const groups = new Map(); // of a step and a column: what it makes stands side by side
    const numbers = [...story.quantities.keys()];
    numbers.sort((a, b) => story.quantities[a].backward - story.quantities[b].backward || a - b);
    numbers.forEach((number) => {
      const quantity = story.quantities[number];
      const block = this.block(quantity, number, () => jump(number));
      const column = this.columnFor(story, quantity, number, columnOf);
      if (column === undefined) {
        const stack = element("div", { class: "column" }, element("div"), element("div"));
        stacks.push(stack);
        this.columns.append(stack);
        columnOf.set(number, stacks.length - 1);
      } else {
        columnOf.set(number, column);
      }
      const place = stacks[columnOf.get(number)].children[quantity.backward ? 1 : 0];
      const step = story.steps.findIndex(({ results }) => results.some((each) => each.quantity === number));
      const key = `${step}:${columnOf.get(number)}`;
      if (step < 0 || !groups.has(key)) {
        groups.set(key, element("div", { class: "group" }));
        place.append(groups.get(key));
      }
      groups.get(key).append(block);
    });
  }

  /** A gradient stands below its array, another part of backward below what it is made of. */
  columnFor(story, quantity, number, columnOf) {
    if (!quantity.backward) return undefined;
    if (quantity.beside !== null) return columnOf.get(quantity.beside);
    const step = story.steps.find(({ results }) => results.some((each) => each.quantity === number));
    return step?.operands.map((each) => columnOf.get(each)).findLast((each) => each !== undefined);
  }

  block(quantity, number, jump) {
    const [rows, columns] = [...[1, 1], ...quantity.shape].slice(-2);
    const shape = element("span", {
      class: "shape",
      style: `width:${clamped(columns)}px;height:${clamped(rows)}px`,
    });
    const side = quantity.backward ? "backward" : "forward";
    const block = element("div", { class: `block ${side}`, title: `${quantity.name}: ${sizeOf(quantity)}` });
    block.append(shape, element("span", { class: "symbol", markup: quantity.symbol }));
    block.addEventListener("click", jump);
    this.blocks[number] = block;
    return block;
  }

  /** Light a step: what it reads and what it makes; what is not yet made is pale. */
  light(step, made) {
    this.blocks.forEach((block, number) => {
      block.classList.toggle("operand", step.operands.includes(number));
      block.classList.toggle("result", step.results.some((each) => each.quantity === number));
      block.classList.toggle("coming", !made.has(number));
    });
    this.join(step);
  }

  /** Bring what a step makes to the middle. This lays out, so it comes after all that is drawn. */
  centre(step) {
    const [first] = step.results;
    const { room, centres } = this.places();
    const behavior = calm() ? "auto" : "smooth";
    this.node.scrollTo({ left: centres[first.quantity].middle - room / 2, behavior });
  }

  /** Where the blocks are, which no step changes: read at once and kept, as to read lays out. */
  places() {
    if (!this.found) {
      const box = this.columns;
      const origin = box.getBoundingClientRect();
      const centres = this.blocks.map((block) => {
        const found = block.querySelector(".shape").getBoundingClientRect();
        const x = found.left + found.width / 2 - origin.left;
        const y = found.top + found.height / 2 - origin.top;
        return { x, y, middle: block.offsetLeft + block.offsetWidth / 2 };
      });
      const [width, height] = [box.offsetWidth, box.offsetHeight];
      this.found = { centres, room: this.node.clientWidth };
      this.links.setAttribute("width", width);
      this.links.setAttribute("height", height);
    }
    return this.found;
  }

  /** Look for the blocks again, after what moves them. */
  moved(step) {
    this.found = null;
    this.join(step);
  }

  join(step) {
    const { centres } = this.places();
    const paths = step.operands.flatMap((operand) =>
      step.results.map(({ quantity }) => {
        const [{ x, y }, { x: u, y: v }] = [centres[operand], centres[quantity]];
        const bend = Math.abs(y - v) < 4 ? -Math.min(26, Math.abs(u - x) / 3) : 0;
        return `<path d="M${x} ${y} Q${(x + u) / 2} ${(y + v) / 2 + bend} ${u} ${v}"/>`;
      }),
    );
    this.links.innerHTML = paths.join("");
    this.links.setAttribute("class", `links ${step.phase}`);
  }
}

/** True for readers who have asked for less motion. */
const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
