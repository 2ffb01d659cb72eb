// One experiment at a glance, kept up to date while the page is open.

import { at, call, download } from "./api.js";
import { armsTable, gauge } from "./arms.js";
import { Chart, allocationPlan, bestPlan, candidatesPlan, densityPlan } from "./charts.js";
import { busy, count, fill, h, toast } from "./dom.js";
import { deskCard, pendingCard } from "./desk.js";
import { healthCard } from "./health.js";
import { logCard } from "./log.js";

const PACE = 2000; // milliseconds between two looks

export function showExperiment(main, { me, name, refused }) {
  const state = { me, name, view: null, posterior: null, series: null, health: null };
  const page = build(state);
  let tag = null, timer = null, gone = false;

  async function look() {
    try {
      const answer = await call(at(name), { raw: true, headers: tag ? { "If-None-Match": tag } : {} });
      if (answer !== null && !gone) {
        tag = answer.headers.get("etag");
        state.view = await answer.json();
        if (!gone) await page.update();
      } else if (!gone && state.series && !state.series.complete) await page.count();
      page.live(true);
    } catch (error) {
      if (gone) return;
      if (error.status === 401) { refused(error); return; }
      if (!state.view) { fill(main, failure(error)); if (error.status) return; }
      page.live(false, error.message);
    }
    if (!gone) timer = setTimeout(look, document.hidden ? 5 * PACE : PACE);
  }
  if (me.role !== "writer") { // asked for at once: it is what the eye looks for first
    state.early = call(`${at(name)}/posterior?density=120`);
    state.early.catch(() => { state.early = null; });
  }
  state.refresh = () => { clearTimeout(timer); return look(); };
  fill(main, page.element);
  look();
  return () => { gone = true; clearTimeout(timer); page.leave(); };
}

const failure = (error) => h("div", { class: "card error" }, h("h1", {}, "This experiment cannot be shown"),
  h("p", {}, error.message), h("a", { class: "button", href: "#/" }, "All experiments"));

function build(state) {
  const blind = state.me.role === "writer", writes = state.me.role !== "reader";
  const head = h("div", { class: "head" }), arms = h("div", {}, h("p", { class: "dim" }, "Loading…"));
  const doubt = h("div", { class: "gauge-place" });
  const live = h("span", { class: "live" }, "…");
  const charts = blind ? [] : [
    new Chart("Probability of being the best", "What each decision believed, from the first to the latest.", () => bestPlan(state.series)),
    new Chart("N, candidates drawn", "The method's own gauge: 1 is doubt, so explore; many is sure, so exploit.", () => candidatesPlan(state.series)),
    new Chart("Allocation", "Share of each arm among the decisions made around that time.", () => allocationPlan(state.series)),
    new Chart("Posterior densities", "Of each arm's expected reward, as believed now.", () => densityPlan(state.posterior)),
  ];
  const desk = writes ? deskCard(state) : null;
  const parts = blind ? [] : [pendingCard(state), logCard(state), healthCard(state)];
  const [pending, log, health] = parts;
  const element = h("div", { class: "page" }, head, live,
    blind ? h("p", { class: "card dim" }, "A writer's key asks and tells, and sees no results.") : null,
    blind ? null : h("section", { class: "card", "aria-label": "Arms" }, h("h2", {}, "Arms"), arms, doubt),
    blind ? desk.element : h("div", { class: "grid" }, charts[0].element, charts[1].element, charts[2].element, charts[3].element,
      desk?.element, pending.element),
    log?.element, health?.element);

  async function update() {
    fill(head, headline(state));
    desk?.update();
    if (!blind) await Promise.all([believe(), draw(), pending.update(), log.update(), health.update()]);
  }
  async function believe() {
    state.posterior = await (state.early ?? call(`${at(state.name)}/posterior?density=120`));
    state.early = null;
    fill(arms, armsTable(state.posterior));
    fill(doubt, gauge(state.posterior));
    charts[3].draw();
  }
  async function draw() {
    state.series = await call(`${at(state.name)}/series?points=500`);
    charts.slice(0, 3).forEach((chart) => chart.draw());
  }
  return {
    element, update, count: draw,
    live: (up, why) => { live.className = up ? "live up" : "live"; live.textContent = up ? "live" : why; },
    leave: () => charts.forEach((chart) => chart.leave()),
  };
}

function headline(state) {
  const { view, me, name } = state;
  const fact = (label, value, id) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", { id }, value));
  return [
    h("div", { class: "row between" },
      h("div", { class: "row" }, h("h1", {}, view.name),
        h("span", { class: `badge ${view.status}` }, view.status)),
      h("div", { class: "row" },
        me.role === "admin" && pauseButton(state),
        me.role !== "writer" && h("a", { class: "button", href: `#/e/${encodeURIComponent(name)}/what-if` }, "What if…"),
        me.role !== "writer" && exports(state))),
    view.results && h("dl", { class: "facts" }, fact("decisions", count(view.results.decisions), "n-decisions"),
      fact("outcomes", count(view.results.outcomes), "n-outcomes"), fact("waiting", count(view.results.waiting), "n-waiting"),
      view.results.history > 0 && fact("from before", count(view.results.history)),
      h("div", { class: "fact wide" }, h("dt", {}, "design"), h("dd", {}, h("code", {}, `${view.policy} on ${view.belief}`)))),
  ];
}

function pauseButton(state) {
  const act = state.view.status === "running" ? "pause" : "resume";
  const button = h("button", {}, act === "pause" ? "Pause" : "Resume");
  button.addEventListener("click", busy(button, async () => {
    await call(`${at(state.name)}/${act}`, { method: "POST", body: {} });
    toast(act === "pause" ? "Paused: no new decisions." : "Running again.");
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
  return h("span", { class: "exports" }, "Export ", link("csv"), " ", link("jsonl"), " ", link("parquet"));
}
