// The stage: one step at a time, with its equation, its matrices, and one number opened.

const PAUSE = 1800;
const MOST_TERMS = 16;
const LONGEST = 40;
const SWIPE = 48;

class Stage {
  constructor(story) {
    Object.assign(this, { story, words: story.words, at: 0, pinned: null, timer: 0, changed: false });
    for (const each of story.quantities) {
      each.values = each.values.map(Number);
      each.places = placed(each);
      each.run = [...each.values];
    }
    const made = new Set(story.steps.flatMap(({ results }) => results.map((each) => each.quantity)));
    this.given = new Set(story.quantities.keys().filter((number) => !made.has(number)));
    this.build();
    this.listen();
    document.body.classList.add("handgrad-alive");
    document.querySelector("main").after(this.node);
    this.show(0);
    document.fonts?.ready.then(() => this.flow.moved(this.step));
  }

  get step() {
    return this.story.steps[this.at];
  }

  // Building

  build() {
    const { words, story } = this;
    const button = (name, sign, label) =>
      element("button", { type: "button", class: name, "aria-label": label, title: label }, sign);
    this.controls = {
      previous: button("previous", "‹", words.alive_previous),
      play: button("play", "▸", words.alive_play),
      next: button("next", "›", words.alive_next),
      fold: button("fold", "▾", words.alive_fold),
      reset: element("button", { type: "button", class: "reset", hidden: "" }, words.alive_reset),
    };
    this.controls.fold.setAttribute("aria-expanded", "true");
    this.slider = element("input", {
      type: "range",
      min: 1,
      max: story.steps.length,
      value: 1,
      "aria-label": words.alive,
    });
    const forward = story.steps.filter((each) => each.phase === "forward").length;
    this.slider.style.setProperty("--share", `${(100 * forward) / story.steps.length}%`);
    this.where = element("span", { class: "where", "aria-hidden": "true" });
    this.spoken = element("p", { class: "spoken", "aria-live": "polite", role: "status" });
    this.flow = new Flow(story, (number) => this.jump(number));
    this.now = element("div", { class: "now" });
    this.boards = element("div", { class: "boards" });
    this.opened = element("div", { class: "opened" });
    this.note = element("p", { class: "note", hidden: "" }, `${words.alive_changed} `);
    this.note.append(this.controls.reset);
    const help = story.editable ? `${words.alive_help} ${words.alive_edit}` : words.alive_help;
    this.body = element("div", { class: "body" });
    this.body.append(this.flow.node, this.now, this.boards, this.opened, this.note);
    this.body.append(element("p", { class: "help" }, help));
    const { previous, play, next, fold } = this.controls;
    const bar = element("div", { class: "bar" }, previous, play, next, this.slider, this.where, fold);
    const attributes = { class: "handgrad handgrad-stage", "aria-label": words.alive, tabindex: "-1" };
    this.node = element("section", attributes, bar, this.spoken, this.body);
  }

  listen() {
    const { previous, play, next, fold, reset } = this.controls;
    previous.addEventListener("click", () => this.go(this.at - 1));
    next.addEventListener("click", () => this.go(this.at + 1));
    play.addEventListener("click", () => this.play(!this.timer));
    fold.addEventListener("click", () => this.fold());
    reset.addEventListener("click", () => this.reset());
    this.slider.addEventListener("input", () => this.go(this.slider.valueAsNumber - 1));
    document.addEventListener("keydown", (event) => this.key(event));
    document.querySelector("main").addEventListener("click", (event) => this.pick(event));
    const cell = (event) => event.target.closest("td[data-index]");
    this.boards.addEventListener("pointerover", (event) => {
      if (event.pointerType === "mouse" && cell(event)) this.open(cell(event));
    });
    this.boards.addEventListener("pointerleave", () => this.restore());
    this.boards.addEventListener("focusin", (event) => {
      if (cell(event)) this.pin(cell(event), event.target.matches(":focus-visible"));
    });
    this.boards.addEventListener("click", (event) => cell(event)?.focus());
    this.boards.addEventListener("dblclick", (event) => cell(event) && this.edit(cell(event)));
    this.opened.addEventListener("pointerover", (event) => this.mark(event.target.closest(".term")));
    this.opened.addEventListener("pointerleave", () => this.mark(null));
    window.addEventListener("resize", () => {
      this.flow.moved(this.step);
      reachable(document);
    });
    document.fonts.ready.then(() => reachable(document));
    document.addEventListener("toggle", () => reachable(document), true);
    let start = null;
    this.node.addEventListener("touchstart", ({ touches: [touch], target }) => {
      start = target.closest("input, .boards, .flow") ? null : touch;
    }, { passive: true });
    this.node.addEventListener("touchend", ({ changedTouches: [touch] }) => {
      const [x, y] = start ? [touch.clientX - start.clientX, touch.clientY - start.clientY] : [0, 0];
      if (Math.abs(x) > SWIPE && Math.abs(x) > 2 * Math.abs(y)) this.go(this.at - Math.sign(x));
    });
  }

  // Stepping

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, [contenteditable]")) return;
    const found = event.target.closest("td[data-index]");
    if (found && this.walk(event, found)) {
      event.preventDefault();
      return;
    }
    const within = this.node.contains(event.target) && !event.target.closest("button");
    const to = { ArrowRight: this.at + 1, ArrowLeft: this.at - 1 }[event.key];
    if (to !== undefined) this.go(to);
    else if (within && event.key === " ") this.go(this.at + (event.shiftKey ? -1 : 1));
    else if (within && event.key === "Home") this.go(0);
    else if (within && event.key === "End") this.go(this.story.steps.length - 1);
    else return;
    event.preventDefault();
  }

  go(to) {
    const steps = this.story.steps.length;
    const at = Math.min(Math.max(to, 0), steps - 1);
    if (at === steps - 1) this.play(false);
    if (at === this.at) return;
    this.show(at);
    const equation = document.getElementById(this.step.target);
    equation?.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  }

  play(on) {
    clearInterval(this.timer);
    if (on && this.at === this.story.steps.length - 1) this.show(0);
    this.timer = on ? setInterval(() => this.go(this.at + 1), PAUSE) : 0;
    const label = on ? this.words.alive_pause : this.words.alive_play;
    this.controls.play.textContent = on ? "❙❙" : "▸";
    this.controls.play.setAttribute("aria-label", label);
    this.controls.play.title = label;
  }

  /** To the step that makes an array, or that first reads it. */
  jump(number) {
    const { steps } = this.story;
    const makes = steps.findIndex(({ results }) => results.some((each) => each.quantity === number));
    this.go(makes < 0 ? steps.findIndex((each) => each.operands.includes(number)) : makes);
  }

  /** To the step of an equation of the page that was clicked at. */
  pick(event) {
    const target = event.target.closest(".equation[id]")?.id;
    const at = this.story.steps.findIndex((each) => `${each.target}-`.startsWith(`${target}-`));
    if (target && at >= 0 && !String(getSelection())) this.show(at);
  }

  fold() {
    const folded = this.node.classList.toggle("folded");
    this.controls.fold.setAttribute("aria-expanded", String(!folded));
    document.body.classList.toggle("handgrad-folded", folded);
    this.flow.moved(this.step);
  }

  show(at) {
    this.at = at;
    this.pinned = null;
    const { step, story, words } = this;
    const phase = words[step.phase];
    const count = filled(words.alive_step, at + 1, story.steps.length);
    this.slider.value = at + 1;
    this.slider.setAttribute("aria-valuetext", `${phase}, ${count}`);
    this.where.textContent = `${phase} ${at + 1}/${story.steps.length}`;
    this.node.dataset.phase = step.phase;
    this.controls.previous.disabled = at === 0;
    this.controls.next.disabled = at === story.steps.length - 1;
    this.now.innerHTML = `<div class="scroll">${step.formula}</div>`;
    if (step.moment) this.now.prepend(element("span", { class: "moment", markup: step.moment }));
    const names = step.results.map(({ quantity }) => story.quantities[quantity].name);
    const equation = step.target ? `, ${words.equation} ${step.target.split("-")[1]}` : "";
    this.spoken.textContent = `${phase}, ${count}${equation}: ${names.join(", ")}`.replaceAll("_", " ");
    this.highlight();
    this.draw();
    this.flow.light(step, this.made());
    this.restore();
    this.flow.centre(step);
    reachable(this.node);
  }

  /** The arrays that there are by this step. */
  made() {
    const before = this.story.steps.slice(0, this.at + 1);
    return new Set([...this.given, ...before.flatMap(({ results }) => results.map((each) => each.quantity))]);
  }

  highlight() {
    for (const each of document.querySelectorAll(".equation.current")) {
      each.classList.remove("current", "forward", "backward");
      each.removeAttribute("aria-current");
    }
    const equation = document.getElementById(this.step.target);
    equation?.classList.add("current", this.step.phase);
    equation?.setAttribute("aria-current", "step");
  }

  draw() {
    const { operands, results } = this.step;
    const of = (number, role) => {
      const editable = this.story.editable && this.given.has(number);
      return board(this.story.quantities[number], number, role, this.words, editable);
    };
    const made = results.map(({ quantity }) => of(quantity, "result"));
    const read = operands.map((number) => of(number, "operand"));
    const arrow = read.length ? [element("span", { class: "arrow", "aria-hidden": "true" }, "→")] : [];
    const group = element("div", { class: "made" }, ...arrow, ...made);
    this.boards.replaceChildren(...read, group);
    this.cells = new Map();
    for (const each of this.boards.querySelectorAll("td[data-index]")) {
      this.cells.set(`${each.dataset.array}:${each.dataset.index}`, each);
    }
  }

  // One number

  /** The result of this step that is an array, if one is. */
  resultOf(number) {
    return this.step.results.find((each) => each.quantity === number);
  }

  pin(cell, aloud) {
    this.pinned = cell;
    this.open(cell);
    if (aloud) this.spoken.textContent = this.opened.textContent.replace(/\s+/g, " ");
  }

  /** What is pinned, or the first number of the result. */
  restore() {
    const [first] = this.step.results;
    this.open(this.pinned ?? this.cells.get(`${first.quantity}:0`) ?? null);
  }

  open(cell) {
    for (const each of this.cells.values()) each.classList.remove("lit", "open", "marked");
    if (!cell) return this.opened.replaceChildren();
    const [number, index] = [Number(cell.dataset.array), Number(cell.dataset.index)];
    cell.classList.add("open");
    const result = this.resultOf(number);
    if (result) this.openResult(result, index);
    else this.openOperand(number, index);
  }

  /** From an element of a result to those that it is made of. */
  openResult(result, index) {
    const quantity = this.story.quantities[result.quantity];
    const opened = result.elements[index];
    const value = quantity.values[index];
    const name = element("span", { class: "name", markup: elementName(quantity, index) });
    const total = element("span", { class: "total" }, `= ${written(value, placesOf(quantity.values))}`);
    if (!opened) {
      this.opened.replaceChildren(name, total, element("p", {}, this.words.alive_closed));
      return;
    }
    const [kind, ...indices] = opened;
    const tree = result.trees[kind];
    leavesOf(tree).forEach((array, i) => this.cells.get(`${array}:${indices[i]}`)?.classList.add("lit"));
    this.opened.replaceChildren(name, element("span", { class: "sign" }, "="), ...this.terms(tree, indices), total);
  }

  /** The terms of an element with the signs between them; of very many, the first. */
  terms(tree, indices) {
    const row = rowOf(tree);
    const ends = row.flatMap((each, i) => (each.tree === undefined ? [] : [i]));
    const last = ends[MOST_TERMS - 1] ?? row.length;
    const found = row.slice(0, last + 1).map((each) =>
      each.sign ? element("span", { class: "sign" }, each.sign) : this.card(each, indices),
    );
    const more = ends.length - MOST_TERMS;
    if (more > 0) found.push(element("span", { class: "more" }, `⋯ ${filled(this.words.alive_more, more)}`));
    return found;
  }

  /** One term: its symbols, its numbers, and what they come to. */
  card({ tree, at }, every) {
    const arrays = leavesOf(tree);
    const indices = every.slice(at, at + arrays.length);
    const { quantities } = this.story;
    const value = (array, index) => quantities[array].values[index];
    const names = (array, index) => [elementName(quantities[array], index), ATOM];
    const numbers = (array, index) => {
      const found = value(array, index);
      return [written(found, placesOf(quantities[array].values)), found < 0 ? SUM : ATOM];
    };
    const write = (leaf, times) => new TreeWriter(indices, leaf, value, times).write(tree)[0];
    const cells = arrays.map((array, i) => `${array}:${indices[i]}`).join(" ");
    const made = element("span", { class: "term", "data-cells": cells });
    const long = arrays.length > LONGEST;
    if (!long && arrays.length) made.append(element("span", { class: "symbols", markup: write(names, "\u2009") }));
    if (!long) made.append(element("span", { class: "numbers", markup: write(numbers, " · ") }));
    let next = 0;
    const total = valueOf(tree, (array) => value(array, indices[next++]));
    if (!isLeaf(tree) && !isNumber(tree)) made.append(element("span", { class: "value" }, alone(total)));
    return made;
  }

  /** The cells of one term, beside those of the others. */
  mark(term) {
    for (const each of this.cells.values()) each.classList.remove("marked");
    for (const each of (term?.dataset.cells || "").split(" ")) this.cells.get(each)?.classList.add("marked");
  }

  /** From an element of an operand to those that it goes into. */
  openOperand(number, index) {
    const quantity = this.story.quantities[number];
    const name = elementName(quantity, index);
    const value = written(quantity.values[index], placesOf(quantity.values));
    const lines = this.step.results.map((result) => {
      const reached = result.elements.flatMap(([kind, ...indices], i) =>
        leavesOf(result.trees[kind]).some((array, k) => array === number && indices[k] === index) ? [i] : [],
      );
      for (const each of reached) this.cells.get(`${result.quantity}:${each}`)?.classList.add("lit");
      const of = this.story.quantities[result.quantity];
      return reached.length ? filled(this.words.alive_goes, name, reached.length, of.values.length, of.symbol) : "";
    });
    const head = element("span", { class: "name", markup: `${name} = ${value}` });
    this.opened.replaceChildren(head, element("p", { markup: lines.filter(Boolean).join(" ") }));
  }

  // Walking and changing

  /** Within a matrix the arrows walk from cell to cell; true where the key was one of these. */
  walk(event, cell) {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (move) {
      const table = cell.closest("table");
      const [row, column] = [Number(cell.dataset.row) + move[0], Number(cell.dataset.column) + move[1]];
      const next = table.querySelector(`td[data-row="${row}"][data-column="${column}"]`);
      if (next) {
        cell.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
      return true;
    }
    if (event.key === "Enter") this.edit(cell);
    else if (event.key === "Escape") this.node.focus();
    else return false;
    return true;
  }

  edit(cell) {
    const [number, index] = [Number(cell.dataset.array), Number(cell.dataset.index)];
    if (!this.story.editable || !this.given.has(number) || cell.firstElementChild) return;
    const value = this.story.quantities[number].values[index];
    askNumber(cell, value, this.words.alive_value, (found) => {
      if (found !== null) this.change(number, index, found);
      this.cells.get(`${number}:${index}`)?.focus();
    });
  }

  change(number, index, value) {
    this.story.quantities[number].values[index] = value;
    computeAnew(this.story);
    this.changed = true;
    this.redraw();
  }

  reset() {
    for (const each of this.story.quantities) each.values = [...each.run];
    this.changed = false;
    this.redraw();
    this.node.focus();
  }

  redraw() {
    const place = this.pinned && `${this.pinned.dataset.array}:${this.pinned.dataset.index}`;
    this.note.hidden = !this.changed;
    this.controls.reset.hidden = !this.changed;
    this.draw();
    this.pinned = this.cells.get(place) ?? null;
    this.restore();
    reachable(this.node);
  }
}

/** Lets the keyboard reach what scrolls because it is wider than its place, and only that. */
function reachable(within) {
  const every = [...within.querySelectorAll(".scroll:not([role=group]), .panes, .term")];
  const wide = every.map(
    (each) => each.scrollWidth > each.clientWidth && !each.querySelector("a, [tabindex]"),
  );
  every.forEach((each, i) => {
    if (wide[i]) each.tabIndex = 0;
    else each.removeAttribute("tabindex");
  });
}

const told = document.getElementById("handgrad-story");
if (told) new Stage(JSON.parse(told.textContent));
