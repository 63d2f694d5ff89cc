// @ts-check
/** The text of a <log-tail>: colours of terminals (SGR) as classes, what a search has found, and their style. */

export const LOG_CSS = `
  .tools { display: flex; gap: 6px; align-items: center; padding-block: 6px; flex-wrap: wrap }
  .tools input { flex: 1; min-width: 8rem } .state { color: var(--picture-soft); font-size: .75rem }
  .pages { overflow: auto; max-height: 60vh; border: 1px solid var(--picture-line); border-radius: 6px; padding: 8px 12px;
    font: 400 .8125rem/1.55 ui-monospace, "SF Mono", Menlo, monospace; white-space: pre; tab-size: 4; unicode-bidi: plaintext }
  .pages.wrap { white-space: pre-wrap; overflow-wrap: anywhere }
  .earlier { display: block; margin: 0 auto 6px; font-size: .75rem } .earlier[hidden] { display: none }
  .found:empty { display: none } .found { max-height: 12rem; overflow: auto; padding: 0; margin: 0 0 6px; list-style: none; font-size: .8125rem }
  .found button { border: 0; background: none; text-align: left; width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  .bold { font-weight: 700 } .dim { opacity: .65 } mark { background: color-mix(in srgb, var(--tone-late) 35%, transparent); color: inherit }
  .ansi-1, .ansi-9 { color: var(--tone-bad) } .ansi-2, .ansi-10 { color: var(--tone-ok) } .ansi-3, .ansi-11 { color: var(--tone-late) }
  .ansi-4, .ansi-12 { color: var(--tone-run) } .ansi-5, .ansi-13 { color: light-dark(#9c36b5, #da77f2) }
  .ansi-6, .ansi-14 { color: var(--picture-accent) } .ansi-0, .ansi-7, .ansi-8, .ansi-15 { color: var(--picture-soft) }
  @media print { .tools, .earlier { display: none } .pages { max-height: none; white-space: pre-wrap } }
`;

const SEQUENCE = /\x1b\[([\d;]*)([A-Za-z])|\x1b[\]P][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b./g;

/**
 * Return a text as nodes, the coloured parts in spans.
 * @param {string} text
 * @returns {DocumentFragment}
 */
export function ansi(text) {
  const whole = document.createDocumentFragment();
  /** @type {Map<string, string>} */
  const style = new Map();
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    add(whole, text.slice(from, found.index), style);
    from = found.index + found[0].length;
    if (found[2] === "m") for (const code of (found[1] || "0").split(";").map(Number)) apply(style, code);
  }
  add(whole, text.slice(from), style);
  return whole;
}

/** @param {Map<string, string>} style @param {number} code */
function apply(style, code) {
  if (code === 0) style.clear();
  else if (code === 1) style.set("weight", "bold");
  else if (code === 2) style.set("weight", "dim");
  else if (code === 22) style.delete("weight");
  else if (code === 39) style.delete("colour");
  else if (code >= 30 && code <= 37) style.set("colour", `ansi-${code - 30}`);
  else if (code >= 90 && code <= 97) style.set("colour", `ansi-${code - 82}`);
}

/** @param {DocumentFragment} whole @param {string} text @param {Map<string, string>} style */
function add(whole, text, style) {
  if (!text) return;
  if (!style.size) return whole.append(text);
  const span = document.createElement("span");
  span.className = [...style.values()].join(" ");
  span.textContent = text;
  whole.append(span);
}

/** @typedef {{offset: number, line: number | null, text: string}} Match */

/** @param {Match} match @param {() => void} open @returns {HTMLLIElement} */
export function matchItem(match, open) {
  const item = document.createElement("li"), button = document.createElement("button");
  button.type = "button";
  button.textContent = match.line == null ? match.text : `${match.line}: ${match.text}`;
  button.onclick = open;
  item.append(button);
  return item;
}

/**
 * Mark a text in the first line of a log that is the one that was found.
 * @param {Element} pages
 * @param {string} line
 * @param {string} text
 * @returns {HTMLElement | null}
 */
export function markMatch(pages, line, text) {
  const walker = document.createTreeWalker(pages, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const content = node.textContent ?? "", place = content.indexOf(line);
    const start = place < 0 ? -1 : content.toLowerCase().indexOf(text.toLowerCase(), place);
    if (start < 0) continue;
    const range = new Range(), mark = document.createElement("mark");
    range.setStart(node, start);
    range.setEnd(node, start + text.length);
    range.surroundContents(mark);
    return mark;
  }
  return null;
}
