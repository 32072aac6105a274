// The page: examples, editor, inputs, and a tab for each thing that handgrad says.

import { Editor } from "./editor.js";
import { Inputs } from "./inputs.js";
import { drawReport, linesOf } from "./report.js";
import { Session } from "./session.js";

const at = (id) => document.getElementById(id);

// A tab shows the answer of the function of session.py that has its name.
const TABS = {
  check(answer, panel) {
    panel.replaceChildren(...drawReport(answer.report, (line) => editor.select(line)));
    editor.mark(linesOf(answer.report));
  },
  notes: showPage,
  derive: showPage,
};
// Typing goes on for this long before the numbers follow, in milliseconds.
const PAUSE = 350;

// All that is loaded is kept for the next visit, in a browser that can.
async function keep() {
  try {
    await navigator.serviceWorker.register("service.js");
    await navigator.serviceWorker.ready;
    if (navigator.serviceWorker.controller) return;
    await new Promise((done) => navigator.serviceWorker.addEventListener("controllerchange", done, { once: true }));
  } catch {
    // A private window, or no https: the page works from the network.
  }
}

function showPage(answer, panel) {
  const frame = panel.querySelector("iframe");
  const top = frame.contentWindow.scrollY;
  frame.onload = () => frame.contentWindow.scrollTo(0, top);
  frame.srcdoc = answer.page;
}

const settings = await (await fetch(new URL("settings.json", import.meta.url))).json();
// A worker that cannot be installed is never ready, and the page waits no longer than this.
await Promise.race([keep(), new Promise((done) => setTimeout(done, 3000))]);
const editor = new Editor(at("source"), at("gutter"), later);
const inputs = new Inputs(at("inputs"), later);
const session = new Session(settings, heard);
let tab = "check";
let timer;
let asked = 0;

function ask() {
  clearTimeout(timer);
  session.ask({ id: ++asked, tab, source: editor.text, inputs: inputs.get() });
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(ask, PAUSE);
}

function heard(message) {
  if (message.step) say(message.step, true);
  else if (message.ready) ask();
  else if (message.started) say("Running…", true);
  else if (message.failed) say(`Python cannot be loaded: ${message.error}`);
  else if (!message.outdated) show(message);
}

function show(answer) {
  say("");
  const names = inputs.get().map((each) => each.name);
  if (answer.parameters && String(answer.parameters) !== String(names)) {
    inputs.rename(answer.parameters);
    ask();
    return;
  }
  at("error").textContent = answer.error ?? "";
  at("printed").textContent = answer.printed ?? "";
  const panel = at(tab);
  panel.classList.toggle("old", Boolean(answer.error));
  if (!answer.error) TABS[tab](answer, panel);
}

function say(text, busy = false) {
  at("status").textContent = text;
  at("stop").hidden = !busy || !session.ready;
  document.body.ariaBusy = String(busy);
}

function choose(name) {
  tab = name;
  for (const button of document.querySelectorAll("[role=tab]")) {
    const chosen = button.dataset.tab === name;
    button.ariaSelected = String(chosen);
    button.tabIndex = chosen ? 0 : -1;
    at(button.dataset.tab).hidden = !chosen;
  }
  at("error").textContent = "";
  ask();
}

function open(name) {
  const example = settings.examples.find((each) => each.name === name);
  editor.text = example.source;
  inputs.set(example.inputs);
  ask();
}

// A link carries the source, the inputs and the tab behind its #, which no server is sent.

function link() {
  const state = JSON.stringify({ tab, source: editor.text, inputs: inputs.get() });
  const bytes = Array.from(new TextEncoder().encode(state), (byte) => String.fromCharCode(byte));
  history.replaceState(null, "", `#${btoa(bytes.join(""))}`);
  navigator.clipboard?.writeText(location.href);
  say("The address has your functions now.");
}

function follow(carried) {
  const bytes = Uint8Array.from(atob(carried), (character) => character.charCodeAt(0));
  const state = JSON.parse(new TextDecoder().decode(bytes));
  editor.text = state.source;
  inputs.set(state.inputs);
  choose(state.tab in TABS ? state.tab : "check");
}

for (const button of document.querySelectorAll("[role=tab]")) {
  button.onclick = () => choose(button.dataset.tab);
  button.onkeydown = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(TABS);
    const next = names[(names.indexOf(tab) + step + names.length) % names.length];
    choose(next);
    document.querySelector(`[data-tab=${next}]`).focus();
  };
}
for (const { name, title } of settings.examples) at("examples").append(new Option(title, name));
at("examples").onchange = () => open(at("examples").value);
at("stop").onclick = () => {
  session.stop();
  say("Stopped; loading Python anew…");
};
at("version").textContent = settings.version;
at("link").onclick = link;
try {
  follow(location.hash.slice(1));
  at("examples").selectedIndex = -1;
} catch {
  at("examples").value = "layer_norm";
  open("layer_norm");
}
