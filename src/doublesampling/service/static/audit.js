// The audit trail of an experiment: every stored row in order, with actor, time and reason.

import { at, call, download } from "./api.js";
import { busy, clock, count, fill, h, named, reward, toast } from "./dom.js";

const PAGE = 100;

export function showAudit(main, { me, name, refused }) {
  const body = h("tbody"), more = h("button", { hidden: true }, "More"), note = h("p", { class: "dim" });
  const heads = ["When", "Who", "What", "Unit", "Arm", "Value", "Before", "Reason"];
  let following = null, shown = 0;

  const what = (e) => e.kind.replaceAll("_", " ") + (e.revision > 1 && e.decision ? ` (revision ${e.revision})` : "");
  const row = (e) => h("tr", {}, [clock(e.at), e.actor, what(e), e.unit ?? (e.number ? `decision ${e.number}` : ""), e.arm_name ?? "", e.reward === null ? "" : reward(e.reward), e.previous === null ? "" : reward(e.previous), e.reason ?? ""]
    .map((cell, i) => h("td", { "data-label": heads[i] }, named(`${cell}`))));

  async function load(after) {
    const page = await call(`${at(name)}/audit?limit=${PAGE}${after === null ? "" : `&after=${encodeURIComponent(after)}`}`);
    body.append(...page.entries.map(row));
    shown += page.entries.length;
    following = page.following;
    more.hidden = following === null;
    note.textContent = `${count(shown)} entries${following === null ? "" : ", and more"}, oldest first.`;
  }
  more.addEventListener("click", busy(more, () => load(following)));
  const link = (form) => h("a", { href: `${at(name)}/audit.${form}`, onclick: me.keyless ? undefined : (event) => {
    event.preventDefault();
    download(`${at(name)}/audit.${form}`, `${name}-audit.${form}`).catch((error) => toast(error.message, true));
  } }, form);
  fill(main, h("div", { class: "row between" }, h("h1", {}, "Audit trail of ", named(name)),
    h("span", { class: "row" }, h("span", { class: "exports" }, "Export ", link("csv"), " ", link("jsonl"), " ", link("parquet")), h("a", { class: "button", href: `#/e/${encodeURIComponent(name)}` }, "Back"))),
  h("section", { class: "card" }, note, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Audit trail" },
    h("table", { class: "stack audit" }, h("thead", {}, h("tr", {}, heads.map((n) => h("th", { scope: "col" }, n)))), body)), more));
  load(null).catch((error) => (error.status === 401 ? refused(error) : toast(error.message, true)));
  return () => {};
}
