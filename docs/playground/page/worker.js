// Runs handgrad: Pyodide and session.py, one message at a time, away from the page so that a
// backward that never ends can be stopped.

let session;

async function start({ pyodide: base, packages, code }) {
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const say = (step) => postMessage({ step });
  say("Loading Python…");
  const python = await loadPyodide({ env: { HANDGRAD_ENGINE: "reference", HOME: "/home/pyodide" } });
  say("Loading NumPy…");
  await python.loadPackage("numpy", { messageCallback: () => {} });
  say("Loading handgrad…");
  const archive = await fetch(packages);
  if (!archive.ok) throw new Error(`${packages}: ${archive.status}`);
  python.unpackArchive(await archive.arrayBuffer(), "zip", {
    extractDir: python.runPython("import site; site.getsitepackages()[0]"),
  });
  python.FS.writeFile("session.py", await (await fetch(code)).text());
  session = python.pyimport("session");
  postMessage({ ready: true });
}

onmessage = async ({ data }) => {
  try {
    if (data.start) await start(data.start);
    else postMessage({ id: data.id, ...JSON.parse(session.answer(JSON.stringify(data))) });
  } catch (error) {
    postMessage({ id: data.id, error: String(error.message ?? error), failed: Boolean(data.start) });
  }
};
