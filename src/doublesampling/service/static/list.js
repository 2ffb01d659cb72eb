// The experiments of the store: status, counts, last activity, and a search.

import { call } from "./api.js";
import { age, clock, count, fill, h, named, shorten } from "./dom.js";

const SHOWN = 4; // names of arms on a card

export function showList(main, { me, refused }) {
  fill(main, h("p", { class: "dim" }, "Loading…"));
  const admin = me.can("admin") && me.experiment === null;
  call("/v1/experiments").then(({ experiments }) => {
    if (!experiments.length) {
      fill(main, h("div", { class: "card empty" }, h("h1", {}, "No experiments yet"),
        h("p", {}, "An experiment assigns an arm to each unit, learns from the outcomes, and stores both."),
        admin ? h("a", { class: "button primary", href: "#/new" }, "Create the first") : null));
      return;
    }
    const latest = (e) => e.last_activity ?? e.created_at;
    experiments.sort((a, b) => latest(b).localeCompare(latest(a)));
    const cards = h("ul", { class: "cards" }), none = h("p", { class: "dim", hidden: true }, "No experiment matches.");
    const search = h("input", { id: "search", type: "search", placeholder: "name, arm, status", autocomplete: "off" });
    const show = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const text = (e) => [e.name, e.status, e.created_by, ...e.arms].join(" ").toLowerCase();
      const found = experiments.filter((e) => words.every((word) => text(e).includes(word)));
      fill(cards, found.map(card));
      none.hidden = found.length > 0;
    };
    search.addEventListener("input", show);
    fill(main, h("div", { class: "row between" }, h("h1", {}, "Experiments"),
      admin && h("a", { class: "button primary", href: "#/new" }, "New experiment")),
    experiments.length > 3 && h("div", { class: "field" }, h("label", { for: "search" }, "Search"), search), cards, none);
    show();
  }).catch((error) => (error.status === 401 ? refused(error)
    : fill(main, h("div", { class: "card error" }, h("p", {}, error.message)))));
  return () => {};
}

function card(each) {
  const r = each.results, more = each.arms.length - SHOWN;
  return h("li", {}, h("a", { class: "card", href: `#/e/${encodeURIComponent(each.name)}` },
    h("span", { class: "row between top-row" }, h("strong", {}, named(each.name)), h("span", { class: `badge ${each.status}` }, each.status)),
    h("span", { class: "arm-names" }, each.arms.slice(0, SHOWN).map((arm) => shorten(arm, 32)).join(" · "), more > 0 && ` and ${more} more`),
    r && h("span", {}, `${count(r.decisions)} decisions, ${count(r.outcomes)} outcomes, ${count(r.waiting)} waiting`),
    h("span", { class: "dim" }, each.last_activity ? `last activity ${age(each.last_activity)} ago` : `created ${clock(each.created_at)}`, `, by ${each.created_by}`)));
}
