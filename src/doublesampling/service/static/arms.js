// The result: the leading arm, a table of all arms with counts, posterior and difference, and the next allocation.

import { armName, colourClass, count, fill, h, number, percent, shorten, signed, swatch } from "./dom.js";
import { recordInputs } from "./fields.js";

const MANY = 12; // arms that are shown before the others are collapsed
const BEST = "best";

const bar = (share, arm) => h("span", { class: "bar", "aria-hidden": "true" },
  h("span", { class: colourClass(arm), style: { width: `${100 * (share ?? 0)}%` } }));

// All intervals of a column share one scale, so that they can be compared.
function scale(pairs) {
  const ends = pairs.flat().filter((v) => v !== null && v !== undefined);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const place = (v) => (high > low ? (100 * (v - low)) / (high - low) : 50);
  return Object.assign(place, { low, high });
}

function interval(low, mean, high, arm, place, zero = false) {
  if (low === null || high === null || low === undefined) return h("span", { class: "interval" });
  return h("span", { class: "interval", "aria-hidden": "true" },
    zero && place.low < 0 && place.high > 0 && h("span", { class: "zero", style: { left: `${place(0)}%` } }),
    h("span", { class: `reach ${colourClass(arm)}`, style: { left: `${place(low)}%`, width: `${Math.max(place(high) - place(low), 0.5)}%` } }),
    mean !== null && h("span", { class: `dot ${colourClass(arm)}`, style: { left: `${place(mean)}%` } }));
}

// Successes of n where rewards are 0 or 1, the mean of n otherwise.
function observed(arm, binary) {
  if (arm.outcomes === null) return "counting…";
  const past = arm.history ? h("span", { class: "dim" }, ` +${count(arm.history)} before`) : null;
  if (binary) return [h("strong", {}, `${count(arm.total)} / ${count(arm.outcomes)}`), past];
  return [h("strong", {}, arm.outcomes ? number(arm.total / arm.outcomes) : "–"), h("span", { class: "dim" }, ` of ${count(arm.outcomes)}`), past];
}

function difference(arm, place, names, best) {
  const d = arm.difference;
  if (!d) return h("span", { class: "dim" }, "reference");
  return [h("span", { class: "mean" }, signed(d.mean)), h("span", { class: "dim range" }, `${signed(d.low)} to ${signed(d.high)}`),
    interval(d.low, d.mean, d.high, arm.arm, place, true), h("span", { class: "dim small" }, `better${best ? ` than ${shorten(names[d.reference], 18)}` : ""} with probability ${percent(d.probability_better, 0)}`)];
}

export function armsTable(overview, folded, unfold) {
  const { arms, experiment } = overview, active = arms.filter((arm) => arm.active), names = arms.map((arm) => arm.name);
  const means = scale(active.map((arm) => [arm.low, arm.high])), apart = scale(active.map((arm) => [arm.difference?.low, arm.difference?.high]));
  const heads = [["Arm", ""], [experiment.binary ? "Successes / n" : "Mean of n", "outcomes of this experiment"], ["Assigned", "decisions for this arm"],
    ["Waiting", "decisions without an outcome"], ["Share", "of all decisions"], ["Posterior mean", "and its central 95 % credible interval"],
    ["Difference", "of expected rewards: posterior mean and central 95 % credible interval"], ["P(best)", "probability that its expected reward is the highest"],
    ["Next allocation", "probability that the next unit gets it"]];
  const right = [1, 2, 3, 4];
  const row = (arm) => h("tr", { class: arm.active ? null : "dropped", "data-arm": arm.name },
    h("th", { scope: "row" }, armName(arm.arm, arm.name, arm.code && h("span", { class: "badge", title: "what blind keys see" }, arm.code), arm.active ? null : h("span", { class: "dim" }, " dropped"))),
    [observed(arm, experiment.binary), count(arm.assigned), [count(arm.waiting), arm.voided > 0 && h("span", { class: "dim", title: "voided: not carried out" }, ` (${arm.voided} voided)`)], percent(arm.share),
      [h("span", { class: "mean" }, number(arm.posterior_mean)), h("span", { class: "dim range" }, `${number(arm.low)} to ${number(arm.high)}`), arm.active && interval(arm.low, arm.posterior_mean, arm.high, arm.arm, means)],
      difference(arm, apart, names, overview.reference === BEST),
      [h("span", { class: "value" }, percent(arm.probability_optimal)), bar(arm.probability_optimal, arm.arm)],
      [h("span", { class: "value" }, percent(arm.next_allocation)), bar(arm.next_allocation, arm.arm)],
    ].map((cell, i) => h("td", { class: right.includes(i + 1) ? "num" : "wide", "data-label": heads[i + 1][0] }, right.includes(i + 1) ? h("span", {}, cell) : cell)));
  const ranked = [...arms].sort((a, b) => b.probability_optimal - a.probability_optimal || a.arm - b.arm);
  const kept = folded && arms.length > MANY ? new Set(ranked.slice(0, MANY - 2).map((arm) => arm.arm)) : null;
  if (kept && overview.reference !== BEST) kept.add(names.indexOf(overview.reference));
  const shown = kept ? arms.filter((arm) => kept.has(arm.arm)) : arms;
  return [h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Arms" }, h("table", { class: "arms stack" },
    h("thead", {}, h("tr", {}, heads.map(([name, about], i) => h("th", { scope: "col", class: right.includes(i) ? "num" : null, title: about || null }, name)))),
    h("tbody", {}, shown.map(row)))),
  arms.length > MANY && h("button", { class: "link", onclick: unfold }, kept ? `Show all ${arms.length} arms (these are the ${MANY - 2} most probably best, and the reference)` : "Show fewer arms")];
}

// One or two sentences, before any table.
export function answer(overview) {
  const { arms, experiment } = overview, active = arms.filter((arm) => arm.active);
  const known = arms.reduce((sum, arm) => sum + arm.observations, 0);
  if (!known) return h("p", { class: "answer-first" }, "No outcomes yet: the posterior of every arm is the prior.");
  const [first, second] = [...active].sort((a, b) => b.probability_optimal - a.probability_optimal);
  const facts = (arm) => (arm.outcomes === null ? "" : experiment.binary ? `, ${count(arm.total)} successes in ${count(arm.outcomes)}` : `, mean ${arm.outcomes ? number(arm.total / arm.outcomes) : "–"} of ${count(arm.outcomes)}`);
  if (!second) return h("p", { class: "answer-first" }, h("strong", {}, swatch(first.arm), shorten(first.name, 60)), " is the only arm that is left", facts(first), ".");
  const d = first.difference;
  const against = d && h("span", {}, ` Difference to ${shorten(arms[d.reference].name)}: ${signed(d.mean)} (95 % credible interval ${signed(d.low)} to ${signed(d.high)}).`);
  return h("p", { class: "answer-first" }, overview.context && "At the context below, ", h("strong", {}, swatch(first.arm), shorten(first.name, 60)), ` is most probably the best: ${percent(first.probability_optimal)}`, facts(first),
    "; next ", h("strong", {}, swatch(second.arm), shorten(second.name, 40)), `: ${percent(second.probability_optimal)}`, facts(second), ".", against);
}

export function progress(overview) {
  const made = overview.experiment.results.decisions, planned = overview.horizon;
  if (!planned) return null;
  return h("div", { class: "row progress-row" }, h("progress", { max: planned, value: Math.min(made, planned), "aria-label": "Progress towards the planned number of decisions" }),
    h("span", {}, `${count(made)} of ${count(planned)} planned decisions (${percent(made / planned, 0)})`));
}

// The gauge uses the probability of each arm to be chosen next; N alone says little.
export function gauge(overview) {
  const { mood, candidates, arms } = overview;
  const favourite = mood.arm === null ? null : shorten(arms[mood.arm].name);
  const text = {
    exploring: `no arm is clearly favoured: the likeliest one is chosen with probability ${percent(mood.probability, 0)}`,
    leaning: `the next unit gets ${favourite} with probability ${percent(mood.probability, 0)}`,
    exploiting: `the next unit gets ${favourite} with probability ${percent(mood.probability, mood.probability > 0.99 ? 1 : 0)}`,
    unknown: "this policy does not report the probability of its next arm",
  }[mood.word];
  const word = mood.word === "unknown" ? "Next decision" : mood.word;
  return h("div", { class: "gauge", "data-mood": mood.word }, h("span", {}, h("strong", {}, word), `: ${text}.`),
    h("span", { class: "bar long split", role: "img", "aria-label": `next allocation: ${word}` }, arms.filter((arm) => arm.next_allocation > 0.002).map((arm) =>
      h("span", { class: colourClass(arm.arm), title: `${shorten(arm.name)} ${percent(arm.next_allocation)}`, style: { width: `${100 * arm.next_allocation}%` } }))),
    h("span", { class: "dim" }, `N = ${count(candidates)} candidate${candidates === 1 ? "" : "s"}`));
}

// The choices of the table: the reference arm and the context.
export class Choices {
  constructor(state, changed) {
    this.state = state;
    this.place = `doublesampling-reference ${state.name}`;
    this.reference = sessionStorage.getItem(this.place);
    this.context = null;
    this.select = h("select", { id: "reference" });
    this.inputs = h("span", { class: "contexts" });
    this.note = h("span", { class: "dim" });
    const apply = h("button", {}, "Show"), usual = h("button", { type: "button", class: "link" }, "default context");
    this.form = h("form", { class: "row", hidden: true }, h("span", { class: "label" }, "At the context"), this.inputs, apply, usual, this.note);
    this.element = h("div", { class: "choices row" }, h("label", { for: "reference" }, "Compared with"), this.select, this.form);
    this.select.addEventListener("change", () => { this.reference = this.select.value; sessionStorage.setItem(this.place, this.reference); changed(); });
    this.form.addEventListener("submit", (event) => { event.preventDefault(); this.context = this.read(); changed(); });
    usual.addEventListener("click", () => { this.context = null; this.filled = null; changed(); });
  }

  read() { return this.record ? this.record.read() : [...this.inputs.querySelectorAll("input")].map((input) => Number(input.value)); }

  // The context as a query parameter: a record as JSON, or numbers separated by commas.
  get written() { return Array.isArray(this.context) ? this.context.join(",") : JSON.stringify(this.context); }

  get query() {
    const wish = new URLSearchParams();
    if (this.reference) wish.set("reference", this.reference);
    if (this.context) wish.set("context", this.written);
    return wish.size ? `?${wish}` : "";
  }

  get contextQuery() { return this.context ? `&context=${encodeURIComponent(this.written)}` : ""; }

  update(overview) {
    const names = overview.arms.map((arm) => arm.name), shape = names.join("\n");
    if (shape !== this.shape) {
      this.shape = shape;
      fill(this.select, names.map((name) => h("option", { value: name }, shorten(name, 40))), h("option", { value: BEST }, "the best of the others"));
    }
    this.select.value = overview.reference;
    this.form.hidden = !overview.context;
    if (!overview.context) return;
    const wanted = JSON.stringify(overview.context);
    if (this.filled !== wanted && !this.form.contains(document.activeElement)) {
      this.filled = wanted;
      this.record = overview.experiment.features && recordInputs(overview.experiment.features, "shown", overview.context);
      fill(this.inputs, this.record ? this.record.elements : overview.context.map((v, i) => h("input", { type: "number", step: "any", required: true, "aria-label": `Context ${i + 1}`, value: +v.toFixed(4) })));
    }
    this.note.textContent = { asked: "", recent: this.record ? "typical of the latest 100" : "the mean of the latest 100", ones: "there is no context yet", default: "there is no context yet" }[overview.context_source] ?? "";
  }
}
