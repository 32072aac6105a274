// Starts a Python once more, on the side, and keeps its memory for the next visit, which begins with it.

onmessage = async ({ data: { pyodide: base, env, modules, address } }) => {
  try {
    const { loadPyodide } = await import(`${base}pyodide.mjs`);
    const python = await loadPyodide({ env, _makeSnapshot: true });
    for (const name of modules) python.pyimport(name).destroy();
    await fetch(address, { method: "PUT", body: python.makeMemorySnapshot() });
  } finally {
    close();
  }
};
