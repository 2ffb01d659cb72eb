// The experiments of the store.

import { call } from "./api.js";
import { clock, fill, h } from "./dom.js";

export function showList(main, { me, refused }) {
  fill(main, h("p", { class: "dim" }, "Loading…"));
  const admin = me.role === "admin" && me.experiment === null;
  call("/v1/experiments").then(({ experiments }) => {
    if (!experiments.length) {
      fill(main, h("div", { class: "card empty" }, h("h1", {}, "No experiments yet"),
        h("p", {}, "An experiment gives each unit an arm, learns from the outcomes, and writes everything down."),
        admin ? h("a", { class: "button primary", href: "#/new" }, "Create the first") : null));
      return;
    }
    fill(main, h("div", { class: "row between" }, h("h1", {}, "Experiments"),
      admin && h("a", { class: "button primary", href: "#/new" }, "New experiment")),
    h("ul", { class: "cards" }, experiments.map((each) => h("li", {},
      h("a", { class: "card", href: `#/e/${encodeURIComponent(each.name)}` },
        h("strong", {}, each.name), h("span", {}, each.arms.join(" · ")),
        h("span", { class: "dim" }, `${clock(each.created_at)}, ${each.created_by}`))))));
  }).catch((error) => (error.status === 401 ? refused(error)
    : fill(main, h("div", { class: "card error" }, h("p", {}, error.message)))));
  return () => {};
}
