// Routing: which page the address names, and the form for a key.

import { call, key } from "./api.js";
import { showAudit } from "./audit.js";
import { showCreate } from "./create.js";
import { fill, h } from "./dom.js";
import { showExperiment } from "./experiment.js";
import { showList } from "./list.js";
import { showSimulations } from "./simulations.js";
import { showWriter } from "./writer.js";

const main = document.getElementById("main");
let leave = null;
let me = null;

async function show() {
  leave?.();
  leave = null;
  try {
    me = await call("/v1/me");
  } catch (error) {
    if (error.status === 401) return askForKey(error);
    return fill(main, h("div", { class: "card error" }, h("h1", {}, "Not reachable"), h("p", {}, error.message),
      h("button", { onclick: show }, "Try again")));
  }
  me.can = (scope) => me.scopes.includes(scope);
  header();
  const [, page, name, below] = location.hash.split("/").map(decodeURIComponent);
  const reads = me.can("read");
  const enter = page === "new" ? showCreate : page === "e" && below === "what-if" && reads ? showSimulations
    : page === "e" && below === "audit" && reads ? showAudit : page === "e" ? (reads ? showExperiment : showWriter) : showList;
  document.title = name ? `${name} · doublesampling` : "doublesampling";
  leave = enter(main, { me, name, refused: askForKey });
}

function header() {
  const admin = me.can("admin") && me.experiment === null;
  fill(document.getElementById("nav"), h("a", { href: "#/" }, "Experiments"), admin && h("a", { href: "#/new" }, "New"));
  const who = me.role === "custom" ? `key: ${me.scopes.join(", ")}` : `${me.role} key`;
  fill(document.getElementById("who"), me.keyless ? "this machine only, no keys" : who,
    !me.keyless && h("button", { class: "link", onclick: () => { key.clear(); show(); } }, "Sign out"));
}

function askForKey(error) {
  leave?.();
  leave = null;
  const input = h("input", { id: "key", type: "password", autocomplete: "off", required: true, spellcheck: "false" });
  const wrong = key.get() ? error.message : null;
  fill(main, h("form", {
    class: "card narrow",
    onsubmit: (event) => { event.preventDefault(); key.set(input.value.trim()); show(); },
  },
  h("h1", {}, "A key is needed"),
  wrong && h("p", { class: "error", role: "alert" }, wrong),
  h("label", { for: "key" }, "Key"), input,
  h("p", { class: "dim" }, "It is kept in this tab only. An administrator creates one with ",
    h("code", {}, "doublesampling key create"), "."),
  h("button", { class: "primary" }, "Open")));
  key.clear();
  input.focus();
}

window.addEventListener("hashchange", () => { if (location.hash !== "#main") show().then(() => main.focus()); });
show();
