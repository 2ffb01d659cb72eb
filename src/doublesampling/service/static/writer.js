// The page of a blind key: ask, tell, and its own pending units.

import { Watched, at } from "./api.js";
import { field, fill, h, named } from "./dom.js";
import { askCard } from "./ask.js";
import { pendingCard } from "./pending.js";
import { tellControls } from "./tell.js";

const PACE = 5000; // milliseconds between two polls

export function showWriter(main, { me, name, refused }) {
  const state = { me, name, view: null };
  const head = h("div", { class: "head" }), watched = new Watched();
  const asking = me.can("ask") ? askCard(state) : null, units = me.can("ask") ? pendingCard(state, { own: true }) : null;
  const byName = me.can("tell") ? tellByUnit(state) : null;
  let timer = null, gone = false, begun = false;

  async function look() {
    try {
      const view = await watched.look(at(name));
      if (gone) return;
      if (view) state.view = view;
      fill(head, h("div", { class: "row" }, h("h1", {}, named(state.view.name)), h("span", { class: `badge ${state.view.status}` }, state.view.status)));
      asking?.update();
      byName?.update();
      if (units) await (begun ? units.update() : units.begin());
      begun = true;
    } catch (error) {
      if (gone) return;
      if (error.status === 401) { refused(error); return; }
      if (!state.view) { fill(main, h("div", { class: "card error" }, h("h1", {}, "This experiment cannot be shown"), h("p", {}, error.message), h("a", { class: "button", href: "#/" }, "All experiments"))); if (error.status) return; }
    }
    if (!gone) timer = setTimeout(look, document.hidden ? 5 * PACE : PACE);
  }
  state.refresh = () => { clearTimeout(timer); return look(); };
  fill(main, h("div", { class: "page" }, head, h("p", { class: "dim" }, "This key does not see results, so that its user stays blinded."),
    h("div", { class: "grid" }, h("div", { class: "column" }, asking?.element, byName?.element), units?.element)));
  look();
  return () => { gone = true; clearTimeout(timer); };
}

function tellByUnit(state) {
  const unit = h("input", { id: "told-unit", maxlength: 500, autocomplete: "off" }), place = h("div", { class: "row" });
  const show = () => fill(place, unit.value.trim() && state.view ? tellControls(state, { unit: unit.value.trim() }, () => { unit.value = ""; fill(place); state.refresh(); }) : []);
  unit.addEventListener("input", show);
  const element = h("section", { class: "card", "aria-label": "Tell" }, h("h2", {}, "Tell"), field("Unit to tell", unit, "The unit as it was asked for."), place);
  return { element, update: () => { element.hidden = state.view.units !== "once"; } };
}
