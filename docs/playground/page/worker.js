// Runs handgrad: Pyodide and session.py, one message at a time, away from the page so that a
// backward that never ends can be stopped.

let session;
// Called once, after the first answer.
let keep;

async function start({ pyodide: base, folder, keeps }) {
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const say = (step) => postMessage({ step });
  say("Loading Python…");
  const python = await loadPyodide({ env: { HANDGRAD_ENGINE: "reference", HOME: "/home/pyodide" } });
  say("Loading NumPy…");
  await python.loadPackage("numpy", { messageCallback: () => {} });
  say("Loading handgrad…");
  const [archive, ...code] = await Promise.all(
    ["packages.zip", "compiled.py", "session.py"].map((name) => load(new URL(name, folder))),
  );
  for (const [i, name] of ["compiled.py", "session.py"].entries()) python.FS.writeFile(name, new Uint8Array(code[i]));
  const compiled = python.pyimport("compiled");
  python.unpackArchive(archive, "zip", { extractDir: String(compiled.FOLDER) });
  const kept = new URL("compiled.zip", folder);
  const found = keeps ? await load(kept) : new ArrayBuffer(0);
  compiled.unpack(python.toPy(found).tobytes());
  session = python.pyimport("session");
  if (keeps && !found.byteLength) keep = () => fetch(kept, { method: "PUT", body: compiled.packed().toJs() });
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
