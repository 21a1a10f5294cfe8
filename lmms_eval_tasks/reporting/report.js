"use strict";
// The samples page. Texts of models reach the page through textContent alone, and only visible rows are in it.
const report = (() => {
  const ROW = 64; // Pixels: the height of .row.
  const SPARE = 6; // Rows that are drawn above and below the visible ones.
  const STATUS = {
    scored: "scored", unjudged: "not judged", no_answer: "no answer", excluded: "excluded",
  };
  const ORDERS = { data: "as in the data", low: "lowest score first", high: "highest score first" };
  const chunks = new Map();
  const waiting = new Map();
  const find = (id) => document.getElementById(id);
  const list = find("list"), rows = find("rows"), detail = find("sample"), count = find("count"), form = find("filters");
  let data, found = [], active = -1, wanted = 0;

  function element(name, properties = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made && !key.startsWith("aria")) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children.filter((child) => child !== null && child !== undefined));
    return made;
  }

  // ---------------------------------------------------------------------------------------------------------- chunks

  function take(kind, number, value) {
    chunks.set(`${kind}-${number}`, value);
    if (kind === "index") begin(value);
  }

  function load(kind, number) {
    const name = `${kind}-${number}`;
    if (chunks.has(name)) return Promise.resolve();
    if (!waiting.has(name)) {
      waiting.set(name, new Promise((resolve, reject) => {
        const script = element("script", { src: `samples/${name}.js` });
        script.onload = resolve;
        script.onerror = () => { waiting.delete(name); reject(new Error(`samples/${name}.js cannot be read`)); };
        document.head.append(script);
      }));
    }
    return waiting.get(name);
  }

  function part(kind, place) {
    const chunk = chunks.get(`${kind}-${Math.floor(place / data.chunk)}`);
    return chunk ? chunk[place % data.chunk] : null;
  }

  const bring = (place) => Promise.all([
    load("answers", Math.floor(place / data.chunk)),
    load("questions", Math.floor(data.question[place] / data.chunk)),
  ]);

  function bringAll() {
    const all = [];
    for (let start = 0; start < data.run.length; start += data.chunk) all.push(load("answers", start / data.chunk));
    const questions = data.question.reduce((most, place) => Math.max(most, place), -1);
    for (let start = 0; start <= questions; start += data.chunk) all.push(load("questions", start / data.chunk));
    return Promise.all(all);
  }

  // --------------------------------------------------------------------------------------------------------- filters

  const runName = (run) => (run.name ? `${run.label}, ${run.name}` : run.label);
  const words = (name) => name.replaceAll("_", " ");

  function options(name, entries, all) {
    const select = find(`by-${name}`);
    if (all) select.append(element("option", { value: "" }, all));
    for (const [value, label] of entries) select.append(element("option", { value }, label));
    // A filter with one choice is none.
    if (all && entries.length < 2) select.parentElement.hidden = true;
  }

  function begin(index) {
    data = index;
    const distinct = (values) => [...new Set(values)];
    options("run", data.runs.map((run, number) => [number, runName(run)]), "all");
    options("benchmark", distinct(data.runs.map((run) => run.benchmark)).map((name) => [name, words(name)]), "all");
    options("kind", distinct(data.kind).filter(Boolean).map((name) => [name, words(name)]), "all");
    options("status", distinct(data.status).sort().map((place) => [place, STATUS[data.statuses[place]]]), "all");
    options("turn", distinct(data.turn).filter((turn) => turn !== null).sort((a, b) => a - b).map((n) => [n, n]), "all");
    options("order", Object.entries(ORDERS));
    let timer = 0;
    form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(filter, 150); });
    form.addEventListener("reset", () => setTimeout(filter));
    form.addEventListener("submit", (event) => event.preventDefault());
    list.addEventListener("scroll", draw);
    list.addEventListener("keydown", move);
    detail.addEventListener("keydown", (event) => { if (event.key === "Escape") list.focus(); });
    new ResizeObserver(draw).observe(list);
    filter();
  }

  async function filter() {
    const asked = ++wanted;
    list.setAttribute("aria-busy", "true");
    const value = (name) => find(`by-${name}`).value;
    const text = value("text").trim().toLowerCase();
    if (text) {
      count.textContent = "Reading all texts …";
      try { await bringAll(); } catch (error) { count.textContent = error.message; return; }
      // Another filter was set meanwhile.
      if (asked !== wanted) return;
    }
    const number = (name) => (value(name) === "" ? null : Number(value(name)));
    const least = number("least"), most = number("most");
    const equal = [["run", data.run], ["kind", data.kind], ["status", data.status], ["turn", data.turn]]
      .filter(([name]) => value(name) !== "").map(([name, of]) => [value(name), of]);
    const benchmark = value("benchmark");
    const chosen = active >= 0 ? found[active] : null;
    found = [];
    for (let place = 0; place < data.run.length; place++) {
      const score = data.score[place];
      if (!equal.every(([wish, of]) => String(of[place]) === wish)) continue;
      if (benchmark && data.runs[data.run[place]].benchmark !== benchmark) continue;
      if (least !== null && !(score !== null && score >= least)) continue;
      if (most !== null && !(score !== null && score <= most)) continue;
      if (text && !searched(place).includes(text)) continue;
      found.push(place);
    }
    const sign = { low: 1, high: -1 }[value("order")];
    // What has no score stands behind, either way.
    if (sign) {
      const key = (place) => (data.score[place] === null ? Infinity : sign * data.score[place]);
      found.sort((a, b) => (key(a) === key(b) ? a - b : key(a) - key(b)));
    }
    const total = data.run.length.toLocaleString("en");
    count.textContent = found.length === data.run.length ? `${total} answers`
      : `${found.length.toLocaleString("en")} of ${total} answers`;
    active = chosen === null ? -1 : found.indexOf(chosen);
    rows.style.height = `${found.length * ROW}px`;
    if (active < 0) list.scrollTop = 0; else show(active);
    draw();
    list.setAttribute("aria-busy", "false");
  }

  function searched(place) {
    const answer = part("answers", place), question = part("questions", data.question[place]);
    answer.searched ??= [question.id, question.question, question.reference, ...(answer.answers || [])]
      .filter(Boolean).join("\n").toLowerCase();
    return answer.searched;
  }

  // ------------------------------------------------------------------------------------------------------------ list

  function draw() {
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - SPARE);
    const last = Math.min(found.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + SPARE);
    const made = [];
    for (let position = first; position < last; position++) made.push(row(position));
    rows.replaceChildren(...made);
    if (active >= first && active < last) list.setAttribute("aria-activedescendant", `row-${active}`);
    else list.removeAttribute("aria-activedescendant");
  }

  function row(position) {
    const place = found[position], question = part("questions", data.question[place]);
    if (!question || !part("answers", place)) bring(place).then(draw, () => {});
    const run = data.runs[data.run[place]];
    const name = question ? question.question || question.id : "…";
    const made = element("div", {
      className: "row", id: `row-${position}`, role: "option", "aria-selected": position === active,
      "aria-setsize": found.length, "aria-posinset": position + 1,
    },
    scoreOf(place),
    element("div", { className: "name" }, name),
    element("div", { className: "from" }, [words(data.kind[place]), turnOf(place), runName(run)].filter(Boolean).join(" · ")));
    made.style.top = `${position * ROW}px`;
    made.addEventListener("click", () => choose(position));
    return made;
  }

  function scoreOf(place) {
    const score = data.score[place];
    if (score === null) return element("div", { className: "score not" }, STATUS[data.statuses[data.status[place]]]);
    return element("div", { className: "score" }, String(Math.round(score * 100) / 100));
  }

  const turnOf = (place) => (data.turn[place] === null ? "" : `turn ${data.turn[place]}`);

  function show(position) {
    const top = position * ROW;
    if (top < list.scrollTop) list.scrollTop = top;
    else if (top + ROW > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW - list.clientHeight;
  }

  function choose(position) {
    active = position;
    show(position);
    draw();
    open(found[position]);
  }

  function move(event) {
    const page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" && active >= 0) detail.focus();
    else if (event.key in steps && found.length) {
      const start = active < 0 && steps[event.key] > 0 ? -1 : active;
      choose(Math.min(found.length - 1, Math.max(0, start + steps[event.key])));
    } else return;
    event.preventDefault();
  }

  // ---------------------------------------------------------------------------------------------------------- sample

  let opened = -1;

  async function open(place) {
    opened = place;
    try { await bring(place); } catch (error) { detail.replaceChildren(element("p", {}, error.message)); return; }
    if (opened !== place) return;
    const answer = part("answers", place), question = part("questions", data.question[place]);
    const run = data.runs[data.run[place]], score = data.score[place];
    const facts = [words(data.kind[place]), turnOf(place), score === null ? STATUS[data.statuses[data.status[place]]]
      : `score ${Math.round(score * 100) / 100}${run.unit ? "" : " %"}`, answer.reason,
    answer.truncated ? "cut inside its reasoning" : "", answer.unread ? "no choice could be read" : ""];
    detail.replaceChildren(
      element("h3", { id: "sample-name" }, question.id),
      element("p", { className: "facts" }, runName(run)),
      element("p", { className: "facts" }, facts.filter(Boolean).join(" · ")),
      ...strips(answer),
      ...history(question),
      ...text("Question", question.question ?? "Not available: the benchmark is not prepared on the machine that made this report."),
      ...choicesOf(question),
      ...text("Reference answer", question.reference || null),
      ...(answer.answers || []).flatMap((said, number, all) =>
        text(all.length > 1 ? `Answer ${number + 1}` : "Answer", said || "(empty)", "said answer")),
      ...(answer.choices ? text("Read as", answer.choices.map((of) => (of === null || of.length === 0 ? "nothing"
        : [].concat(of).join(", "))).join("; ")) : []),
      ...checks(answer.checks),
      ...others(place),
    );
    detail.scrollTop = 0;
  }

  function text(heading, content, className = "said") {
    if (content === null || content === undefined) return [];
    return [element("h4", {}, heading), element("p", { className }, content)];
  }

  function strips(answer) {
    return answer.frames.map((number) => element("img", {
      src: `samples/${data.strips[number].file}`, loading: "lazy",
      alt: `A few of the frames that the model was shown of video ${data.strips[number].video}, in their order`,
    }));
  }

  function history(question) {
    if (!question.history || !question.history.length) return [];
    const turns = question.history.map(([asked, answered]) => element("li", {},
      element("p", { className: "said" }, asked), element("p", { className: "said facts" }, answered)));
    return [element("details", {},
      element("summary", {}, `Dialogue before this turn, with the reference answers (${turns.length})`),
      element("ol", { className: "history" }, ...turns))];
  }

  function choicesOf(question) {
    if (!question.options || !question.options.length) return [];
    const list = question.options.map((option) => element("li", {}, option));
    return [element("h4", {}, "Options"), element("ol", { type: "A" }, ...list)];
  }

  function checks(of) {
    if (!of.length) return [];
    const expected = of.some((check) => check.expected);
    const heads = ["Check", ...(expected ? ["Expected"] : []), "Judge"].map((head) => element("th", { scope: "col" }, head));
    const lines = of.map((check) => {
      const given = check.given.map((word) => {
        const right = word === check.expected;
        if (!expected) return element("span", {}, `${word} `);
        return element("span", { className: right ? "right" : "wrong" }, `${word} ${right ? "✓" : "✗"} `);
      });
      return element("tr", {}, element("td", {}, check.question), expected ? element("td", {}, check.expected) : null,
        element("td", {}, ...(given.length ? given : ["–"])));
    });
    return [element("h4", {}, "Checks"), element("table", {},
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...lines))];
  }

  function others(place) {
    const same = [];
    data.question.forEach((question, other) => { if (question === data.question[place] && other !== place) same.push(other); });
    if (!same.length) return [];
    return [element("h4", {}, "Other runs on this question"), ...same.map((other) => {
      const score = data.score[other];
      const label = `${runName(data.runs[data.run[other]])}: ${score === null ? STATUS[data.statuses[data.status[other]]]
        : Math.round(score * 100) / 100}`;
      const button = element("button", { type: "button" }, label);
      button.addEventListener("click", () => {
        active = found.indexOf(other);
        if (active >= 0) show(active);
        draw();
        open(other).then(() => detail.focus());
      });
      return button;
    })];
  }

  const script = element("script", { src: "samples/index.js" });
  script.onerror = () => { count.textContent = "samples/index.js cannot be read: keep the folder beside the page"; };
  document.head.append(script);
  return { take };
})();
