// Keeps the page and Pyodide, so that a second visit needs no network. `build.py` writes BUILT above
// this: the version of the page, its files, and where Pyodide is.

const OWN = `handgrad-${BUILT.version}`;
const PYODIDE = `pyodide-${BUILT.pyodide}`;
// On no server: what the workers have made, which they put here and ask for on the next visit.
const MADE = ["compiled.zip", "memory.bin"].map((name) => new URL(name, registration.scope).href);

addEventListener("install", (event) => {
  event.waitUntil(caches.open(OWN).then((cache) => cache.addAll(BUILT.files)));
  skipWaiting();
});

addEventListener("activate", (event) => event.waitUntil(Promise.all([forget(), clients.claim()])));

async function forget() {
  const names = await caches.keys();
  await Promise.all(names.filter((name) => ![OWN, PYODIDE].includes(name)).map((name) => caches.delete(name)));
}

addEventListener("fetch", (event) => {
  const { request } = event;
  if (MADE.includes(request.url)) return event.respondWith(made(request));
  if (request.method !== "GET") return;
  const isPyodide = request.url.startsWith(new URL(BUILT.pyodide, registration.scope).href);
  if (isPyodide || request.url.startsWith(registration.scope)) event.respondWith(kept(request, isPyodide));
});

async function kept(request, isPyodide) {
  const found = await caches.match(request, { ignoreSearch: true });
  if (found) return found;
  const answer = await fetch(request);
  if (isPyodide && answer.ok) await (await caches.open(PYODIDE)).put(request, answer.clone());
  return answer;
}

async function made(request) {
  const cache = await caches.open(OWN);
  if (request.method === "GET") return (await cache.match(request.url)) ?? new Response();
  await cache.put(request.url, new Response(await request.arrayBuffer()));
  return new Response();
}
