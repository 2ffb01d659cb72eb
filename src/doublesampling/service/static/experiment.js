// The page of one experiment, updated while it is open.

import { Watched, at, call, download } from "./api.js";
import { Choices, answer, armsTable, gauge, progress } from "./arms.js";
import { Chart } from "./charts.js";
import { askCard } from "./ask.js";
import { ask, busy, clock, count, field, fill, h, named, setColoured, toast } from "./dom.js";
import { healthCard } from "./health.js";
import { logCard } from "./log.js";
import { pendingCard } from "./pending.js";
import { allocationPlan, bestPlan, candidatesPlan, chooseArms, densityPlan, sequencePlan } from "./plans.js";

const PACE = 3000; // milliseconds between two polls
const OFTEN = 3, SPAN = 30000; // charts and lists are loaded at most OFTEN times within SPAN milliseconds

export function showExperiment(main, { me, name, refused }) {
  const state = { me, name, view: null, overview: null, posterior: null, series: null };
  const page = build(state);
  const watched = new Watched();
  let timer = null, gone = false, drawn = [], behind = true, looking = null;

  async function step(now) {
    const found = await watched.look(`${at(name)}/overview${page.choices.query}`, now);
    if (gone) return;
    if (found) {
      state.overview = found;
      state.view = found.experiment;
      page.show();
      behind = true;
    }
    drawn = drawn.filter((at) => at > Date.now() - SPAN);
    if (behind && (now || drawn.length < OFTEN)) { // the rest need not follow every outcome
      drawn.push(Date.now());
      behind = !await page.draw(now);
    } else await page.settle();
    page.live(true);
  }

  async function look(now = false) {
    try {
      await step(now);
    } catch (error) {
      if (gone) return;
      if (error.status === 401) { refused(error); return; }
      if (!state.view) { fill(main, failure(error)); if (error.status) return; }
      behind = true;
      page.live(false, error.message);
    }
    if (!gone && !document.hidden) timer = setTimeout(start, PACE);
  }
  const start = () => { clearTimeout(timer); looking = look(); return looking; };
  state.refresh = async () => { clearTimeout(timer); await looking; clearTimeout(timer); looking = look(true); await looking; };
  const wake = () => { if (!document.hidden && !gone) start(); }; // a hidden page sends no requests
  document.addEventListener("visibilitychange", wake);
  fill(main, page.element);
  looking = look();
  return () => { gone = true; clearTimeout(timer); document.removeEventListener("visibilitychange", wake); page.leave(); };
}

const failure = (error) => h("div", { class: "card error" }, h("h1", {}, "This experiment cannot be shown"),
  h("p", {}, error.message), h("a", { class: "button", href: "#/" }, "All experiments"));

function build(state) {
  const head = h("div", { class: "head" }), summary = h("div", {}, h("p", { class: "dim" }, "Loading…")), arms = h("div", {}), doubt = h("div", {});
  const live = h("span", { class: "live" }, "…"), by = { byDate: false };
  let folded = true;
  const choices = new Choices(state, () => state.refresh());
  const options = () => ({ ...by, contexts: !!state.view?.dimension });
  const charts = [
    new Chart("Probability of being the best", "The probability at each decision, from the first to the latest.", () => bestPlan(state.series, state.chosen, options())),
    new Chart("Allocation", "Share of each arm among the decisions made around that time.", () => allocationPlan(state.series, state.chosen, options())),
    new Chart("N, candidates drawn", "How many candidates a decision drew: 1 is Thompson sampling, many is close to greedy.", () => candidatesPlan(state.series, options())),
    new Chart("Posterior densities", "The current posterior of each arm's expected reward.", () => densityPlan(state.posterior, state.chosen)),
    new Chart("Difference, valid at any time", "An interval appears when each arm has enough outcomes.", () => sequencePlan(state.sequence, state.view.arms.map((arm) => arm.name))),
  ];
  const asking = state.me.can("ask") ? askCard(state) : null;
  const pending = pendingCard(state), log = logCard(state), health = healthCard(state, pending);
  const happened = h("div", {}), series = new Watched(), posterior = new Watched(), sequence = new Watched();
  const element = h("div", { class: "page" }, head,
    h("section", { class: "card", "aria-label": "Arms" }, summary, choices.element, arms, doubt),
    h("div", { class: "grid work" }, asking?.element, pending.element),
    chartChoices(by, charts), h("div", { class: "grid" }, charts.map((chart) => chart.element)), happened, log.element, health.element);
  let begun = false;

  function show() {
    if (state.chosen === undefined || (state.chosen === null && chooseArms(state.overview))) {
      state.chosen = chooseArms(state.overview);
      setColoured(state.chosen);
    }
    fill(head, headline(state, live));
    fill(summary, answer(state.overview), progress(state.overview));
    choices.update(state.overview);
    fill(arms, armsTable(state.overview, folded, () => { folded = !folded; show(); }));
    fill(doubt, state.view.status === "stopped" ? null : gauge(state.overview), looksTable(state.view));
    asking?.update();
  }
  async function drawSeries(fresh) {
    state.series = await series.look(`${at(state.name)}/series?points=300`, fresh) ?? state.series;
    charts.slice(0, 3).forEach((chart) => chart.draw());
    fill(happened, happenings(state.series));
    return series.version;
  }
  async function drawDensities(fresh) {
    state.posterior = await posterior.look(`${at(state.name)}/posterior?density=120${choices.contextQuery}`, fresh) ?? state.posterior;
    charts[3].draw();
    return posterior.version;
  }
  // The arm that is most probably the best, or the next one, compared with the reference of the table.
  function compared() {
    const ranked = state.overview.arms.filter((arm) => arm.active).sort((a, b) => b.probability_optimal - a.probability_optimal || a.arm - b.arm);
    const named = state.overview.arms.find((arm) => arm.name === state.overview.reference) ?? ranked[1] ?? ranked[0];
    return `arm=${(ranked.find((arm) => arm.arm !== named.arm) ?? named).arm}&reference=${named.arm}`;
  }
  async function drawSequence(fresh) {
    state.sequence = await sequence.look(`${at(state.name)}/sequence?${compared()}`, fresh) ?? state.sequence;
    charts[4].draw();
    return sequence.version;
  }
  // Whether all responses are as new as the overview; under load some are older and are requested again.
  async function draw(fresh) {
    const versions = await Promise.all([drawSeries(fresh), drawDensities(fresh), drawSequence(fresh), begun ? pending.update(fresh) : pending.begin(), log.update(fresh), health.update()]);
    begun = true;
    return versions.every((version) => !version || version === state.view.results.version);
  }
  // What cannot wait until everything is drawn again.
  async function settle() {
    if (state.series && !state.series.complete) await drawSeries(false);
    await log.settle();
  }
  return {
    element, choices, show, draw, settle,
    live: (up, why) => { live.className = up ? "live up" : "live"; live.textContent = up ? "live" : why; },
    leave: () => { charts.forEach((chart) => chart.leave()); setColoured(null); },
  };
}

// The x axis by number or by date, all or the latest part; dragging over a chart zooms too.
function chartChoices(by, charts) {
  const axis = h("select", { id: "axis" }, h("option", { value: "number" }, "by number"), h("option", { value: "date" }, "by date"));
  const part = h("select", { id: "part" }, [["all", "all decisions"], ["0.5", "the latest half"], ["0.1", "the latest tenth"]].map(([v, text]) => h("option", { value: v }, text)));
  const over = charts.slice(0, 3);
  const zoom = () => over.forEach((chart) => {
    const x = chart.plot?.data[0];
    if (!x?.length) return;
    chart.window(part.value === "all" ? null : x[Math.floor((1 - Number(part.value)) * (x.length - 1))]);
  });
  axis.addEventListener("change", () => { by.byDate = axis.value === "date"; over.forEach((chart) => chart.draw(true)); zoom(); });
  part.addEventListener("change", zoom);
  return h("div", { class: "row choices" }, h("label", { for: "axis" }, "Charts"), axis, h("label", { for: "part" }, "Show"), part, h("span", { class: "dim" }, "Drag over a chart to zoom, double click to reset."));
}

const WORDS = { pause: "paused", resume: "resumed", add_arm: "arm added", drop_arm: "arm dropped", history: "history added", look: "look", amended: "outcome amended", withdrawn: "outcome withdrawn", voided: "decision voided" };

function happenings(series) {
  const all = series?.happenings ?? [];
  if (!all.length) return null;
  return h("details", { class: "card" }, h("summary", {}, `Marks in the charts (${all.length})`), h("ul", { class: "plain" }, [...all].reverse().map((each) =>
    h("li", {}, h("strong", {}, WORDS[each.kind]), ` ${clock(each.at)}, after decision ${count(each.number)}: ${each.text}`))));
}

function looksTable(view) {
  if (!view.looks?.length) return null;
  const chances = (look) => Object.entries(view.looks.some((l) => l.control) ? look.probability_better : look.probability_best).map(([name, p]) => `${name} ${(100 * p).toFixed(1)} %`).join(", ");
  const verdict = (look) => [look.dropped.length ? `dropped ${look.dropped.join(", ")}` : null, look.outcome === "continue" ? null : `${look.outcome}${look.selected ? `: ${look.selected}` : ""}`].filter(Boolean).join("; ") || "continue";
  return h("details", { open: view.status === "stopped", id: "looks" }, h("summary", {}, `Looks (${view.looks.length})`), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["look", "outcomes", view.looks.some((l) => l.control) ? "P(better than control)" : "P(best)", "verdict"].map((text) => h("th", {}, text)))),
    h("tbody", {}, view.looks.map((look) => h("tr", { title: look.reason }, [look.look, count(look.outcomes), chances(look), verdict(look) + (look.enforced ? "" : " (advice)")].map((cell) => h("td", {}, String(cell)))))))));
}

function headline(state, live) {
  const { view, me, name, overview } = state, r = view.results;
  const fact = (label, value, id) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", { id }, value));
  const admin = me.can("admin");
  return [
    h("div", { class: "row between" },
      h("div", { class: "row title" }, h("h1", {}, named(view.name)), h("span", { class: `badge ${view.status}` }, view.status)),
      h("div", { class: "row" }, admin && view.status !== "stopped" && pauseButton(state), admin && armsButton(state),
        h("a", { class: "button", href: `#/e/${encodeURIComponent(name)}/what-if` }, "Simulate…"), exports(state))),
    h("dl", { class: "facts" }, fact("decisions", count(r.decisions), "n-decisions"),
      fact("outcomes", count(r.outcomes), "n-outcomes"), fact("waiting", count(r.waiting), "n-waiting"),
      r.history > 0 && fact("imported", count(r.history)), overview.horizon && fact("planned", count(overview.horizon)),
      h("div", { class: "fact wide" }, h("dt", {}, "design"), h("dd", {}, h("code", {}, `${view.policy} on ${view.belief}${view.allocation ? `, ${view.allocation}` : ""}${view.stopping ? `, ${view.stopping}` : ""}`))), live),
  ];
}

function pauseButton(state) {
  const act = state.view.status === "running" ? "pause" : "resume";
  const button = h("button", {}, act === "pause" ? "Pause" : "Resume");
  button.addEventListener("click", busy(button, async () => {
    const reason = h("input", { id: "pause-reason", maxlength: 500, autocomplete: "off", autofocus: true });
    const wish = await ask(act === "pause" ? "Pause the experiment?" : "Resume the experiment?", [h("p", {}, act === "pause" ? "No new decisions until it is resumed. Outcomes can still be told." : "New decisions are possible again."), field("Reason (optional)", reason)],
      { yes: act === "pause" ? "Pause now" : "Resume now", read: () => ({ reason: reason.value.trim() }) });
    if (!wish) return;
    await call(`${at(state.name)}/${act}`, { method: "POST", body: wish.reason ? { reason: wish.reason } : {} });
    toast(act === "pause" ? "Paused: no new decisions." : "Resumed.");
    await state.refresh();
  }));
  return button;
}

function armsButton(state) {
  const button = h("button", {}, "Change arms…");
  button.addEventListener("click", busy(button, async () => {
    const active = state.view.arms.filter((arm) => arm.active);
    const way = h("select", { id: "arm-way" }, h("option", { value: "add" }, "add an arm"), h("option", { value: "drop" }, "drop an arm"));
    const fresh = h("input", { id: "arm-name", maxlength: 500, autocomplete: "off" }), old = h("select", { id: "arm-old" }, active.map((arm) => h("option", { value: arm.name }, arm.name)));
    const reason = h("input", { id: "arm-reason", maxlength: 500, autocomplete: "off" }), [adding, dropping] = [field("Name of the new arm", fresh, "It starts at the prior."), field("Arm to drop", old, "It gets no more units; its outcomes still count.")];
    const adapt = () => { adding.hidden = way.value !== "add"; dropping.hidden = !adding.hidden; fresh.required = !adding.hidden; };
    way.addEventListener("change", adapt);
    adapt();
    const wish = await ask("Change the arms", [field("What to do", way), adding, dropping, field("Reason (optional)", reason)], { yes: "Change", danger: true, read: () => ({ way: way.value, name: fresh.value.trim(), old: old.value, reason: reason.value.trim() || null }) });
    if (!wish) return;
    const [path, body] = wish.way === "add" ? ["arms", { name: wish.name, reason: wish.reason }] : ["arms/drop", { arm: wish.old, reason: wish.reason }];
    await call(`${at(state.name)}/${path}`, { method: "POST", body });
    toast(wish.way === "add" ? "The arm was added." : "The arm was dropped.");
    await state.refresh();
  }));
  return button;
}

function exports(state) {
  const link = (form) => {
    const path = `${at(state.name)}/export.${form}`;
    const save = (event) => {
      event.preventDefault();
      download(path, `${state.name}.${form}`).catch((error) => toast(error.message, true));
    };
    return h("a", { href: path, download: `${state.name}.${form}`, onclick: state.me.keyless ? undefined : save }, form);
  };
  const page = (kind, text) => {
    const path = `${at(state.name)}/${kind}.html`;
    const save = (event) => { event.preventDefault(); download(path, `${state.name}-${kind}.html`).catch((error) => toast(error.message, true)); };
    return h("a", { href: path, download: `${state.name}-${kind}.html`, title: text, onclick: state.me.keyless ? undefined : save }, kind);
  };
  return h("span", { class: "exports" }, "Export ", link("csv"), " ", link("jsonl"), " ", link("parquet"), " · ",
    page("protocol", "The design as a document"), " ", page("report", "What happened and what it says, as a document"));
}
