// @ts-check
/** The text of a <log-tail>: colours of terminals (SGR) as classes, what a search has found, and their style. */

export const LOG_CSS = `
  .tools { display: flex; gap: 6px; align-items: center; padding-block: 6px; flex-wrap: wrap }
  .tools input { flex: 1; min-width: 8rem } .state { color: var(--picture-soft); font-size: .75rem }
  .pages { overflow: auto; max-height: 60vh; border: 1px solid var(--picture-line); border-radius: 6px; padding: 8px 12px;
    font: 400 .8125rem/1.55 ui-monospace, "SF Mono", Menlo, monospace; white-space: pre; tab-size: 4; unicode-bidi: plaintext; overflow-anchor: none }
  .pages.wrap { white-space: pre-wrap; overflow-wrap: anywhere }
  .more { display: block; margin: 0 auto 6px; font-size: .75rem } .more[hidden] { display: none }
  .whole { color: var(--picture-accent); font-size: .75rem } .whole[hidden] { display: none }
  .found:empty { display: none } .found { max-height: 12rem; overflow: auto; padding: 0; margin: 0 0 6px; list-style: none; font-size: .8125rem }
  .found button { border: 0; background: none; text-align: left; width: 100%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap }
  .bold { font-weight: 700 } .dim { opacity: .65 } mark { background: color-mix(in srgb, var(--tone-late) 35%, transparent); color: inherit }
  .ansi-1, .ansi-9 { color: var(--tone-bad) } .ansi-2, .ansi-10 { color: var(--tone-ok) } .ansi-3, .ansi-11 { color: var(--tone-late) }
  .ansi-4, .ansi-12 { color: var(--tone-run) } .ansi-5, .ansi-13 { color: light-dark(#9c36b5, #da77f2) }
  .ansi-6, .ansi-14 { color: var(--picture-accent) } .ansi-0, .ansi-7, .ansi-8, .ansi-15 { color: var(--picture-soft) }
  @media print { .tools, .more { display: none } .pages { max-height: none; white-space: pre-wrap } }
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

/** Return a text without its sequences. @param {string} text */
const plain = (text) => text.replace(SEQUENCE, "");

/** @param {Match[]} matches @param {(match: Match) => void} open @returns {HTMLLIElement[]} */
export function matchItems(matches, open) {
  return matches.map((match) => {
    const item = document.createElement("li"), button = document.createElement("button");
    button.type = "button";
    button.textContent = match.line == null ? plain(match.text) : `${match.line}: ${plain(match.text)}`;
    button.onclick = () => open(match);
    item.append(button);
    return item;
  });
}

/**
 * Mark a text in the line that was found, or the line; what is coloured is marked piece by piece. Return the first mark.
 * @param {Element} shown
 * @param {{text: string, offset: number}} page what it shows
 * @param {Match} match
 * @param {string} text
 * @returns {HTMLElement | null}
 */
export function markMatch(shown, page, match, text) {
  const walker = document.createTreeWalker(shown, NodeFilter.SHOW_TEXT, (node) =>
    node.parentElement?.closest("button") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  /** @type {Text[]} */
  const nodes = [];
  while (walker.nextNode()) nodes.push(/** @type {Text} */ (walker.currentNode));
  const whole = nodes.map((node) => node.data).join(""), line = plain(match.text);
  const before = new TextDecoder().decode(new TextEncoder().encode(page.text).subarray(0, match.offset - page.offset));
  const known = whole.indexOf(line, plain(before).length), place = known < 0 ? whole.indexOf(line) : known;
  if (place < 0) return null;
  const inside = line.toLowerCase().indexOf(text.toLowerCase());
  const start = place + Math.max(0, inside), end = start + (inside < 0 ? line.length : text.length);
  return markBetween(nodes, start, end);
}

/** Mark the texts between two places. @param {Text[]} nodes @param {number} start @param {number} end */
function markBetween(nodes, start, end) {
  /** @type {HTMLElement | null} */
  let first = null, at = 0;
  for (const node of nodes) {
    const length = node.length, from = Math.max(0, start - at), to = Math.min(length, end - at);
    at += length;
    if (from >= to) continue;
    const range = new Range(), mark = document.createElement("mark");
    range.setStart(node, from);
    range.setEnd(node, to);
    range.surroundContents(mark);
    first ??= mark;
  }
  return first;
}
