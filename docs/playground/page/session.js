// The page's end of the worker: the newest question waits, those before it are dropped.

export class Session {
  // heard: called with every answer and with each step of loading.
  constructor(settings, heard) {
    this.settings = settings;
    this.heard = heard;
    this.open();
  }

  open() {
    this.worker?.terminate();
    this.ready = false;
    this.running = null;
    this.worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    this.worker.onmessage = ({ data }) => this.receive(data);
    this.worker.onerror = (event) => this.heard({ failed: true, error: event.message });
    this.worker.postMessage({
      start: {
        pyodide: new URL(this.settings.pyodide, document.baseURI).href,
        folder: new URL(".", import.meta.url).href,
        keeps: Boolean(navigator.serviceWorker?.controller),
      },
    });
  }

  ask(question) {
    this.waiting = question;
    this.next();
  }

  // A new worker, because the old one does not hear while it runs.
  stop() {
    this.waiting = null;
    this.open();
  }

  next() {
    if (!this.ready || this.running || !this.waiting) return;
    this.running = this.waiting;
    this.waiting = null;
    this.heard({ started: true });
    this.worker.postMessage(this.running);
  }

  receive(data) {
    if (data.ready) this.ready = true;
    const outdated = Boolean(this.running && this.waiting);
    if (this.running && data.id === this.running.id) this.running = null;
    this.heard({ ...data, outdated });
    this.next();
  }
}
