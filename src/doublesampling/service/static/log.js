// The log, newest first, a page at a time; and why each arm was chosen.

import { at, call } from "./api.js";
import { busy, clock, count, duration, fill, h, number, percent, swatch } from "./dom.js";

const PAGE = 20, TOP = "4611686018427387903";

export function logCard(state) {
  const body = h("tbody"), older = h("button", {}, "Older"), newest = h("button", {}, "Newest");
  const dialog = h("dialog", { "aria-label": "Why this arm" });
  const heads = [["#", 1], ["Unit"], ["Asked"], ["Arm"], ["Propensity", 1], ["N", 1], ["Outcome"], [""]];
  const element = h("section", { class: "card", "aria-label": "Log" }, h("h2", {}, "Log"),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions" }, h("table", { class: "log" },
      h("thead", {}, h("tr", {}, heads.map(([name, right]) => h("th", { scope: "col", class: right ? "num" : null }, name || h("span", { class: "hidden" }, "Why"))))), body)),
    h("div", { class: "row" }, newest, older), dialog);
  let from = TOP, following = null;

  function row(d) {
    const why = h("button", { class: "link", "aria-label": `Why this arm for decision ${d.number}` }, "why?");
    why.addEventListener("click", busy(why, () => explain(d.id)));
    const reward = d.reward === null ? h("span", { class: "dim" }, "waiting")
      : h("span", {}, number(d.reward, Number.isInteger(d.reward) ? 0 : 3), d.status !== "told" && h("span", { class: "badge" }, d.status));
    return h("tr", {}, h("td", { class: "num" }, count(d.number)), h("td", { class: "unit", title: d.unit }, d.unit ?? "–"), h("td", { class: "dim when" }, clock(d.asked_at)),
      h("td", {}, swatch(d.arm), d.arm_name), h("td", { class: "num" }, percent(d.propensity)), h("td", { class: "num" }, count(d.candidates)),
      h("td", {}, reward), h("td", {}, why));
  }

  async function load() {
    const page = await call(`${at(state.name)}/decisions?limit=${PAGE}&before=${from}`);
    following = page.following;
    fill(body, page.decisions.length ? page.decisions.map(row)
      : h("tr", {}, h("td", { colspan: heads.length, class: "dim" }, "No decisions yet.")));
    older.disabled = following === null;
    newest.disabled = from === TOP;
  }

  async function explain(id) {
    const found = await call(`${at(state.name)}/decisions/${encodeURIComponent(id)}`);
    const close = h("button", { onclick: () => dialog.close() }, "Close");
    fill(dialog, ...explanation(found), h("div", { class: "row" }, close));
    dialog.showModal();
    close.focus();
  }

  older.addEventListener("click", busy(older, async () => { from = following; await load(); }));
  newest.addEventListener("click", busy(newest, async () => { from = TOP; await load(); }));
  return { element, update: () => (from === TOP ? load() : null) };
}

function explanation(found) {
  const d = found.decision, told = found.outcome;
  const heads = ["Arm", "n then", "Posterior mean", "sd", "P(best)", "Votes", "Propensity"];
  const took = told && duration((new Date(told.told_at) - new Date(d.asked_at)) / 1000);
  return [
    h("h2", {}, `Why ${d.arm_name} for ${d.unit ?? `decision ${d.number}`}?`),
    h("p", { class: "why" }, found.why),
    h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((name, i) => h("th", { scope: "col", class: i ? "num" : null }, name)))),
      h("tbody", {}, found.arms.map((arm, i) => h("tr", { class: i === d.arm ? "chosen" : null }, h("th", { scope: "row" }, swatch(i), arm.name),
        ...[count(arm.observations), number(arm.mean), number(arm.sd), percent(arm.probability_optimal), count(arm.votes), percent(arm.propensity)]
          .map((cell) => h("td", { class: "num" }, cell))))))),
    h("p", { class: "dim" }, `Asked ${clock(d.asked_at)} by ${d.actor}. Known then: ${count(d.observations)} outcomes; ${count(found.unknown_then)} came later. `
      + (told ? `Outcome: ${told.reward} (${told.kind}), after ${took}.` : "No outcome yet.")),
    h("p", { class: found.verified ? "good" : "error" }, found.verified
      ? "✓ Recomputed from the log, the statistics agree with the stored digest." : "✗ Recomputed from the log, the statistics DO NOT agree with the stored digest."),
    h("p", { class: "dim" }, h("code", {}, `${found.policy} on ${found.belief}, id ${d.id}`)),
  ];
}
