// Simulate the experiment's design under assumed expected rewards, with progress.

import { at, call } from "./api.js";
import { armName, busy, colourClass, count, fill, h, named, number, percent, shorten } from "./dom.js";

export function showSimulations(main, { name, refused }) {
  let gone = false, stop = null;
  fill(main, h("p", { class: "dim" }, "Loading…"));
  call(at(name)).then((view) => {
    if (!gone) fill(main, page(view));
  }).catch((error) => (error.status === 401 ? refused(error) : fill(main, h("div", { class: "card error" }, h("p", {}, error.message)))));

  function page(view) {
    const arms = view.arms.filter((arm) => arm.active); // the active ones
    const weights = view.dimension !== null; // with contexts, an arm has a weight for each number of the context
    const truths = arms.map((arm, i) => weights ? h("input", { id: `truth-${i}`, required: true, autocomplete: "off", value: Array(view.dimension).fill(i / 2).join(", ") }) : h("input", { id: `truth-${i}`, type: "number", step: "any", required: true,
      ...(view.binary ? { min: 0, max: 1 } : {}), value: view.binary ? (0.3 + (0.3 * i) / Math.max(arms.length - 1, 1)).toFixed(2) : i }));
    const planned = /horizon=(\d+)/.exec(view.policy);
    const horizon = h("input", { id: "wi-horizon", type: "number", min: 1, max: 100000, value: view.participants ?? (planned ? planned[1] : 200), required: true });
    const delay = h("input", { id: "wi-delay", type: "number", min: 0, max: 100000, step: 1, value: 0, required: true });
    const dropout = h("input", { id: "wi-dropout", type: "number", min: 0, max: 1, step: "any", value: 0, required: true });
    const runs = h("input", { id: "wi-runs", type: "number", min: 20, max: 20000, value: 1000, required: true });
    const button = h("button", { class: "primary" }, "Simulate"), halt = h("button", { type: "button", hidden: true }, "Stop");
    const bar = h("progress", { max: 1, value: 0, hidden: true, "aria-label": "Progress" }), out = h("div", { "aria-live": "polite" });
    const field = (label, input) => h("div", { class: "field" }, h("label", { for: input.id }, label), input);

    async function play() {
      const parsed = (text) => text.split(",").map((part) => Number(part));
      if (weights && truths.some((input) => parsed(input.value).some((x) => !Number.isFinite(x)))) throw new Error(`Enter ${view.dimension} numbers for each arm, separated by commas.`);
      const body = { truth: truths.map((input) => (weights ? parsed(input.value) : +input.value)), horizon: +horizon.value, realizations: +runs.value, delay: +delay.value, dropout: +dropout.value };
      let job = await call(`${at(name)}/what-if`, { method: "POST", body });
      const where = `${at(name)}/what-if/${job.id}`;
      stop = () => call(where, { method: "DELETE" }).catch(() => {});
      bar.hidden = halt.hidden = false;
      while (!gone && ["waiting", "running"].includes(job.status)) {
        bar.value = job.progress;
        fill(out, results(job, arms));
        await new Promise((done) => setTimeout(done, 300));
        job = await call(where);
      }
      bar.value = job.progress;
      bar.hidden = halt.hidden = true;
      stop = null;
      if (!gone) fill(out, results(job, arms));
    }
    halt.addEventListener("click", () => stop?.());
    const form = h("form", { class: "card" }, h("p", {}, weights ? "Enter assumed weights for each arm, one for each number of a context; contexts are drawn from a standard normal law." : "Enter an assumed expected reward for each arm.", " The stored design is simulated many times: ",
      "how often it finds the best arm, how it ends, its regret, and the share of each arm. Limits on shares and looks are those of the experiment, over the arms that are active now. Delay is after how many further decisions an outcome is known, dropout the share of outcomes that are never known. The experiment does not change."),
    h("div", { class: "fields" }, arms.map((arm, i) => field(shorten(arm.name, 40), truths[i])), field("Decisions per trial", horizon), field("Trials", runs),
      field("Delay", delay), field("Dropout", dropout)),
    h("div", { class: "row" }, button, halt, bar));
    form.addEventListener("submit", busy(button, play));
    return [h("div", { class: "row between" }, h("h1", {}, "Simulation of ", named(name)), h("a", { class: "button", href: `#/e/${encodeURIComponent(name)}` }, "Back")), form, out];
  }
  return () => { gone = true; stop?.(); };
}

const ENDS = { superiority: "ends with superiority", equivalence: "ends with equivalence", futility: "ends with futility", maximum: "reaches the last decision" };
const pm = (x, show) => `${show(x.value)} ± ${show(x.error)}`;

function results(job, arms) {
  if (job.status === "failed") return h("p", { class: "card error", role: "alert" }, job.detail);
  if (!job.result) return h("p", { class: "card dim" }, job.status === "waiting" ? "Waiting in the queue…" : "Starting; the first simulation compiles for a while…");
  const r = job.result, one = (x) => number(x, 1), fact = (label, value, id) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", { id }, value));
  const words = { done: "", stopped: " Stopped early.", running: " Still playing…" }[job.status] ?? "";
  return h("div", { class: "card" }, h("h2", {}, "Operating characteristics"), h("dl", { class: "facts" },
    fact("the best arm wins", r.best_arm_wins ? pm(r.best_arm_wins, (x) => percent(x)) : Array.isArray(job.truth[0]) ? "depends on the context" : "all are equal", "wins"), r.failures && fact("failures per trial", pm(r.failures, one)),
    r.failures_of_equal_allocation !== null && fact("with equal allocation", one(r.failures_of_equal_allocation)), fact("regret", pm(r.regret, one)),
    r.size && fact("decisions per trial", pm(r.size, one), "size"), Object.entries(r.ends ?? {}).filter(([, end]) => end.value > 0).map(([how, end]) => fact(ENDS[how], pm(end, (x) => percent(x)), `ends-${how}`))),
  h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Arm", "Assumed", ...(r.selected ? ["Selected"] : []), "Share of the decisions"].map((n) => h("th", { scope: "col", class: n === "Assumed" || n === "Selected" ? "num" : null }, n)))),
    h("tbody", {}, r.shares.map((share, i) => h("tr", {}, h("th", { scope: "row" }, armName(arms[i].arm, arms[i].name)), h("td", { class: "num" }, Array.isArray(job.truth[i]) ? job.truth[i].map((x) => number(x, 2)).join(", ") : number(job.truth[i])), r.selected && h("td", { class: "num" }, percent(r.selected[i].value)),
      h("td", {}, h("span", { class: "value" }, pm(share, (x) => percent(x))), h("span", { class: "bar", "aria-hidden": "true" }, h("span", { class: colourClass(arms[i].arm), style: { width: `${100 * share.value}%` } })))))))),
  h("p", { class: "dim" }, `${count(r.realizations)} trials of ${r.ends ? "at most " : ""}${count(r.horizon)} decisions; ± is one Monte Carlo standard error. "Wins": the arm that is selected at the end is the best one.${words}`));
}
