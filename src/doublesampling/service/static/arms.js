// The arms: n, posterior mean with its interval, probability of being the best, next allocation; and the gauge of N.

import { count, h, number, percent, swatch } from "./dom.js";

const bar = (share, arm) => h("span", { class: "bar", "aria-hidden": "true" },
  h("span", { class: `c${arm % 8}`, style: { width: `${100 * (share ?? 0)}%` } }));

// All intervals on one scale, so that they can be compared.
function scale(arms) {
  const ends = arms.flatMap((arm) => [arm.low, arm.high]).filter((v) => v !== null);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return (v) => (high > low ? (100 * (v - low)) / (high - low) : 50);
}

function interval(arm, place) {
  if (arm.low === null || arm.high === null) return h("span", { class: "interval" });
  return h("span", { class: "interval", "aria-hidden": "true" },
    h("span", { class: `reach c${arm.arm % 8}`, style: { left: `${place(arm.low)}%`, width: `${Math.max(place(arm.high) - place(arm.low), 0.5)}%` } }),
    arm.posterior_mean !== null && h("span", { class: `dot c${arm.arm % 8}`, style: { left: `${place(arm.posterior_mean)}%` } }));
}

export function armsTable(posterior) {
  const place = scale(posterior.arms.filter((arm) => arm.active));
  const heads = [["Arm", ""], ["n", "outcomes known"], ["Posterior mean", "and its central 95 % credible interval"],
    ["P(best)", "probability that its expected reward is the highest"], ["Next allocation", "probability that the next unit gets it"]];
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Arms" }, h("table", { class: "arms" },
    h("thead", {}, h("tr", {}, heads.map(([name, about]) => h("th", { scope: "col", class: name === "n" ? "num" : null, title: about || null }, name)))),
    h("tbody", {}, posterior.arms.map((arm) => h("tr", { class: arm.active ? null : "dropped", "data-arm": arm.name },
      h("th", { scope: "row" }, swatch(arm.arm), arm.name, arm.active ? null : h("span", { class: "dim" }, " dropped")),
      h("td", { class: "num" }, count(arm.observations)),
      h("td", {}, h("span", { class: "mean" }, number(arm.posterior_mean)),
        h("span", { class: "dim range" }, `${number(arm.low)} to ${number(arm.high)}`), arm.active && interval(arm, place)),
      h("td", {}, h("span", { class: "value" }, percent(arm.probability_optimal)), bar(arm.probability_optimal, arm.arm)),
      h("td", {}, h("span", { class: "value" }, percent(arm.next_allocation)), bar(arm.next_allocation, arm.arm)))))),
  posterior.context && h("p", { class: "dim" }, `At the context (${posterior.context.join(", ")}).`));
}

export function gauge(posterior) {
  const n = posterior.candidates;
  const mood = n <= 1 ? "exploring" : n <= 3 ? "leaning" : "exploiting";
  const why = { exploring: "in doubt, so each arm gets its own chance", leaning: "a favourite shows", exploiting: "sure enough to play the favourite" }[mood];
  const filled = Math.min(Math.log10(Math.max(n, 1)) / 3, 1);
  return h("div", { class: "gauge" }, h("span", {}, "Next decision draws ", h("strong", {}, `N = ${count(n)}`), ` candidate${n === 1 ? "" : "s"}`),
    h("span", { class: "bar long", role: "img", "aria-label": `${mood}, N = ${n}` }, h("span", { class: "accent", style: { width: `${Math.max(100 * filled, 2)}%` } })),
    h("span", {}, h("strong", {}, mood), h("span", { class: "dim" }, `: ${why}`)));
}
