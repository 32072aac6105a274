// Runs pytest in Pyodide, which has a newer Python than most machines:
// node tests/pyodide.mjs PYODIDE PACKAGES [ARGUMENTS OF PYTEST]
// PYODIDE is its folder with the wheel of NumPy, PACKAGES one with what `pip install --target` puts.

import { pathToFileURL } from "node:url";
import { resolve } from "node:path";

const [folder, packages, ...rest] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(resolve(folder, "pyodide.mjs")));
const python = await loadPyodide({
  env: { HANDGRAD_ENGINE: "reference", HOME: "/home/pyodide", PYTHONDONTWRITEBYTECODE: "1" },
});
await python.loadPackage("numpy", { messageCallback: () => {} });
python.mountNodeFS("/handgrad", process.cwd());
python.mountNodeFS("/packages", resolve(packages));
python.globals.set("rest", python.toPy(rest));
process.exit(
  python.runPython(`
import os, sys
sys.path[:0] = ["/handgrad/src", "/handgrad", "/packages"]
os.chdir("/handgrad")
import pytest
int(pytest.main([*rest, "-q", "-p", "no:cacheprovider", "-o", "timeout=0"]))
`),
);
