"use strict";
// The page: what happens when an item is chosen, a slider moves, a word is typed or a key is pressed.

const SHOWN = 24; // nearest items
const HITS = 20; // texts found
const at = (id) => document.getElementById(id);
const counted = (n, one) => `${n.toLocaleString("en-US")} ${one}${n === 1 ? "" : "s"}`;

class Explorer {
  constructor(data) {
    this.items = new Items(data);
    this.codes = new Codes(bytesOf(data.codes), data.count, data.bits);
    const places = new Uint16Array(bytesOf(data.places).buffer);
    this.map = new CollectionMap(at("map"), places, this.items.classOf, this.items.classNames);
    this.state = { chosen: 0, neighbors: [], distance: this.codes.distance, radius: 0, cursor: -1, marked: -1 };
    this.used = data.bits;
    this.buttons = buttonsIn(at("nearest"), Math.min(SHOWN, data.count - 1));
    this.cells = Array.from({ length: data.bits }, () => document.createElement("i"));
    at("barcode").style.setProperty("--columns", Math.min(data.bits, data.bits > 256 ? 128 : 64));
    at("barcode").style.setProperty("--height", data.bits > 128 ? "1rem" : "2rem");
    at("barcode").append(...this.cells);
    this.listen();
  }

  start() {
    this.codes.measure(0, this.used);
    const near = this.codes.nearest(10);
    this.state.radius = near.length ? this.codes.distance[near[near.length - 1]] : 0;
    this.choose(0, false);
  }

  /** Make a row the chosen one and show what its code finds. */
  choose(row, speak = true) {
    Object.assign(this.state, { chosen: row, cursor: row, marked: -1 });
    this.items.show(at("chosen"), row);
    this.measure();
    if (speak) this.say(`${this.items.said(row)}. ${this.nearestInWords()} ${at("within").textContent}`);
  }

  /** The query: distances to all rows, the nearest ones, the count within the radius. */
  measure() {
    const { codes, state, items } = this;
    codes.measure(state.chosen, this.used);
    state.neighbors = codes.nearest(this.buttons.length);
    state.neighbors.forEach((row, place) => {
      const button = this.buttons[place];
      items.show(button, row, counted(codes.distance[row], "bit"));
      button.dataset.row = row;
      button.dataset.distance = codes.distance[row];
      const same = items.classOf ? items.classOf[row] === items.classOf[state.chosen] : null;
      button.className = same === null ? "" : same ? "same" : "other";
    });
    const focused = this.buttons.indexOf(document.activeElement);
    state.marked = focused >= 0 ? state.neighbors[focused] : -1;
    at("bits").value = this.used;
    at("bits-shown").textContent = `first ${this.used} of ${codes.nBits}`;
    this.count();
    this.showBits();
  }

  count() {
    const { codes, state, items } = this;
    state.radius = Math.min(state.radius, this.used);
    const radius = Object.assign(at("radius"), { max: this.used });
    radius.value = state.radius;
    at("radius-shown").textContent = counted(state.radius, "bit");
    const total = codes.within(state.radius);
    let words = `${counted(total, "other item")} within ${counted(state.radius, "bit")}`;
    if (items.classOf && total) {
      let same = 0;
      for (let row = 0; row < codes.count; row++) {
        if (codes.distance[row] <= state.radius && items.classOf[row] === items.classOf[state.chosen]) same++;
      }
      words += `, ${(same - 1).toLocaleString("en-US")} of the same class`;
    }
    at("within").textContent = words + ".";
    this.drawHistogram();
    this.map.draw(state);
  }

  /** How many items are at each distance; heights are square roots, so that small counts can be seen. */
  drawHistogram() {
    const counts = this.codes.histogram.subarray(0, this.used + 1);
    const highest = Math.sqrt(Math.max(1, ...counts));
    const width = 100 / counts.length;
    const bars = { inside: "", outside: "" };
    counts.forEach((count, bits) => {
      const height = count ? Math.max(1, (40 * Math.sqrt(count)) / highest) : 0;
      const bar = `M${(bits * width).toFixed(3)} 40v${-height.toFixed(2)}h${(0.86 * width).toFixed(3)}V40z`;
      bars[bits <= this.state.radius ? "inside" : "outside"] += bar;
    });
    for (const part of ["inside", "outside"]) at(part).setAttribute("d", bars[part]);
  }

  /** The bits of the chosen item; those that differ from the marked neighbor stick out. */
  showBits() {
    const { chosen, marked } = this.state;
    let differing = 0;
    this.cells.forEach((cell, place) => {
      const own = this.codes.bit(chosen, place);
      const differs = marked >= 0 && place < this.used && own !== this.codes.bit(marked, place);
      differing += differs;
      cell.className = [own ? "on" : "off", differs ? "differs" : "", place < this.used ? "" : "unused"].join(" ").trim();
    });
    const about =
      marked < 0
        ? "Point at an item below, or move to it by keyboard, to see which bits differ."
        : `${counted(differing, "bit")} differ${differing === 1 ? "s" : ""} from ${this.items.name(marked)}.`;
    at("differing").textContent = about;
    at("barcode").setAttribute("aria-label", `Code of ${this.items.name(chosen)}, ${counted(this.codes.nBits, "bit")}. ${about}`);
  }

  mark(row) {
    this.state.marked = row;
    this.showBits();
    this.map.draw(this.state);
  }

  /** Move the cursor on the map without choosing. */
  point(row, speak) {
    this.state.cursor = row;
    this.items.show(at("pointed"), row);
    this.map.draw(this.state);
    if (speak) this.say(this.items.said(row));
  }

  nearestInWords() {
    const named = this.state.neighbors.slice(0, 3).map((row) => `${this.items.name(row)} at ${counted(this.codes.distance[row], "bit")}`);
    return named.length ? `Nearest: ${named.join(", ")}.` : "There are no other items.";
  }

  say(words) {
    at("said").textContent = words;
  }

  find(words) {
    const rows = this.items.search(words);
    const shown = rows.slice(0, HITS);
    const buttons = buttonsIn(at("hits"), shown.length);
    buttons.forEach((button, place) => {
      this.items.show(button, shown[place]);
      button.dataset.row = shown[place];
    });
    at("found").textContent = words.trim()
      ? `${counted(rows.length, "item")} found${rows.length > HITS ? `, the first ${HITS} are shown` : ""}.`
      : "";
  }

  listen() {
    const map = at("map");
    const placed = (event) => this.map.rowAt(event.offsetX, event.offsetY);
    map.addEventListener("click", (event) => this.choose(placed(event)));
    map.addEventListener("pointermove", (event) => event.pointerType === "mouse" && this.point(placed(event), false));
    map.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (way) this.point(this.map.rowBeside(this.state.cursor, ...way), true);
      else if (event.key === "Enter" || event.key === " ") this.choose(this.state.cursor);
      else return;
      event.preventDefault();
    });
    at("random").addEventListener("click", () => this.choose(Math.floor(Math.random() * this.codes.count)));
    at("bits").addEventListener("input", (event) => {
      this.used = Number(event.target.value);
      this.measure();
    });
    at("radius").addEventListener("input", (event) => {
      this.state.radius = Number(event.target.value);
      this.count();
    });
    for (const id of ["bits", "radius"]) at(id).addEventListener("change", () => this.say(at("within").textContent));
    movedByArrows(at("nearest"), (row) => this.choose(row));
    const marks = { pointerover: true, focusin: true, pointerleave: false, focusout: false };
    for (const [name, on] of Object.entries(marks)) {
      at("nearest").addEventListener(name, (event) => {
        const button = event.target.closest("button");
        if (!on || button) this.mark(on ? Number(button.dataset.row) : -1);
      });
    }
    if (at("classes")) {
      at("classes").addEventListener("change", (event) => {
        this.map.highlighted = Number(event.target.value);
        this.map.drawItems();
        this.map.draw(this.state);
      });
    }
    if (at("words")) {
      at("words").addEventListener("input", (event) => this.find(event.target.value));
      at("words").addEventListener("keydown", (event) => {
        const first = at("hits").querySelector("button");
        if (event.key === "Enter" && first) this.choose(Number(first.dataset.row));
        else if (event.key === "ArrowDown" && first) first.focus();
        else return;
        event.preventDefault();
      });
      movedByArrows(at("hits"), (row) => this.choose(row));
    }
    const redraw = () => (this.map.resize(), this.map.draw(this.state));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(() => {
      if (map.clientWidth !== Math.round(this.map.width) || map.clientHeight !== Math.round(this.map.height)) redraw();
    }).observe(map);
  }
}

/** Exactly ``count`` buttons in a list. Those that are there stay, so that the focus stays. */
function buttonsIn(list, count) {
  while (list.children.length > count) list.lastChild.remove();
  while (list.children.length < count) {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.tabIndex = list.children.length ? -1 : 0;
    list.append(document.createElement("li"));
    list.lastChild.append(button);
  }
  return [...list.querySelectorAll("button")];
}

/** A list with one stop of the Tab key, in which arrow keys move; a click or Enter picks the row of a button. */
function movedByArrows(list, pick) {
  list.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) pick(Number(button.dataset.row));
  });
  list.addEventListener("keydown", (event) => {
    const buttons = [...list.querySelectorAll("button")];
    const place = buttons.indexOf(document.activeElement);
    const top = buttons[0].offsetTop;
    const columns = buttons.filter((button) => button.offsetTop === top).length;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns, Home: -place, End: buttons.length };
    if (!(event.key in steps)) return;
    const next = Math.max(0, Math.min(buttons.length - 1, place + steps[event.key]));
    buttons.forEach((button, i) => (button.tabIndex = i === next ? 0 : -1));
    buttons[next].focus();
    event.preventDefault();
  });
}

const explorer = new Explorer(JSON.parse(at("data").textContent));
explorer.ready = explorer.items.load().then(() => explorer.start());
