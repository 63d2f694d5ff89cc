// @ts-check
/**
 * <command-palette src="/api/v3/search"><form action="/search"><input name="q"></form></command-palette>
 * "/" or Ctrl-K, or a click on the form, opens a dialog that asks src?q= as one types. Without JavaScript the form searches.
 * It also finds what the page itself leads to: the entries of the navigation, and the actions of its buttons. The server
 * has left out of both what the viewer may not do.
 */
import { isTyping } from "./keyboard.js";

const PAUSE = 120;
const LOCAL = /** @type {[string, string][]} */ ([["page", "header.top nav a[href]"], ["action", "main a[data-dialog][href]"]]);
let count = 0;

/**
 * What the page leads to: everything in its navigation for no text, otherwise what a text stands in.
 * @param {string} text
 * @returns {{kind: string, title: string, path: string}[]}
 */
function local(text) {
  const found = LOCAL.flatMap(([kind, where]) => [.../** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll(where))]
    .map((link) => ({ kind, title: (link.textContent ?? "").trim().replace(/…$/, ""), path: link.href })));
  const unique = found.filter(({ path }, at) => found.findIndex((one) => one.path === path) === at);
  return unique.filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()));
}

class CommandPalette extends HTMLElement {
  connectedCallback() {
    this.listen = new AbortController();
    const { signal } = this.listen;
    document.addEventListener("keydown", (event) => this.key(event), { signal });
    this.addEventListener("pointerdown", (event) => { event.preventDefault(); this.open(); }, { signal });
    this.addEventListener("submit", (event) => { event.preventDefault(); this.open(); }, { signal });
  }

  disconnectedCallback() {
    this.listen?.abort();
    this.dialog?.close();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const isCalled = event.key === "k" && (event.ctrlKey || event.metaKey);
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !isTyping(event);
    if (!isCalled && !isSlash) return;
    event.preventDefault();
    this.open();
  }

  open() {
    if (this.dialog?.open || document.querySelector("dialog[open]")) return;
    const typed = /** @type {HTMLInputElement | null} */ (this.querySelector("form input[type=search], form input"))?.value ?? "";
    const dialog = this.dialog = document.createElement("dialog");
    dialog.className = "palette";
    dialog.setAttribute("aria-label", "Search or jump to");
    const input = this.input = document.createElement("input");
    const list = this.list = document.createElement("ul");
    input.type = "search";
    input.placeholder = "Search workflows, steps, tables…";
    input.value = typed;
    input.maxLength = 128;
    list.id = `palette-${++count}`;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Results");
    for (const [name, value] of Object.entries({ role: "combobox", "aria-expanded": "true", "aria-controls": list.id, "aria-label": "Search", autocomplete: "off" })) input.setAttribute(name, value);
    dialog.append(input, list);
    dialog.onclick = (event) => { if (event.target === dialog) dialog.close(); };
    dialog.onclose = () => { dialog.remove(); clearTimeout(this.timer); };
    input.onkeydown = (event) => this.choose(event);
    input.oninput = () => { clearTimeout(this.timer); this.timer = setTimeout(() => this.ask(), PAUSE); };
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
    this.ask();
  }

  /** Ask for what was typed, and show the answer if it is still wanted. */
  async ask() {
    const text = this.input?.value.trim() ?? "";
    this.asked?.abort();
    const near = local(text);
    this.show(near);
    if (!text) return;
    const { signal } = this.asked = new AbortController();
    const source = this.getAttribute("src") ?? "/api/v3/search";
    try {
      const answer = await fetch(`${source}?include=jumps&q=${encodeURIComponent(text)}`, { signal, headers: { Accept: "application/json" } });
      if (!answer.ok) return this.say(`The search failed: ${answer.status}`);
      const found = (await answer.json()).elements ?? [];
      if (near.length + found.length) this.show([...near, ...found]); else this.say(`Nothing is called ${text}`);
    } catch (error) {
      if (!signal.aborted) this.say("The server does not answer");
    }
  }

  /** @param {string} text */
  say(text) {
    const item = document.createElement("li");
    item.className = "soft";
    item.textContent = text;
    this.list?.replaceChildren(item);
  }

  /** @param {{kind: string, title: string, path: string, matches?: {field: string, value: string}[]}[]} found */
  show(found) {
    this.list?.replaceChildren(...found.map(({ kind, title, path, matches }, place) => {
      const why = matches?.filter(({ value }) => !title.includes(value)).map(({ field, value }) => `${field} ${value}`);
      const item = document.createElement("li"), link = document.createElement("a");
      const address = new URL(path, location.origin);
      if (address.origin === location.origin) link.href = address.href; // a path, and never javascript:
      link.tabIndex = -1;
      for (const [tag, text] of [["span", kind], ["b", title], ["small", why?.join(" · ") ?? ""]]) {
        const part = document.createElement(tag);
        part.textContent = text;
        link.append(part);
      }
      link.id = `${this.list?.id}-${place}`;
      link.setAttribute("role", "option"); // an option may not hold a link
      item.setAttribute("role", "presentation");
      item.append(link);
      return item;
    }));
    this.mark(0);
  }

  /** @param {KeyboardEvent} event */
  choose(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) this.mark(this.at + step);
    else if (event.key === "Escape") this.dialog?.close(); // a search field would only empty itself
    else if (event.key === "Enter") this.list?.children[this.at]?.querySelector("a")?.click();
    else return;
    event.preventDefault();
  }

  at = 0;

  /** @param {number} at */
  mark(at) {
    const all = [...this.list?.querySelectorAll("[role=option]") ?? []];
    this.at = all.length ? (at + all.length) % all.length : 0;
    all.forEach((item, place) => item.setAttribute("aria-selected", `${place === this.at}`));
    all[this.at]?.scrollIntoView({ block: "nearest" });
    if (all.length) this.input?.setAttribute("aria-activedescendant", all[this.at].id); else this.input?.removeAttribute("aria-activedescendant");
  }
}

customElements.define("command-palette", CommandPalette);
