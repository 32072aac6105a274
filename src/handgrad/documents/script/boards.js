// Arrays as matrices of cells, of which each can be pointed at, walked to and, if given, changed.

const MOST_LINES = 12;
const MOST_PANES = 8;

/** An element of the page with its attributes and children; a text of markup is set as it is. */
function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "markup") made.innerHTML = value;
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** A text of words with what stands for each {}. */
const filled = (text, ...values) => values.reduce((found, each) => found.replace("{}", each), text);

/** The symbol of an element with its indices. */
function elementName(quantity, index) {
  const { pane, row, column } = quantity.places[index];
  const { rows, element: name, symbol, index: outer } = quantity.panes[pane];
  const own = [...outer];
  if (rows.length > 1) own.push(row + 1);
  if (rows[0].length > 1) own.push(column + 1);
  if (!own.length) return symbol ?? quantity.symbol;
  return name.replace("@", own.join(own.some((each) => each > 9) ? "," : "\u200a"));
}

/** Where every element of a quantity stands. */
function placed(quantity) {
  const places = [];
  quantity.panes.forEach(({ rows }, pane) =>
    rows.forEach((line, row) =>
      line.forEach((index, column) => {
        places[index] = { pane, row, column };
      }),
    ),
  );
  return places;
}

const sizeOf = (quantity) => quantity.shape.join(" × ") || "1";

/** A board with the symbol, the matrices and the size of a quantity. */
function board(quantity, number, role, words, editable) {
  const places = placesOf(quantity.values);
  const panes = quantity.panes.slice(0, MOST_PANES);
  const cut =
    quantity.panes.length > MOST_PANES ||
    panes.some(({ rows }) => rows.length > MOST_LINES || (rows[0] ?? []).length > MOST_LINES);
  const size = cut ? `${sizeOf(quantity)}, ${words.alive_part}` : sizeOf(quantity);
  const single = panes.length === 1;
  return element(
    "figure",
    { class: `board ${role}`, "data-quantity": number },
    element("figcaption", { markup: single ? (panes[0].symbol ?? quantity.symbol) : quantity.symbol }),
    element(
      "div",
      { class: "panes" },
      ...panes.map((pane) => grid(quantity, number, pane, single, places, words, editable)),
    ),
    element("span", { class: "size" }, size),
  );
}

function grid(quantity, number, pane, single, places, words, editable) {
  const rows = pane.rows.slice(0, MOST_LINES);
  const name = quantity.name.replaceAll("_", " ");
  const table = element("table", { role: "grid", "aria-label": `${name}, ${sizeOf(quantity)}` });
  rows.forEach((line, row) => {
    const cells = line.slice(0, MOST_LINES).map((index, column) =>
      element(
        "td",
        {
          role: "gridcell",
          tabindex: row || column ? "-1" : "0",
          "data-array": number,
          "data-index": index,
          "data-row": row,
          "data-column": column,
          "aria-label": `${filled(words.alive_row, row + 1, column + 1)}: ${written(quantity.values[index], places)}`,
          "aria-readonly": editable ? "false" : "true",
          class: editable ? "given" : null,
        },
        written(quantity.values[index], places),
      ),
    );
    if (line.length > MOST_LINES) cells.push(element("td", { class: "dots", role: "gridcell" }, "⋯"));
    table.append(element("tr", { role: "row" }, ...cells));
  });
  if (pane.rows.length > MOST_LINES) {
    table.append(element("tr", { role: "row" }, element("td", { class: "dots", role: "gridcell" }, "⋮")));
  }
  if (single) return table;
  const label = pane.symbol ?? pane.element.replace("@", [...pane.index, "∶", "∶"].join(","));
  return element("div", { class: "pane" }, element("span", { class: "label", markup: label }), table);
}

/** Ask for another number in the place of a cell's; `answer` gets it, or null where there is none. */
function askNumber(cell, value, label, answer) {
  const before = cell.textContent;
  const input = element("input", { type: "text", value: String(value), "aria-label": label });
  cell.replaceChildren(input);
  input.select();
  let done = false;
  const end = (keep) => {
    if (done) return;
    done = true;
    const found = Number(input.value.replace("−", "-").replace(",", "."));
    const right = keep && input.value.trim() && Number.isFinite(found);
    cell.textContent = before;
    answer(right ? found : null);
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter" || event.key === "Escape") end(event.key === "Enter");
  });
  input.addEventListener("blur", () => end(true));
}
