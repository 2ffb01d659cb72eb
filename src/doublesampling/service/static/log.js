// The log of decisions, newest first, in pages; explanations; and corrections.

import { Watched, at, call, decisionAt } from "./api.js";
import { armName, busy, clock, count, duration, fill, h, number, percent, reward, shorten, whom } from "./dom.js";
import { correctButton } from "./tell.js";

const PAGE = 20, TOP = "4611686018427387903", MANY = 10;

export function logCard(state) {
  const body = h("tbody"), older = h("button", {}, "Older"), newest = h("button", {}, "Newest"), fresh = h("button", { class: "link", hidden: true }, "Newer decisions: show");
  const dialog = h("dialog", { "aria-label": "Why this arm" });
  const heads = [["#", 1], ["Unit"], ["Asked"], ["Arm"], ["Propensity", 1], ["N", 1], ["Outcome"], [""]];
  const table = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Decisions" }, h("table", { class: "log" },
    h("thead", {}, h("tr", {}, heads.map(([name, right]) => h("th", { scope: "col", class: right ? "num" : null }, name || h("span", { class: "hidden" }, "Actions"))))), body));
  const element = h("section", { class: "card", "aria-label": "Log" }, h("div", { class: "row between" }, h("h2", {}, "Log"),
    h("a", { href: `#/e/${encodeURIComponent(state.name)}/audit` }, "Audit trail")), fresh, table, h("div", { class: "row" }, newest, older), dialog);
  const watched = new Watched();
  let from = TOP, following = null, top = null;
  let owed = null; // the decision that was corrected here, until the table shows it: a busy server may answer from before

  function row(d) {
    const why = h("button", { class: "link", "aria-label": `Why this arm for decision ${d.number}` }, "why?");
    why.addEventListener("click", busy(why, () => explain(d.id)));
    const shown = d.reward === null ? h("span", { class: "dim" }, d.status)
      : h("span", {}, reward(d.reward), d.status !== "told" && h("span", { class: "badge" }, d.status));
    const mend = state.me.can("amend") && d.status !== "voided" && correctButton(state, d, d.reward, async () => { owed = d; await load(true); await state.refresh(); }, d.reward === null ? "void" : "correct");
    return h("tr", { class: d.status === "voided" ? "dropped" : null }, h("td", { class: "num" }, count(d.number)), h("td", { class: "unit", title: d.unit }, d.unit ?? "–"), h("td", { class: "dim when" }, clock(d.asked_at)),
      h("td", { class: "arm" }, armName(d.arm, d.arm_name)), h("td", { class: "num" }, percent(d.propensity)), h("td", { class: "num" }, count(d.candidates)),
      h("td", {}, shown), h("td", {}, why, " ", mend));
  }

  async function load(now = false) {
    const page = await watched.look(`${at(state.name)}/decisions?limit=${PAGE}&before=${from}`, now);
    if (page === null) return watched.version;
    const shown = page.decisions.find((each) => each.id === owed?.id);
    if (!shown || shown.status !== owed.status || shown.reward !== owed.reward) owed = null;
    following = page.following;
    fill(body, page.decisions.length ? page.decisions.map(row)
      : h("tr", {}, h("td", { colspan: heads.length, class: "dim" }, "No decisions yet.")));
    if (from === TOP) top = state.view?.results?.decisions ?? null;
    older.disabled = following === null;
    newest.disabled = from === TOP;
    fresh.hidden = true;
    return watched.version;
  }

  // The table does not change while it is used, except for its first page (the pointer may rest on the empty table) and
  // what was corrected in it.
  const inUse = () => table.matches(":hover") || table.contains(document.activeElement) || dialog.open;
  const update = async (now) => {
    if (owed || (from === TOP && (top === null || !inUse()))) return load(now);
    fresh.hidden = top === null || state.view.results.decisions <= top;
    return null;
  };

  async function explain(id) {
    const found = await call(decisionAt(state.name, id));
    const close = h("button", { onclick: () => dialog.close() }, "Close");
    fill(dialog, ...explanation(found), h("div", { class: "row" }, close));
    dialog.showModal();
    close.focus({ preventScroll: true }); // the explanation starts at the top
    dialog.scrollTop = 0;
  }

  older.addEventListener("click", busy(older, async () => { from = following; await load(); }));
  newest.addEventListener("click", busy(newest, async () => { from = TOP; await load(); }));
  fresh.addEventListener("click", busy(fresh, async () => { from = TOP; await load(); }));
  return { element, update, settle: async () => { if (owed) await load(); } };
}

function explanation(found) {
  const d = found.decision, told = found.outcome;
  const heads = ["Arm", "Outcomes then", "Posterior mean", "sd", "P(best)", "Votes", "Propensity"];
  const took = told && duration((new Date(told.told_at) - new Date(d.asked_at)) / 1000);
  const every = found.arms.map((arm, i) => ({ ...arm, i }));
  const shown = every.length <= MANY ? every : [...every].sort((a, b) => (b.i === d.arm) - (a.i === d.arm) || b.probability_optimal - a.probability_optimal).slice(0, MANY).sort((a, b) => a.i - b.i);
  const outcome = !told ? "No outcome yet." : told.reward === null ? `The outcome was ${told.kind}${told.reason ? `: ${told.reason}` : ""}.` : `Outcome: ${told.reward} (${told.kind}), after ${took}.`;
  return [
    h("h2", {}, `Why ${shorten(d.arm_name, 60)} for ${shorten(whom(d), 60)}?`),
    h("p", { class: "why" }, found.why),
    h("div", { class: "scroll" }, h("table", { class: "stack" }, h("thead", {}, h("tr", {}, heads.map((name, i) => h("th", { scope: "col", class: i ? "num" : null }, name)))),
      h("tbody", {}, shown.map((arm) => h("tr", { class: arm.i === d.arm ? "chosen" : null }, h("th", { scope: "row" }, armName(arm.i, arm.name, arm.i === d.arm && h("span", { class: "badge" }, "chosen"))),
        ...[count(arm.observations), number(arm.mean), number(arm.sd), percent(arm.probability_optimal), count(arm.votes), percent(arm.propensity)]
          .map((cell, i) => h("td", { class: "num", "data-label": heads[i + 1] }, cell))))))),
    shown.length < every.length && h("p", { class: "dim" }, `The ${shown.length} likeliest of ${every.length} arms.`),
    h("p", { class: "dim" }, `Asked ${clock(d.asked_at)} by ${d.actor}. Known then: ${count(d.observations)} outcomes; ${count(found.unknown_then)} came later. ${outcome}`, d.voided && " The decision was voided."),
    h("p", { class: found.verified ? "good" : "error" }, found.verified
      ? "✓ Recomputed from the log, the statistics agree with the stored digest." : "✗ Recomputed from the log, the statistics DO NOT agree with the stored digest."),
    h("p", { class: "dim" }, h("code", {}, `${found.policy} on ${found.belief}, id ${d.id}`)),
  ];
}
