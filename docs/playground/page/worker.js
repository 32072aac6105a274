// Runs handgrad: Pyodide and session.py, one message at a time, away from the page so that a
// backward that never ends can be stopped.

let session;
// Called once, after the first answer.
let keep;

const ENV = { HANDGRAD_ENGINE: "reference", HOME: "/home/pyodide" };

async function start({ pyodide: base, folder, keeps }) {
  const say = (step) => postMessage({ step });
  const at = (name) => new URL(name, folder);
  const made = (name) => (keeps ? load(at(name)) : new ArrayBuffer());
  const names = ["packages.zip", "compiled.py", "session.py"];
  const files = Promise.all([...names.map((name) => load(at(name))), made("compiled.zip")]);
  files.catch(() => {}); // is told below, once Python is there
  say("Loading Python and NumPy…");
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  let memory = await made("memory.bin");
  const options = () => (memory.byteLength ? { _loadSnapshot: memory } : {});
  const begin = () => loadPyodide({ env: ENV, packages: ["numpy"], ...options() });
  const python = await begin().catch(() => {
    memory = new ArrayBuffer(); // of another Pyodide, perhaps
    return begin();
  });
  say("Loading handgrad…");
  const [archive, ...read] = await files;
  for (const i of [0, 1]) python.FS.writeFile(names[1 + i], new Uint8Array(read[i]));
  const compiled = python.pyimport("compiled");
  python.unpackArchive(archive, "zip", { extractDir: String(compiled.FOLDER) });
  compiled.unpack(python.toPy(read[2]).tobytes());
  session = python.pyimport("session");
  if (keeps && !(memory.byteLength && read[2].byteLength)) {
    keep = () => {
      fetch(at("compiled.zip"), { method: "PUT", body: compiled.packed().toJs() });
      const asked = { pyodide: base, env: ENV, modules: compiled.modules().toJs(), address: at("memory.bin").href };
      new Worker(at("memory.js"), { type: "module" }).postMessage(asked);
    };
  }
  postMessage({ ready: true });
}

async function load(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address}: ${answer.status}`);
  return answer.arrayBuffer();
}

onmessage = async ({ data }) => {
  try {
    if (data.start) await start(data.start);
    else postMessage({ id: data.id, ...JSON.parse(session.answer(JSON.stringify(data))) });
    if (!data.start) {
      keep?.();
      keep = undefined;
    }
  } catch (error) {
    postMessage({ id: data.id, error: String(error.message ?? error), failed: Boolean(data.start) });
  }
};
