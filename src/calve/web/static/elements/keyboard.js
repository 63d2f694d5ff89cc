// @ts-check
/**
 * Keys of every page: "g" and a letter goes somewhere, "j" and "k" walk the list marked data-list (else the whole
 * page): what is marked data-item, or rows, cards and list items that hold a link. "?" lists the keys. A page adds keys with <a data-key="g x">.
 */

/** @type {Record<string, [string, string]>} */
const PLACES = { h: ["/", "Home"], w: ["/workflows", "Workflows"], t: ["/tables", "Tables"], l: ["/lineage", "Lineage"] };
const WITHIN = 1_000;
let pressed = { key: "", at: 0 };

/** Tell whether a key is meant for a field. @param {Event} event */
export function isTyping(event) {
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  return target.isContentEditable || /^(input|select|textarea)$/i.test(target.tagName ?? "");
}

/** @param {KeyboardEvent} event */
function key(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
  if (document.querySelector("dialog[open]")) return;
  const isSecond = pressed.key === "g" && event.timeStamp - pressed.at < WITHIN;
  pressed = { key: isSecond ? "" : event.key, at: event.timeStamp };
  if (isSecond && go(event.key)) return event.preventDefault();
  if (event.key === "j" || event.key === "k") walk(event.key === "j" ? 1 : -1);
  else if (event.key === "?") help();
  else return;
  event.preventDefault();
}

/** @param {string} second */
function go(second) {
  const own = /** @type {HTMLElement | null} */ (document.querySelector(`[data-key="g ${CSS.escape(second)}"]`));
  if (own) own.click();
  else if (Object.hasOwn(PLACES, second)) location.assign(PLACES[second][0]);
  else return false;
  return true;
}

/** Return the links of the list, one for each item. @returns {HTMLElement[]} */
function links() {
  const list = document.querySelector("[data-list]") ?? document.querySelector("main");
  const marked = [...list?.querySelectorAll("[data-item]") ?? []];
  const items = marked.length ? marked : [...list?.querySelectorAll("tbody > tr, li, a.card") ?? []];
  const found = items.map((item) => (item.matches("a[href]") ? item : item.querySelector("a[href]")));
  return /** @type {HTMLElement[]} */ (found.filter((one) => one instanceof HTMLElement && one.offsetParent !== null));
}

/** Focus the link of the next item: Enter opens it. @param {number} by */
function walk(by) {
  const all = links(), here = all.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, here < 0 ? (by > 0 ? 0 : all.length - 1) : here + by))];
  next?.focus();
}

/** @returns {[string, string][]} */
function keys() {
  const own = [...document.querySelectorAll("[data-key]")];
  return [
    ["/ or Ctrl K", "Search or jump to"],
    ...Object.entries(PLACES).map(([letter, [, name]]) => /** @type {[string, string]} */ ([`g ${letter}`, name])),
    ["j, k, Enter", "Next, previous, open in a list"],
    ["+, -, 0, arrows", "Zoom, fit, walk in a graph"],
    ...own.map((one) => /** @type {[string, string]} */ ([/** @type {HTMLElement} */ (one).dataset.key ?? "", one.textContent?.trim() ?? ""])),
  ];
}

/** Show which keys there are. */
export function help() {
  const dialog = document.createElement("dialog"), list = document.createElement("dl"), title = document.createElement("h2");
  dialog.className = "keys";
  title.textContent = "Keys";
  dialog.setAttribute("aria-label", "Keys");
  for (const [name, text] of keys()) {
    const term = document.createElement("dt"), detail = document.createElement("dd"), shown = document.createElement("kbd");
    shown.textContent = name;
    detail.textContent = text;
    term.append(shown);
    list.append(term, detail);
  }
  dialog.append(title, list);
  dialog.onclick = () => dialog.close();
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", key);
