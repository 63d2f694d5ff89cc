// @ts-check
/**
 * Reads what a <grid-map> shows: lines of a label, a tab, and a letter for each column, in its <pre> or the text that src
 * names. A single line without a tab is one long row, to be wrapped. src may also name JSON: {letters}, or
 * {columns, rows: [[label, letters]]}, or the changes of a table as the REST API has them. A column is a label, or
 * [id, label].
 */

/** @typedef {[label: string, letters: string, note?: string]} Row */
/** @typedef {{letters: string, columns: [string, string][], rows: Row[], checkpoint?: number, unread?: number}} GridData */
/** @typedef {{snapshot_id: string, at: number, operation: string, commits: number, written_by: Record<string, string>}} Column */
/** @typedef {{partition: string, cells: string, rows: number}} Partition */

/**
 * @param {HTMLElement} host
 * @returns {Promise<GridData | null>} null if the server did not answer with a grid
 */
export async function readGrid(host) {
  const source = host.getAttribute("src"), columns = JSON.parse(host.dataset.columns ?? "[]");
  if (!source) return parse(host.querySelector("pre")?.textContent ?? "", columns);
  const answer = await fetch(source, { headers: { Accept: "application/json, text/plain;q=0.9" } });
  if (!answer.ok) return null;
  const text = await answer.text();
  if (!answer.headers.get("Content-Type")?.includes("json")) return parse(text, columns);
  const found = JSON.parse(text, exact);
  if (found.partitions) return ofChanges(found, host.dataset.prefix ?? "");
  return { letters: found.letters ?? "", columns: named(found.columns ?? columns), rows: found.rows ?? [["", found.letters]] };
}

/** Keep the digits of ids, which are longer than numbers can be. @type {(key: string, value: any, context?: any) => any} */
const exact = (key, value, context) => (key === "snapshot_id" && value !== null ? context?.source ?? `${value}` : value);

/** @param {string} text @param {(string | [string, string])[]} columns @returns {GridData} */
function parse(text, columns) {
  const lines = text.replace(/\n$/, "").split("\n").map((line) => line.split("\t"));
  return {
    letters: lines.length === 1 && lines[0].length === 1 ? lines[0][0] : "",
    columns: named(columns),
    rows: lines.map((line) => [line.length > 1 ? line[0] : "", line[line.length - 1]]),
  };
}

/** @param {(string | [string, string])[]} columns @returns {[string, string][]} */
const named = (columns) => columns.map((one) => (typeof one === "string" ? [one, one] : one));

/** @param {{columns: Column[], partitions: Partition[], checkpoint_column: number | null, unread: number}} changes @param {string} prefix */
function ofChanges({ columns, partitions, checkpoint_column: checkpoint, unread }, prefix) {
  /** @type {GridData} */
  const data = {
    letters: "",
    columns: columns.map((one) => [one.snapshot_id, label(one)]),
    rows: partitions.map((one) => [one.partition.startsWith(prefix) ? one.partition.slice(prefix.length) : one.partition, one.cells, `${one.rows.toLocaleString("en")} rows`]),
    checkpoint: checkpoint === null ? -1 : checkpoint + 1,
    unread,
  };
  return data;
}

/** @param {Column} column */
function label({ at, operation, commits, written_by: who }) {
  const time = new Date(at).toISOString().replace("T", " ");
  return commits === 1 ? `${time.slice(0, 16)} ${operation}${who.workflow ? ` by ${who.workflow}` : ""}` : `${time.slice(0, 10)}, ${commits} commits`;
}
