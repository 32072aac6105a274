// Keeps the page and Pyodide, so that a second visit needs no network. `build.py` writes BUILT above
// this: the version of the page, its files, and where Pyodide is.

const OWN = `handgrad-${BUILT.version}`;
const PYODIDE = `pyodide-${BUILT.pyodide}`;
// On no server: what the worker has compiled, which it puts here and asks for on the next visit.
const COMPILED = new URL("compiled.zip", registration.scope).href;

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
  if (request.url === COMPILED) event.respondWith(compiled(request));
  if (request.url === COMPILED || request.method !== "GET") return;
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

async function compiled(request) {
  const cache = await caches.open(OWN);
  if (request.method === "GET") return (await cache.match(COMPILED)) ?? new Response();
  await cache.put(COMPILED, new Response(await request.arrayBuffer()));
  return new Response();
}
