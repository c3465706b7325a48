// The playground: asks its gateway what would be sent, and shows it. Texts are set as text, never as markup; nothing is
// kept in the browser. Requests are numbered, so that an old answer never takes the place of a newer one.

const EXAMPLE = `Please write a short, friendly reply to Anna Kowalski (anna.kowalski@example.org).

She moved from Lyon to 14 Harbour Street, Bristol on 3 May 2021 and asks why the refund of her deposit went to IBAN DE89 3704 0044 0532 0130 00. Her new landlord, Peter Marsh, can be reached at +44 20 7946 0958.`;

const LETTER = `Hello, I am Anna Kowalski of 14 Harbour Street. The lamp that I ordered on 3 May was due last week, and it is still not here. I waited at home all Friday, and nobody rang. Where is my parcel?`;

const MAX_ROWS = 200; // of a table; later ones are left out
const PAUSE = 180; // milliseconds without a key before a prompt is looked at
const at = (id) => document.getElementById(id);
const made = (name, { text, ...rest } = {}, ...children) => {
  const node = Object.assign(document.createElement(name), rest);
  if (text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
};

// A picture comes as shapes: this page takes no markup.
const SVG = "http://www.w3.org/2000/svg";
function drawn(tag, attributes, text = "", shapes = []) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(text, ...shapes.map((shape) => drawn(...shape)));
  return node;
}
const picture = ({ attributes, shapes }) => drawn("svg", attributes, "", shapes);

const prompt = at("prompt"), answer = at("answer"), sent = at("sent"), restored = at("restored");
let token = "", ownKey = "", offered = [], levels = {}, longest = Infinity;
let number = 0, shown = 0, sentText = "", waiting = 0, restoring = 0, asking = null;

// ---- asking the gateway -----------------------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, code, message) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

async function post(path, body, options = {}) {
  const answered = await fetch(`/playground/${path}`, {
    method: "POST",
    credentials: "omit",
    cache: "no-store",
    redirect: "error",
    ...options,
    headers: { "Content-Type": "application/json", ...(ownKey && { Authorization: `Bearer ${ownKey}` }), ...options.headers },
    body: JSON.stringify(body),
  });
  if (answered.ok) return answered;
  const said = await answered.json().catch(() => ({}));
  throw new Refused(answered.status, said.error?.code, said.error?.message ?? `The gateway answered ${answered.status}.`);
}

// A page that was idle for long is forgotten; then it opens anew, and nobody notices.
async function asked(path, body, options) {
  await ready;
  try {
    return await (await post(path, { token, ...body }, options)).json();
  } catch (error) {
    if (error.code !== "gone" || !["protect", "library", "letter"].includes(path)) throw error;
    await open();
    return await (await post(path, { token, ...body }, options)).json();
  }
}

async function open() {
  const opened = await (await post("open", {})).json();
  ({ token, levels, longest } = opened);
  offered = opened.profiles;
  at("needs").hidden = opened.keys;
}

// A gateway with keys of its own wants one before it says anything.
async function unlock() {
  while (token === "") {
    try {
      await open();
    } catch (error) {
      if (error.status !== 401) throw error;
      if (ownKey) fail(error);
      at("locked").hidden = false;
      at("locked").parentElement.classList.add("locked");
      at("own").focus();
      await new Promise((entered) => at("locked").addEventListener("submit", (event) => {
        event.preventDefault();
        ownKey = at("own").value.trim();
        entered();
      }, { once: true }));
    }
  }
  at("locked").parentElement.classList.remove("locked");
  at("locked").hidden = at("failure").hidden = true;
  at("own").value = "";
}

function fail(error) {
  const lost = error instanceof TypeError ? "The gateway cannot be reached. Is it still running?" : error.message;
  at("failure").textContent = lost.replace(/^textveil: /, "");
  at("failure").hidden = false;
}

// ---- what would be sent -----------------------------------------------------------------------------------------------

const level = () => document.querySelector("input[name=level]:checked")?.value ?? "personal";

function changed(pause = PAUSE) {
  clearTimeout(waiting);
  number += 1;
  sent.classList.add("waiting");
  at("ask").disabled = at("assess").disabled = at("copy").disabled = true;
  waiting = setTimeout(protect, pause, number);
}

async function protect(own) {
  await ready;
  if (own !== number) return;
  const text = prompt.value;
  if (text.length > longest) {
    sent.classList.remove("waiting");
    fail(new Error(`The prompt may have at most ${longest.toLocaleString("en")} characters here.`));
    return;
  }
  try {
    const said = await asked("protect", { number: own, text, profile: at("profile").value, level: level() });
    if (own === number) show(said);
  } catch (error) {
    if (own !== number) return;
    sent.classList.remove("waiting");
    sent.replaceChildren();
    fail(error);
  }
}

function show(said) {
  shown = said.number;
  sentText = said.parts.map(([text]) => text).join("");
  at("failure").hidden = true;
  at("explained").textContent = "";
  sent.classList.remove("waiting");
  sent.replaceChildren(...said.parts.map(([text, look, meaning, original]) => {
    if (look === undefined) return text;
    const mark = made("span", { text, role: "button", className: `mark ${look}`, tabIndex: -1 });
    mark.append(made("span", { text: ` (${meaning})`, className: "hidden-visually" }));
    mark.explain = [text, meaning, original];
    return mark;
  }));
  const first = sent.querySelector(".mark");
  if (first) first.tabIndex = 0;
  at("sent-about").hidden = at("explained").hidden = !first;
  const passed = made("li", {}, made("span", { text: said.passed, className: "swatch plain" }),
    `${said.passed === 1 ? "word or mark" : "words and marks"} sent unchanged`);
  at("legend").replaceChildren(...said.legend.map(({ look, count, says }) =>
    made("li", {}, made("span", { text: count, className: `swatch ${look}` }), says.replace(/^[\d,]+ /, ""))),
    ...(said.passed ? [passed] : []));
  at("hidden").textContent = prompt.value.trim() ? said.hidden : "Type a prompt to read its statement.";
  at("bar").replaceChildren(...(said.bar ? [picture(said.bar.picture), made("ul", { className: "bar-legend" },
    ...said.bar.legend.map(({ look, says }) => made("li", {},
      drawn("svg", { viewBox: "0 0 1 1", "aria-hidden": "true" }, "", [["rect", { width: "1", height: "1", class: look }]]), says)))] : []));
  at("statement").textContent = prompt.value.trim() ? said.statement : "";
  at("explanation").textContent = said.explained;
  at("full").hidden = !prompt.value.trim();
  at("unmeasured").hidden = !said.unmeasured.length;
  at("unmeasured").textContent = `How much textveil finds was not measured for ${said.unmeasured.join(", ")}: check the text closely.`;
  at("status").textContent = said.hidden;
  at("guess").hidden = !said.drawn;
  at("undrawn").hidden = said.drawn;
  at("undrawn").textContent = prompt.value.trim() ? said.undrawn : "Nothing is shown yet.";
  at("risk").replaceChildren();
  at("more").hidden = true;
  at("ask").disabled = !prompt.value.trim() || asking !== null;
  at("assess").disabled = false;
  at("copy").disabled = !sentText || !navigator.clipboard;
  restore();
}

function explain(mark) {
  const [text, meaning, original] = mark.explain;
  for (const other of sent.querySelectorAll(".current")) other.classList.remove("current");
  mark.classList.add("current");
  at("explained").replaceChildren(made("strong", { text }), `: ${meaning}. You wrote `, made("strong", { text: original }), ".");
}

// One stop of the Tab key for all places, and the arrow keys between them.
function move(event) {
  const marks = [...sent.querySelectorAll(".mark")];
  const here = marks.indexOf(document.activeElement);
  const to = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0,
    End: marks.length - 1 }[event.key];
  if (here < 0 || to === undefined || !marks[to]) return;
  event.preventDefault();
  marks[here].tabIndex = -1;
  marks[to].tabIndex = 0;
  marks[to].focus();
}

// ---- what an attacker recovers ----------------------------------------------------------------------------------------

const chances = (parts) => parts.map(([word, look, meaning]) => look === undefined ? word
  : made("span", { text: word, className: `mark ${look}`, title: meaning },
    made("span", { text: ` (${meaning})`, className: "hidden-visually" })));

async function assess() {
  const own = shown, prior = at("prior").value;
  at("assess").disabled = true;
  at("more").hidden = true;
  at("risk").replaceChildren(made("p", { text: "Guessing …", className: "hint" }));
  try {
    const said = await asked("risk", { number: own, prior });
    if (own !== shown || own !== number) return;
    at("risk").replaceChildren(
      made("p", { text: said.sentence, className: "lead" }),
      made("ul", { className: "legend" }, ...said.legend.map(({ look, says }) =>
        made("li", {}, made("span", { text: "a", className: `swatch ${look}`, ariaHidden: "true" }), says))),
      made("p", { text: said.how, className: "hint" }),
      ...(said.caution ? [made("p", { text: said.caution, className: "caution" })] : []));
    at("original").replaceChildren(...chances(said.original));
    at("guessed").replaceChildren(...chances(said.parts));
    at("more").hidden = false;
    compare(own, prior);
  } catch (error) {
    if (own === shown) at("risk").replaceChildren(made("p", { text: error.message, className: "caution" }));
  } finally {
    at("assess").disabled = shown !== number;
  }
}

// The curve takes longer, and comes after the guesses.
let comparing = 0;
async function compare(own, prior) {
  const mine = ++comparing;
  at("curve").replaceChildren(made("p", { text: "Computing …", className: "hint" }));
  const current = () => mine === comparing && own === shown;
  try {
    const { curve, note } = await asked("curve", { number: own, prior });
    if (!current()) return;
    if (!curve) {
      at("curve").replaceChildren(made("p", { text: note, className: "hint" }));
      return;
    }
    const table = made("table", { className: "numbers" },
      made("thead", {}, made("tr", {}, ...curve.head.map((text) => made("th", { text, scope: "col" })))),
      made("tbody", {}, ...curve.rows.map(([first, ...others]) => made("tr", {},
        made("th", { text: first, scope: "row" }), ...others.map((text) => made("td", { text }))))));
    at("curve").replaceChildren(
      made("div", { className: "curve-sides" }, picture(curve.picture), table),
      made("p", { text: curve.note, className: "hint" }));
  } catch (error) {
    if (current()) at("curve").replaceChildren(made("p", { text: error.message, className: "caution" }));
  }
}

// ---- the answer -------------------------------------------------------------------------------------------------------

function said(text) {
  at("restored-about").textContent = text;
}

function left(count) {
  return count ? ` ${count} ${count === 1 ? "placeholder was" : "placeholders were"} left: the prompt has no such ${count === 1 ? "placeholder" : "placeholders"}.` : "";
}

async function restore() {
  if (asking !== null) return;
  const own = ++restoring, text = answer.value;
  restored.classList.remove("failed");
  if (!text) {
    restored.replaceChildren();
    said("");
    return;
  }
  try {
    const back = await asked("restore", { number: shown, answer: text });
    if (own !== restoring) return;
    const marked = back.parts.filter(([, look]) => look).length;
    restored.replaceChildren(...back.parts.map(([word, look, came]) =>
      look === undefined ? word : made("span", { text: word, className: "restored-word", title: `the model wrote ${came}` })));
    said(`${marked || "No"} ${marked === 1 ? "place" : "places"} restored.${left(back.unresolved)}`);
  } catch (error) {
    if (own === restoring && error.code !== "changed") said(error.message);
  }
}

async function* events(body) {
  const reader = body.getReader(), decoder = new TextDecoder();
  for (let held = ""; ;) {
    const { value, done } = await reader.read();
    held += decoder.decode(value, { stream: !done });
    const blocks = held.split("\n\n");
    held = done ? "" : blocks.pop();
    for (const block of blocks) {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim()).join("\n");
      if (data && data !== "[DONE]") yield JSON.parse(data);
      const note = lines.find((line) => line.startsWith(": textveil-unresolved:"));
      if (note) yield { unresolved: Number(note.split(":")[2]) };
    }
    if (done) return;
  }
}

async function ask(event) {
  event.preventDefault();
  if (asking !== null || shown !== number) return;
  const model = at("model").value.trim(), key = at("key").value;
  if (!model) {
    said("Name a model first.");
    at("model").focus();
    return;
  }
  asking = new AbortController();
  at("ask").disabled = true;
  at("stop").hidden = false;
  restored.classList.remove("failed");
  restored.replaceChildren();
  said("Asking …");
  const output = document.createTextNode("");
  restored.append(output);
  let unresolved = 0;
  try {
    const headers = key ? { Authorization: `Bearer ${key}` } : {};
    const answered = await post("ask", { token, number: shown, model }, { headers, signal: asking.signal });
    for await (const each of events(answered.body)) {
      if (each.error) throw new Refused(502, "upstream", each.error.message ?? "The answer broke off.");
      unresolved = each.unresolved ?? unresolved;
      output.appendData(each.choices?.[0]?.delta?.content ?? each.choices?.[0]?.delta?.refusal ?? "");
    }
    said(`Answered by ${model}, restored.${left(unresolved)}`);
  } catch (error) {
    const stopped = error.name === "AbortError";
    restored.classList.toggle("failed", !stopped && !output.data);
    if (!stopped && !output.data) output.data = error.message.replace(/^textveil: /, "");
    said(stopped ? "Stopped." : error.code === "options" || error.code === "changed" ? "Nothing was sent." : "The model did not answer in full.");
    if (error.code === "changed") changed(0);
  } finally {
    asking = null;
    at("stop").hidden = true;
    at("ask").disabled = shown !== number || !prompt.value.trim();
    activity();
  }
}

// ---- a letter ---------------------------------------------------------------------------------------------------------

const letter = at("letter"), tabs = [at("tab-prompt"), at("tab-letter")];
let steps = null, draws = 0, spent = 0, drawing = false;

function select(tab) {
  for (const each of tabs) {
    const is = each === tab;
    each.ariaSelected = String(is);
    each.tabIndex = is ? 0 : -1;
    at(each.getAttribute("aria-controls")).hidden = !is;
  }
  const target = tab === tabs[1] ? "letter" : "prompt";
  at("skip").href = `#${target}`;
  at("skip").textContent = `Skip to the ${target}`;
  if (tab === tabs[1] && steps === null) library();
}

async function library() {
  at("library").textContent = "The library is made ready …";
  try {
    const told = await asked("library", {});
    at("library").textContent = told.advice ?? told.about;
    at("library").className = told.advice ? "caution" : "";
    at("baseline").textContent = told.baseline ?? "";
    steps = told.steps ?? null;
    slide();
  } catch (error) {
    at("library").textContent = error.message;
    at("library").className = "caution";
  }
}

function slide() {
  const step = steps?.[at("epsilon").value];
  at("epsilon-value").textContent = step?.epsilon ?? "";
  at("epsilon").ariaValueText = step?.epsilon ?? "";
  at("chance").textContent = step?.chance ?? "";
  at("replace").disabled = !step || drawing || !letter.value.trim();
}

async function replace() {
  if (letter.value.length > longest) {
    fail(new Error(`The letter may have at most ${longest.toLocaleString("en")} characters here.`));
    return;
  }
  drawing = true;
  slide();
  try {
    const told = await asked("letter", { text: letter.value, step: Number(at("epsilon").value) });
    draws += 1;
    spent += told.epsilon;
    at("failure").hidden = true;
    at("public").textContent = told.text;
    at("source").textContent = told.source;
    at("total").textContent = draws === 1 ? `1 public text was drawn on this page: epsilon ${told.bound}.`
      : `${draws} public texts were drawn on this page: epsilon ${ceiling(spent)} together, if all letters are about one person.`;
    at("letter-statement").textContent = told.statement;
    at("plainly").textContent = told.plainly;
    at("letter-explanation").textContent = told.explained;
    at("letter-full").hidden = false;
    at("kinds").textContent = `Your letter is of the kind ${told.own}, which had a chance of ${told.chance}. `
      + (told.kept ? "It was drawn." : `Drawn was another kind: ${told.drawn}.`);
  } catch (error) {
    fail(error);
  } finally {
    drawing = false;
    slide();
  }
}

// Bounds are rounded up.
const ceiling = (value) => (Math.ceil(value * 1000 - 1e-6) / 1000).toLocaleString("en", { maximumFractionDigits: 3 });

function listenToLetters() {
  for (const tab of tabs) tab.addEventListener("click", () => select(tab));
  tabs[0].parentElement.addEventListener("keydown", (event) => {
    const to = { ArrowRight: 1, ArrowLeft: 1, Home: -tabs.indexOf(event.target), End: 1 - tabs.indexOf(event.target) }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const tab = tabs[(tabs.indexOf(event.target) + to) % tabs.length];
    select(tab);
    tab.focus();
  });
  letter.addEventListener("input", slide);
  at("epsilon").addEventListener("input", slide);
  at("replace").addEventListener("click", replace);
  at("letter-example").addEventListener("click", () => { letter.value = LETTER; slide(); letter.focus(); });
  at("letter-clear").addEventListener("click", () => {
    letter.value = "";
    for (const name of ["public", "source", "kinds", "plainly", "letter-statement", "letter-explanation"]) at(name).textContent = "";
    at("letter-full").hidden = true;
    slide();
    letter.focus();
  });
}

// ---- this gateway -----------------------------------------------------------------------------------------------------

const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const figure = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });

function rows(table, cells) {
  const names = [...at(table).tHead.rows[0].cells].map((cell) => cell.textContent);
  at(table).tBodies[0].replaceChildren(...cells.slice(0, MAX_ROWS).map((row) => made("tr", { role: "row" },
    ...row.map(([text, className = ""], i) => {
      const cell = made("td", { text, className, role: "cell" });
      cell.dataset.name = names[i]; // a narrow screen shows it before the text
      return cell;
    }))));
  at(table).hidden = !cells.length;
}

async function activity() {
  try {
    const found = await asked("activity", {});
    rows("requests", found.requests.map((each) => [[clock.format(each.time * 1000)], [each.operation],
      [each.hidden || "nothing", "wrap"], [`${each.status}${each.reason && ` ${each.reason}`}`], [each.milliseconds.toLocaleString("en"), "end"]]));
    at("no-requests").textContent = found.requests.length ? "" : "None yet.";
    rows("budgets", (found.budgets ?? []).map((each) => [[each.subject], [each.metric], [figure(each.epsilon), "end"],
      [each.releases.toLocaleString("en"), "end"],
      [each.limits.map((one) => `${figure(one.left)} of ${figure(one.most)}${one.days ? ` in ${one.days} days` : ""}`)
        .join(", ") || "no limit", "wrap"]]));
    at("no-budgets").textContent = found.budgets === null
      ? "This gateway keeps no ledger: start it with --store to count spending." : found.budgets.length ? ""
        : "Nothing was spent yet.";
  } catch (error) {
    at("no-requests").textContent = error.message;
  }
}

// ---- the start --------------------------------------------------------------------------------------------------------

function choose() {
  const own = offered.find(({ name }) => name === at("profile").value);
  at("profile-about").textContent = `${own.about[0].toUpperCase()}${own.about.slice(1)}.`;
  at("levels").disabled = !own.looks;
  for (const each of document.querySelectorAll("input[name=level]")) each.checked = each.value === own.level;
  about();
}

function about() {
  const text = at("levels").disabled ? "this profile looks for no private values" : levels[level()];
  at("level-about").textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
}

async function start() {
  await unlock();
  at("profile").replaceChildren(...offered.map(({ name, title }) => made("option", { value: name, text: title })));
  at("level").replaceChildren(...Object.keys(levels).map((name) =>
    made("label", {}, made("input", { type: "radio", name: "level", value: name }), made("span", { text: name }))));
  choose();
}

function listen() {
  at("profile").addEventListener("change", () => { choose(); changed(0); });
  at("level").addEventListener("change", () => { about(); changed(0); });
  prompt.addEventListener("input", () => changed());
  answer.addEventListener("input", restore);
  sent.addEventListener("keydown", move);
  for (const kind of ["focusin", "mouseover", "click"]) {
    sent.addEventListener(kind, (event) => {
      const mark = event.target.closest(".mark");
      if (mark) explain(mark);
    });
  }
  at("example").addEventListener("click", () => { prompt.value = EXAMPLE; changed(0); prompt.focus(); });
  at("clear").addEventListener("click", () => { prompt.value = answer.value = ""; changed(0); prompt.focus(); });
  at("copy").addEventListener("click", async () => {
    await navigator.clipboard.writeText(sentText);
    at("status").textContent = "Copied.";
  });
  at("assess").addEventListener("click", assess);
  at("asking").addEventListener("submit", ask);
  at("stop").addEventListener("click", () => asking?.abort());
  at("refresh").addEventListener("click", activity);
  addEventListener("pagehide", () => {
    navigator.sendBeacon("/playground/close", new Blob([JSON.stringify({ token })], { type: "application/json" }));
    prompt.value = answer.value = letter.value = at("key").value = "";
  });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

sent.dataset.empty = "Nothing yet.";
restored.dataset.empty = "The answer appears here.";
listen();
listenToLetters();
const ready = start();
ready.then(() => { changed(0); activity(); }, fail);
