// Runs handgrad: Pyodide and session.py, one message at a time, away from the page so that a
// backward that never ends can be stopped.

let session;
// Called once, after the first answer.
let keep;

async function start({ pyodide: base, folder, keeps }) {
  const say = (step) => postMessage({ step });
  const names = ["packages.zip", "compiled.py", "session.py", ...(keeps ? ["compiled.zip"] : [])];
  const files = Promise.all(names.map((name) => load(new URL(name, folder))));
  files.catch(() => {}); // is told below, once Python is there
  say("Loading Python and NumPy…");
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const python = await loadPyodide({
    env: { HANDGRAD_ENGINE: "reference", HOME: "/home/pyodide" },
    packages: ["numpy"],
  });
  say("Loading handgrad…");
  const [archive, ...read] = await files;
  for (const i of [0, 1]) python.FS.writeFile(names[1 + i], new Uint8Array(read[i]));
  const compiled = python.pyimport("compiled");
  python.unpackArchive(archive, "zip", { extractDir: String(compiled.FOLDER) });
  const found = read[2] ?? new ArrayBuffer(0);
  compiled.unpack(python.toPy(found).tobytes());
  session = python.pyimport("session");
  if (keeps && !found.byteLength) {
    keep = () => fetch(new URL("compiled.zip", folder), { method: "PUT", body: compiled.packed().toJs() });
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
