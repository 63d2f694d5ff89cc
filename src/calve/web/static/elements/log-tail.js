// @ts-check
/**
 * <log-tail src="/api/v3/…/logs?attempt=2" live><pre data-offset="0" data-next-offset="812" data-size="812">…</pre></log-tail>
 * Shows the end of a log, in pages by byte offset; earlier ones on demand, later ones while the attribute live is there.
 * Pages are plain text, so that the browser's own search finds what is loaded; the field searches the whole log on the server.
 */
import { kilobytes, LogPages, readLog } from "./log-pages.js";
import { LOG_CSS, markMatch, matchItems } from "./log-text.js";
import { part, shadow } from "./shadow.js";

const PAGE = 65_536, OFTEN = 1_500;
const HTML = `
  <form class="tools"><input type="search" placeholder="Find in the whole log" aria-label="Find in the whole log" maxlength="1000">
  <button type="button" data-do="follow" aria-pressed="true">Follow</button><button type="button" data-do="wrap" aria-pressed="false">Wrap</button>
  <span class="state" role="status"></span><a class="whole" hidden>The whole log</a></form><ul class="found"></ul>
  <div class="pages" tabindex="0" role="log" aria-live="off" aria-label="Log"><button class="more earlier" type="button" hidden></button><slot></slot>
  <button class="more later" type="button" hidden></button></div>
`;

class LogTail extends HTMLElement {
  static observedAttributes = ["src", "live"];
  root = shadow(this, LOG_CSS, HTML);
  box = part(this.root, ".pages");
  earlier = /** @type {HTMLButtonElement} */ (part(this.root, ".earlier"));
  later = /** @type {HTMLButtonElement} */ (part(this.root, ".later"));
  whole = /** @type {HTMLAnchorElement} */ (part(this.root, ".whole"));
  state = part(this.root, ".state");
  found = part(this.root, ".found");
  pages = new LogPages(this.box, this.earlier, this.later);
  isFollowing = true;

  connectedCallback() {
    const tools = /** @type {HTMLFormElement} */ (part(this.root, ".tools"));
    tools.onsubmit = (event) => { event.preventDefault(); this.find(tools.querySelector("input")?.value ?? ""); };
    tools.onclick = (event) => this.toggle(/** @type {HTMLElement} */ (event.target));
    this.earlier.onclick = () => this.back();
    this.later.onclick = () => this.on();
    this.timer = setInterval(() => this.poll(), OFTEN);
    this.start();
  }

  disconnectedCallback() { clearInterval(this.timer); }

  /** @param {string} name @param {string | null} before @param {string | null} now */
  attributeChangedCallback(name, before, now) {
    if (!this.timer || before === now) return; // else connectedCallback is still to come
    if (name === "src") queueMicrotask(() => this.start()); // a morph sets the attributes before the children
    else this.poll(true); // what came between the last look and the end
  }

  /** Begin with the page that the server wrote, or the last one. */
  start() {
    const written = this.querySelector("pre"), { offset, nextOffset, size } = written?.dataset ?? {};
    this.found.replaceChildren();
    if (nextOffset === undefined) return this.end();
    this.show({ text: written?.textContent ?? "", offset: Number(offset), next_offset: Number(nextOffset), size: Number(size) });
  }

  async end() {
    const page = await this.asked({ offset: -PAGE, limit: PAGE });
    if (page) this.show(page);
  }

  /** Ask; null, if that fails, or if another log is shown by now. @param {Record<string, string | number>} query */
  async asked(query) {
    const source = this.getAttribute("src") ?? "";
    try {
      const answer = await readLog(source, query);
      return this.getAttribute("src") === source ? answer : null;
    } catch (error) {
      this.state.textContent = /** @type {Error} */ (error).message;
      return null;
    }
  }

  /** Show one page in place of all, from its end. @param {import("./log-pages.js").Page} page */
  show(page) {
    this.pages.show(page);
    this.note();
    if (this.isFollowing) this.box.scrollTop = this.box.scrollHeight;
  }

  note() {
    const { first, next, size } = this.pages;
    this.earlier.hidden = first <= 0;
    this.earlier.textContent = `Earlier: ${kilobytes(first)}`;
    this.later.hidden = next >= size || (this.isFollowing && this.hasAttribute("live"));
    this.later.textContent = `Later: ${kilobytes(size - next)}`;
    Object.assign(this.whole, { hidden: first <= 0 && next >= size, href: this.getAttribute("src") ?? "" });
    this.state.textContent = size ? `${kilobytes(next - first)} of ${kilobytes(size)}` : "Nothing is written yet";
  }

  async back() {
    const { first } = this.pages, offset = Math.max(0, first - PAGE), page = await this.asked({ offset, limit: first - offset });
    if (page && this.pages.first === first) this.pages.prepend(page);
    if (this.isFollowing && this.pages.next < this.pages.size) this.toggle(part(this.root, "[data-do=follow]"));
    this.note();
  }

  async on() {
    const { next } = this.pages, page = await this.asked({ offset: next, limit: PAGE });
    if (!page?.text || this.pages.next !== next) return null;
    if (this.isFollowing && this.pages.isFarBehind(page.size)) return this.end(); // the tab was hidden for long
    const isAtEnd = this.pages.isAtEnd;
    this.pages.append(page);
    this.note();
    if (this.isFollowing && isAtEnd) this.box.scrollTop = this.box.scrollHeight;
    return page;
  }

  /** Add what was written since, unless somebody reads what would have to go. */
  async poll(isLast = false) {
    if (!isLast && (!this.hasAttribute("live") || document.hidden || !this.isFollowing)) return;
    if (this.isAsking || (this.pages.isFull && !this.pages.isAtEnd)) return;
    this.isAsking = true;
    const page = await this.on().finally(() => { this.isAsking = false; });
    if (page && page.next_offset < page.size) await this.poll(isLast);
  }

  /** @param {HTMLElement} button */
  toggle(button) {
    if (!button.dataset.do) return;
    const isOn = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", `${isOn}`);
    if (button.dataset.do === "wrap") this.box.classList.toggle("wrap", isOn); else this.isFollowing = isOn;
    if (this.isFollowing && this.pages.next < this.pages.size) this.end();
    this.note();
  }

  /** List the lines of the whole log that hold a text. @param {string} text */
  async find(text) {
    const answer = text ? await this.asked({ find: text, ignore_case: "true", limit: 100 }) : { matches: [] };
    if (!answer) return;
    this.found.replaceChildren(...matchItems(answer.matches, (match) => this.jump(match, text)));
    const more = answer.next_offset == null ? "" : "+";
    if (text) this.state.textContent = answer.matches.length ? `${answer.matches.length}${more} lines` : "Not found";
  }

  /** Show the page around a line. @param {import("./log-text.js").Match} match @param {string} text */
  async jump(match, text) {
    const page = await this.asked({ offset: Math.max(0, match.offset - 4_000), limit: PAGE });
    if (!page) return;
    if (this.isFollowing) this.toggle(part(this.root, "[data-do=follow]"));
    this.show(page);
    markMatch(this.box, page, match, text)?.scrollIntoView({ block: "center" });
  }
}

customElements.define("log-tail", LogTail);
