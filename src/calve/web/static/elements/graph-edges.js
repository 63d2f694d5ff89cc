// @ts-check
/** Edges of a graph that the server drew: a.node[data-id] and .edge[data-from][data-to]. */

/** @param {Element} graph @returns {{edge: Element, from: string, to: string}[]} */
function edges(graph) {
  return [...graph.querySelectorAll(".edge")].map((edge) => {
    const { from = "", to = "" } = /** @type {SVGElement} */ (edge).dataset;
    return { edge, from, to };
  });
}

/**
 * Return the node that an arrow key leads to: along an edge, or beside it in its rank; the nearest of several.
 * @param {Element} graph
 * @param {Element} node
 * @param {string} key
 * @returns {Element | null}
 */
export function neighbour(graph, node, key) {
  const here = node.getBoundingClientRect(), id = node.getAttribute("data-id");
  const ends = edges(graph).flatMap(({ from, to }) => (key === "ArrowDown" ? from === id && [to] : to === id && [from]) || []);
  /** @param {Element} one @param {DOMRect} box */
  const isNext = (one, box) => key === "ArrowLeft" || key === "ArrowRight"
    ? Math.abs(box.top - here.top) < here.height / 2 && (box.left > here.left) === (key === "ArrowRight")
    : ends.includes(one.getAttribute("data-id") ?? "");
  const found = [...graph.querySelectorAll("a.node")].map((one) => ({ one, box: one.getBoundingClientRect() }))
    .filter(({ one, box }) => one !== node && isNext(one, box));
  found.sort((a, b) => Math.abs(a.box.left - here.left) - Math.abs(b.box.left - here.left));
  return found[0]?.one ?? null;
}

/** @type {WeakMap<Element, string | null>} */
const shown = new WeakMap();

/** Show which edges belong to the node under the pointer, or with the focus. @param {Element} graph @param {EventTarget | null} target */
export function highlight(graph, target) {
  const id = target instanceof Element ? target.closest("a.node")?.getAttribute("data-id") ?? null : null;
  if (shown.get(graph) === id) return;
  shown.set(graph, id);
  for (const { edge, from, to } of edges(graph)) edge.classList.toggle("near", id !== null && (from === id || to === id));
}
