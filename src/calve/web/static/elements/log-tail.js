// @ts-check
/**
 * <log-tail src="/api/v3/…/logs?attempt=2" live><pre data-offset="0" data-next-offset="812" data-size="812">…</pre></log-tail>
 * Shows the end of a log, in pages by byte offset; earlier ones on demand, later ones while the attribute live is there.
 * Pages are plain text, so that the browser's own search finds what is loaded; the field searches the whole log on the server.
 */
import { ansi, LOG_CSS, markMatch, matchItem } from "./log-text.js";
import { part, shadow } from "./shadow.js";

const PAGE = 65_536, OFTEN = 1_500;
const HTML = `
  <form class="tools"><input type="search" placeholder="Find in the whole log" aria-label="Find in the whole log" maxlength="1000">
  <button type="button" data-do="follow" aria-pressed="true">Follow</button><button type="button" data-do="wrap" aria-pressed="false">Wrap</button>
  <span class="state" role="status"></span></form><ul class="found"></ul>
  <div class="pages" tabindex="0" role="log" aria-live="off" aria-label="Log"><button class="earlier" type="button" hidden></button><slot></slot></div>
`;

/** @typedef {{text: string, offset: number, next_offset: number, size: number, left_out?: number}} Page */

class LogTail extends HTMLElement {
  static observedAttributes = ["src", "live"];
  root = shadow(this, LOG_CSS, HTML);
  pages = part(this.root, ".pages");
  earlier = /** @type {HTMLButtonElement} */ (part(this.root, ".earlier"));
  state = part(this.root, ".state");
  found = part(this.root, ".found");
  /** Which bytes are shown, of how many. */
  first = 0; next = 0; size = 0;
  isFollowing = true;

  connectedCallback() {
    const tools = /** @type {HTMLFormElement} */ (part(this.root, ".tools"));
    tools.onsubmit = (event) => { event.preventDefault(); this.find(tools.querySelector("input")?.value ?? ""); };
    tools.onclick = (event) => this.toggle(/** @type {HTMLElement} */ (event.target));
    this.earlier.onclick = () => this.back();
    this.timer = setInterval(() => this.poll(), OFTEN);
    this.start();
  }

  disconnectedCallback() {
    clearInterval(this.timer);
  }

  /** @param {string} name @param {string | null} before @param {string | null} now */
  attributeChangedCallback(name, before, now) {
    if (!this.timer || before === now) return; // else connectedCallback is still to come
    if (name === "src") this.start(); else this.poll(true); // what came between the last look and the end
  }

  /** @param {Record<string, string | number>} query @returns {Promise<any>} */
  async ask(query) {
    const address = new URL(this.getAttribute("src") ?? "", location.href);
    for (const [name, value] of Object.entries(query)) address.searchParams.set(name, `${value}`);
    const answer = await fetch(address, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`The log cannot be read: ${answer.status}`);
    return answer.json();
  }

  /** Begin with the page that the server wrote, or the last one. */
  async start() {
    const written = this.querySelector("pre"), { offset, nextOffset, size } = written?.dataset ?? {};
    const page = nextOffset === undefined ? await this.asked({ offset: -PAGE, limit: PAGE })
      : { text: written?.textContent ?? "", offset: Number(offset), next_offset: Number(nextOffset), size: Number(size) };
    if (page) this.show(page);
  }

  /** @param {Record<string, string | number>} query */
  async asked(query) {
    try {
      return await this.ask(query);
    } catch (error) {
      this.state.textContent = /** @type {Error} */ (error).message;
      return null;
    }
  }

  /** Show one page in place of all. @param {Page} page */
  show(page) {
    this.pages.replaceChildren(this.earlier);
    this.first = page.offset;
    this.add(page);
  }

  /** @param {Page} page */
  add(page) {
    const isAtEnd = this.pages.scrollHeight - this.pages.scrollTop - this.pages.clientHeight < 40;
    if (page.left_out) this.pages.append(`[${page.left_out} bytes are not kept]\n`);
    this.pages.append(ansi(page.text));
    this.next = page.next_offset;
    this.size = page.size;
    this.note();
    if (this.isFollowing && (isAtEnd || this.first === page.offset)) this.pages.scrollTop = this.pages.scrollHeight;
  }

  note() {
    const kilobytes = (/** @type {number} */ bytes) => `${Math.ceil(bytes / 1000).toLocaleString("en")} kB`;
    this.earlier.hidden = this.first <= 0;
    this.earlier.textContent = `Earlier: ${kilobytes(this.first)}`;
    this.state.textContent = this.size ? `${kilobytes(this.next - this.first)} of ${kilobytes(this.size)}` : "Nothing is written yet";
  }

  async back() {
    const offset = Math.max(0, this.first - PAGE), page = await this.asked({ offset, limit: this.first - offset });
    if (!page) return;
    const height = this.pages.scrollHeight;
    this.earlier.after(ansi(page.text));
    this.first = offset;
    this.note();
    this.pages.scrollTop += this.pages.scrollHeight - height;
  }

  async poll(isLast = false) {
    if (this.isAsking || (!isLast && (!this.hasAttribute("live") || document.hidden || !this.isFollowing))) return;
    this.isAsking = true;
    const page = await this.asked({ offset: this.next, limit: PAGE }).finally(() => { this.isAsking = false; });
    if (!page?.text) return;
    this.add(page);
    if (page.next_offset < page.size) await this.poll(isLast);
  }

  /** @param {HTMLElement} button */
  toggle(button) {
    if (!button.dataset.do) return;
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", `${isOn}`);
    if (button.dataset.do === "wrap") this.pages.classList.toggle("wrap", isOn); else this.isFollowing = isOn;
  }

  /** List the lines of the whole log that hold a text. @param {string} text */
  async find(text) {
    const answer = text ? await this.asked({ find: text, ignore_case: "true", limit: 100 }) : { matches: [] };
    if (!answer) return;
    this.found.replaceChildren(...answer.matches.map((/** @type {import("./log-text.js").Match} */ match) =>
      matchItem(match, () => this.jump(match, text))));
    const more = answer.next_offset == null ? "" : "+";
    if (text) this.state.textContent = answer.matches.length ? `${answer.matches.length}${more} lines` : "Not found";
  }

  /** Show the page around a line. @param {import("./log-text.js").Match} match @param {string} text */
  async jump(match, text) {
    const page = await this.asked({ offset: Math.max(0, match.offset - 4_000), limit: PAGE });
    if (!page) return;
    if (this.isFollowing) this.toggle(part(this.root, "[data-do=follow]"));
    this.show(page);
    markMatch(this.pages, match.text, text)?.scrollIntoView({ block: "center" });
  }
}

customElements.define("log-tail", LogTail);
