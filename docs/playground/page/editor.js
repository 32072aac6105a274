// A text field for Python, with line numbers, indentation by Tab, and marked lines.

export class Editor {
  constructor(field, gutter, changed) {
    this.field = field;
    this.gutter = gutter;
    this.marked = new Set();
    field.addEventListener("input", () => {
      this.mark([]);
      changed();
    });
    field.addEventListener("scroll", () => (gutter.scrollTop = field.scrollTop));
    field.addEventListener("keydown", (event) => this.key(event));
  }

  get text() {
    return this.field.value;
  }

  set text(text) {
    this.field.value = text;
    this.field.scrollTop = 0;
    this.mark([]);
  }

  mark(lines) {
    this.marked = new Set(lines);
    const count = this.text.split("\n").length;
    this.gutter.replaceChildren(
      ...Array.from({ length: count }, (_, i) => {
        const number = document.createElement("div");
        number.textContent = i + 1;
        number.classList.toggle("marked", this.marked.has(i + 1));
        return number;
      }),
    );
    this.gutter.scrollTop = this.field.scrollTop;
  }

  select(line) {
    const lines = this.text.split("\n");
    const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    this.field.focus();
    this.field.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  }

  // Escape leaves the field, so that Tab does not hold whoever uses the keyboard alone.
  key(event) {
    if (event.key === "Escape") this.field.blur();
    if (event.key !== "Tab" || event.shiftKey) return;
    event.preventDefault();
    document.execCommand("insertText", false, "    ");
  }
}
