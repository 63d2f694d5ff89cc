// @ts-check
/**
 * Reads what a <grid-map> shows: lines of a label, a tab, a letter for each column, and perhaps a tab and a note, in its
 * <pre> or the text that src names. A single line without a tab is one long row, to be wrapped. src may also name JSON:
 * {letters}, or {columns, rows: [[label, letters, note]]}. A column is a label, or [id, label].
 */

/** @typedef {[label: string, letters: string, note?: string]} Row */
/**
 * @typedef {object} GridData
 * @property {string} letters
 * @property {[string, string][]} columns
 * @property {Row[]} rows
 * @property {number} [checkpoint]
 * @property {number} [unread] how much the server has still to read
 * @property {string} [shown] how much is shown of how much
 * @property {[string, string][]} [links] to other parts: text and address
 */

/**
 * @param {HTMLElement} host
 * @returns {Promise<GridData | null>} null if the server did not answer with a grid
 */
export async function readGrid(host) {
  const source = host.getAttribute("src"), columns = JSON.parse(host.dataset.columns ?? "[]");
  if (!source) return parse(host.querySelector("pre")?.textContent ?? "", columns);
  const answer = await fetch(source, { headers: { Accept: "application/json, text/plain;q=0.9" } });
  if (!answer.ok) return null;
  if (!answer.headers.get("Content-Type")?.includes("json")) return parse(await answer.text(), columns);
  const found = await answer.json();
  return { ...found, letters: found.letters ?? "", columns: named(found.columns ?? columns), rows: found.rows ?? [["", found.letters]] };
}

/** @param {string} text @param {(string | [string, string])[]} columns @returns {GridData} */
function parse(text, columns) {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => line.split("\t"));
  return {
    letters: lines.length === 1 && lines[0].length === 1 ? lines[0][0] : "",
    columns: named(columns),
    rows: lines.map((line) => (line.length > 1 ? [line[0], line[1], line[2]] : ["", line[0]])),
  };
}

/** @param {(string | [string, string])[]} columns @returns {[string, string][]} */
const named = (columns) => columns.map((one) => (typeof one === "string" ? [one, one] : one));

/** Say how much is shown, and lead to the rest. @param {HTMLElement} place @param {GridData} data */
export function tellParts(place, { shown = "", links = [] }) {
  const made = links.map(([text, href]) => Object.assign(document.createElement("a"), { textContent: text, href }));
  place.replaceChildren(shown, ...made);
}
