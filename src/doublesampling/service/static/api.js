// HTTP requests to the service. The key is kept in sessionStorage, which is cleared when the tab is closed.

const PLACE = "doublesampling-key";
export const key = {
  get: () => sessionStorage.getItem(PLACE),
  set: (text) => sessionStorage.setItem(PLACE, text),
  clear: () => sessionStorage.removeItem(PLACE),
};

export class Refused extends Error {
  constructor(problem, status) {
    super(problem.detail || `The server answered ${status}.`);
    this.code = problem.code || "internal";
    this.errors = problem.errors ?? []; // where and what, for each field that does not fit
    this.status = status;
  }
}

export const at = (name) => `/v1/experiments/${encodeURIComponent(name)}`;
export const decisionAt = (name, id) => `${at(name)}/decisions/${encodeURIComponent(id)}`;

export async function call(path, { method = "GET", body, headers = {}, raw = false, signal } = {}) {
  const given = { ...headers };
  if (key.get()) given.Authorization = `Bearer ${key.get()}`;
  if (body !== undefined) given["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, {
      method, headers: given, cache: "no-store", signal, body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused({ detail: "The server cannot be reached. It will be tried again.", code: "offline" }, 0);
  }
  if (answer.status === 304) return raw ? answer : null;
  if (!answer.ok) throw new Refused(await answer.json().catch(() => ({})), answer.status);
  return raw ? answer : answer.json();
}

// Poll a resource: null where the response has not changed, or where a later request was answered before this one.
export class Watched {
  constructor() { this.path = null; this.tag = null; this.version = null; this.asked = 0; this.answered = 0; }

  // fresh: this page has just written and wants to see the result
  async look(path, fresh = false) {
    const same = path === this.path && this.tag;
    const headers = { ...(same ? { "If-None-Match": this.tag } : {}), ...(fresh ? { "Cache-Control": "no-cache" } : {}) };
    const turn = ++this.asked;
    const answer = await call(path, { raw: true, headers });
    const found = answer.status === 304 ? null : await answer.json();
    if (turn < this.answered) return null;
    this.answered = turn;
    this.version = answer.headers.get("doublesampling-version"); // the version of the experiment it was computed from
    if (found) [this.path, this.tag] = [path, answer.headers.get("etag")];
    return found;
  }
}

// Download a file with the key in a header, which a plain link cannot send.
export async function download(path, filename) {
  const answer = await call(path, { raw: true });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
