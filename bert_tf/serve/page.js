// Texts of models and people enter the page as text only, never as HTML.
const byId = id => document.getElementById(id);
const colours = document.body.dataset.colours.split(" ");
// Milliseconds between two looks at models that are being loaded.
const LOADING = 1000;
// More bars are folded away, more texts have no matrix, a longer body has several lines.
const MOST_BARS = 8, MOST_IN_MATRIX = 12, MOST_LETTERS = 90;
const GAP = "[MASK]";
// What inputs are called, in the order in which people fill them in.
const LABELS = {
  text: "Text", text_a: "First text", text_b: "Second text", query: "Query", question: "Question",
  context: "Context", passages: "Passages", choices: "Choices", candidates: "Labels",
};

// ---- Parts of answers ------------------------------------------------------------------------

const figures = value => value.toFixed(3).replace("-", "−");
const share = value => value >= 0 && value < 0.0005 ? "< 0.001" : figures(value);
const note = (...texts) => element("p", {className: "note"}, ...texts);
// A text whose direction is that of its letters.
const words = (name, text, className = "") =>
  element(name, {className: `text ${className}`, dir: "auto"}, text);
const headline = (text, ...rest) => element("p", {className: "headline"},
  element("strong", {dir: "auto"}, text), ...rest.flatMap(each => [" ", each]));
const folded = (title, ...children) =>
  element("details", {}, element("summary", {}, title), ...children);

// A row for each [name, value] under the headings of both. Shares have bars; the greatest are bold.
function bars(rows, headings, areShares = true) {
  const most = Math.max(...rows.map(([, value]) => value));
  const drawn = rows.map(([name, value]) => {
    const isGreatest = areShares && value === most;
    const cell = element("th", {scope: "row"}, words(isGreatest ? "strong" : "span", name));
    if (areShares) {
      const bar = element("div", {className: "bar"});
      bar.style.width = `${100 * Math.min(1, Math.max(0.002, value))}%`;
      cell.append(bar);
    }
    return element("tr", {}, cell, element("td", {}, share(value)));
  });
  const table = some => {
    const head = headings.map(each => element("th", {scope: "col"}, each));
    return element("table", {className: "bars"}, element("tr", {}, ...head), ...some);
  };
  const rest = drawn.slice(MOST_BARS);
  return [table(drawn.slice(0, MOST_BARS)),
    ...rest.length ? [folded(`${rest.length} more`, table(rest))] : []];
}

const byValue = rows => [...rows].sort((a, b) => b[1] - a[1]);

// A text with parts of it replaced: spans are {start, end, node}, offsets in code points.
function marked(text, spans) {
  const letters = Array.from(text), shown = words("p", "", "context");
  let place = 0;
  for (const {start, end, node} of [...spans].sort((a, b) => a.start - b.start)) {
    if (start < place || end <= start) continue;
    shown.append(letters.slice(place, start).join(""), node(letters.slice(start, end).join("")));
    place = end;
  }
  shown.append(letters.slice(place).join(""));
  return shown;
}

const mark = (text, title) => element("mark", {className: "answer", title}, text);

// ---- Answers of tasks: what predict returns, and the row that was asked ------------------------

function label({label, probability, probabilities}) {
  const said = label === null
    ? headline("no label", `the most probable has only ${share(probability)}`)
    : headline(label, share(probability));
  return [said, ...bars(byValue(Object.entries(probabilities)), ["label", "probability"])];
}

function labels({labels, probabilities}) {
  const chips = labels.map(each => words("strong", each, "chip"));
  const said = element("p", {className: "headline"}, ...chips.length ? chips : ["no label"]);
  return [said, ...bars(byValue(Object.entries(probabilities)), ["label", "probability"])];
}

const number = value => [headline(figures(value))];

const numbers = values => bars(Object.entries(values), ["target", "number"], false);

const follows = probability => [
  headline(probability >= 0.5 ? "the second text follows" : "the second text does not follow"),
  ...bars([["follows", probability], ["does not follow", 1 - probability]], ["", "probability"]),
];

function choice({choice, probabilities}, {choices}) {
  const said = choice === null ? "no choice: none is probable enough" : choices[choice];
  return [headline(said), ...bars(choices.map((each, i) => [each, probabilities[i]]),
    ["choice", "probability"])];
}

function answer({answer, start, end, score, nbest}, {context}) {
  const found = start >= 0;
  const node = text => mark(text, `the answer, ${share(score)}`);
  return [
    found ? headline(answer, share(score)) : headline("no answer in the context"),
    marked(context, found ? [{start, end, node}] : []),
    ...nbest.length ? bars(nbest.map(each => [each.answer || "no answer", each.score]),
      ["likeliest answers", "probability"]) : [],
  ];
}

const kinds = [];  // types of entities, in the order in which they were seen

function entities(found, {text}) {
  const spans = found.map(({start, end, type, score}) => ({start, end, node: part => {
    if (!kinds.includes(type)) kinds.push(type);
    const name = `${type} ${share(score)}`;
    const shown = element("span", {className: "word"},
      element("mark", {title: name}, part), element("small", {}, name));
    shown.style.setProperty("--colour", colours[kinds.indexOf(type) % colours.length]);
    return shown;
  }}));
  const count = found.length === 1 ? "1 entity" : `${found.length || "no"} entities`;
  return [headline(count), marked(text, spans)];
}

function gaps(found, {text}) {
  const parts = text.split(GAP);
  const filled = words("p", parts[0], "context");
  found.forEach(([best], i) => filled.append(
    mark(best.token, `gap ${i + 1}, ${share(best.probability)}`), parts[i + 1] ?? ""));
  return [filled, ...found.flatMap((each, i) => bars(
    each.map(({token, probability}) => [token, probability]),
    [found.length > 1 ? `gap ${i + 1}` : "token", "probability"]))];
}

function ranking({order, scores}, {passages}) {
  const areShares = scores.every(each => each >= 0 && each <= 1);
  return bars(order.map((i, rank) => [`${rank + 1}. ${passages[i]}`, scores[i]]),
    ["passages by relevance", "score"], areShares);
}

function cosine(a, b) {
  const dot = (x, y) => x.reduce((sum, each, i) => sum + each * y[i], 0);
  return dot(a, b) / Math.max(Math.sqrt(dot(a, a) * dot(b, b)), 1e-12);
}

// Of vectors that have a bit for each number, in bytes less 128.
function equalBits(a, b) {
  const ones = byte => byte.toString(2).replaceAll("0", "").length;
  const different = a.reduce((sum, each, i) => sum + ones((each + 128) ^ (b[i] + 128)), 0);
  return 1 - different / (8 * a.length);
}

function similarities(vectors, rows, {vectors: form}) {
  const [name, compare] =
    form === "binary" ? ["share of equal bits", equalBits] : ["cosine", cosine];
  const texts = rows.map(each => each.text), size = `${vectors[0].length} numbers`;
  if (texts.length === 1) {
    const first = vectors[0].slice(0, 6).map(figures).join("  ");
    return [headline(`a vector of ${size}`), element("p", {className: "vector"}, `${first} …`),
      note("Write several texts, one a line, to see how similar they are.")];
  }
  const toFirst = texts.slice(1).map((text, i) => [text, compare(vectors[0], vectors[i + 1])]);
  const shown = bars(byValue(toFirst), ["nearest to the first text", name]);
  if (texts.length < 3 || texts.length > MOST_IN_MATRIX) return [words("p", texts[0]), ...shown];
  return [words("p", texts[0]), ...shown,
    folded("All pairs", matrix(texts, (i, j) => compare(vectors[i], vectors[j])))];
}

function matrix(texts, value) {
  const head = texts.map((_, i) => element("th", {scope: "col"}, i + 1));
  const rows = texts.map((text, i) => element("tr", {},
    element("th", {scope: "row"}, words("span", `${i + 1}. ${text}`)),
    ...texts.map((_, j) => {
      const cell = element("td", {}, figures(value(i, j)));
      cell.style.setProperty("--share", `${Math.round(40 * Math.max(0, value(i, j)))}%`);
      return cell;
    })));
  const first = element("th", {scope: "col"}, "text");
  return element("table", {className: "matrix"}, element("tr", {}, first, ...head), ...rows);
}

const plain = answer => [element("pre", {}, JSON.stringify(answer, null, 2))];

// What a model does, and how its answer is shown. A model of `many` takes several rows at once.
const TASKS = {
  TextClassifier: {does: "finds the label of a text", show: label},
  ZeroShotClassifier: {does: "finds which of your labels a text has", show: label},
  MultiLabelClassifier: {does: "finds the labels of a text", show: labels},
  TextRegressor: {does: "gives a text a number", show: number},
  MultiTargetRegressor: {does: "gives a text several numbers", show: numbers},
  NextSentence: {does: "says whether one text follows another", show: follows},
  MultipleChoice: {does: "chooses what goes with a context", show: choice},
  QuestionAnswerer: {does: "finds the answer to a question in a context", show: answer},
  TokenClassifier: {does: "finds the entities in a text", show: entities},
  MaskedLM: {does: `fills each ${GAP} of a text`, show: gaps},
  Reranker: {does: "ranks passages by their relevance to a query", show: ranking},
  TextEmbedder: {does: "makes vectors of texts; similar texts have near vectors",
    show: similarities, many: true},
};
const OTHER = {does: "answers in JSON", show: plain};

// ---- What is asked ------------------------------------------------------------------------------

let models = [], model = null, known = "", request = null;
const written = {};  // what people wrote, by the names of inputs

const task = () => TASKS[model.task] || OTHER;
const isOneALine = input => input.is_list || task().many;
const dtypes = () => [...new Set(model.inputs.map(each => each.dtype))].join(" and ");
const areTexts = () => dtypes() === "string";
const isAskedHere = () => model.task && areTexts();
const lines = text => text.split("\n").filter(each => each.trim());
const field = input => byId(`input-${input.name}`);
const inOrder = inputs => {
  const names = Object.keys(LABELS);
  return [...inputs].sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name));
};

function rows() {
  if (task().many) {
    const [input] = model.inputs;
    return lines(field(input).value).map(text => ({[input.name]: text}));
  }
  return [Object.fromEntries(inOrder(model.inputs).map(input =>
    [input.name, input.is_list ? lines(field(input).value) : field(input).value]))];
}

function fill(row) {
  for (const input of model.inputs) {
    const value = [row[input.name]].flat().join("\n");
    field(input).value = written[input.name] = value;
  }
  showPrograms();
}

// The name of the model in the address of the page.
function ofHash() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return "";
  }
}

// An address of the server, which may be behind a path of another one.
const address = path => new URL(path, location.href.split("#")[0]).href.replaceAll("'", "%27");

// The address, the body and the key of the answer.
function asked() {
  if (isAskedHere()) return [address("predict"), {model: model.name, inputs: rows()}, "answers"];
  const value = input => input.dtype === "string" ? "a text" : 1;
  const row = Object.fromEntries(model.inputs.map(input =>
    [input.name, input.is_list ? [value(input), value(input)] : value(input)]));
  const instances = model.examples.length ? model.examples.slice(0, 1) : [row];
  const path = `v1/models/${encodeURIComponent(model.name)}:predict`;
  return [address(path), {instances}, "predictions"];
}

// What fits is on one line. JSON has no line breaks within its texts.
function formatted(body) {
  const json = JSON.stringify(body, null, 2), line = json.replace(/\n\s*/g, " ");
  return line.length <= MOST_LETTERS ? line : json;
}

// A body has texts, numbers, lists and objects: its JSON is Python too.
function showPrograms() {
  const [url, body, key] = asked(), json = formatted(body);
  byId("curl").querySelector("pre").textContent = `curl '${url}' \\
  -H 'Content-Type: application/json' \\
  -d @- <<'JSON'
${json}
JSON
`;
  byId("python").querySelector("pre").textContent = `import json
from urllib.request import Request, urlopen

body = ${json}
headers = {"Content-Type": "application/json"}
request = Request("${url}", json.dumps(body).encode(), headers)
with urlopen(request) as response:
    print(json.load(response)["${key}"])
`;
}

// ---- Asking ------------------------------------------------------------------------------------

// An answer with its tokens, both as they were received.
function show(nodes = [], tokens = [null], found = undefined) {
  byId("answer").replaceChildren(...nodes);
  byId("answer").removeAttribute("aria-busy");
  showTokens(tokens);
  byId("json").hidden = found === undefined;
  // Vectors have too many numbers for a line each.
  const json = JSON.stringify(found, null, task().many ? 0 : 2) ?? "";
  byId("json").querySelector("pre").textContent = json;
}

const fail = message => show([element("p", {className: "error"}, message)]);

async function received(path, options) {
  const response = await fetch(address(path), options).catch(error => {
    throw error.name === "AbortError" ? error : new Error("the server does not answer");
  });
  const body = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(body.error || `the server answers ${response.status}`);
  return body;
}

async function ask() {
  const inputs = rows(), mine = stop();
  const empty = model.inputs.find(input => isOneALine(input) && !lines(field(input).value).length);
  if (empty) return fail(`write at least one line as ${named(empty).toLowerCase()}`);
  byId("answer").setAttribute("aria-busy", "true");
  try {
    const body = JSON.stringify({model: model.name, inputs, tokens: true});
    const found = await received("predict", {method: "POST", body, signal: mine.signal,
      headers: {"Content-Type": "application/json"}});
    const {show: shown, many} = task();
    const answer = many ? found.answers : found.answers[0];
    show(shown(answer, many ? inputs : inputs[0], model), found.tokens, answer);
  } catch (error) {
    if (error.name !== "AbortError") fail(error.message);
  }
  if (request === mine) byId("answer").scrollIntoView({block: "nearest"});
}

// Ends the request that is under way; a new one may begin.
function stop() {
  request?.abort();
  return request = new AbortController();
}

function showTokens(found) {
  byId("tokens").hidden = !found[0];
  if (!found[0]) return;
  const cut = found.filter(each => each.cut);
  const most = found.reduce((a, b) => b.count > a.count ? b : a);
  byId("tokens").querySelector("summary").textContent =
    `${found.length > 1 ? "At most " : ""}${most.count} tokens`;
  for (const each of cut.slice(0, 1)) {
    const of = cut.length > 1 ? ` In all, ${cut.length} texts were cut.` : "";
    byId("answer").append(element("p", {className: "note warning"},
      `${each.cut} of ${each.count} tokens were cut: the model reads ${each.max_length}.${of}`));
  }
  const about =
    `The counts include special tokens. The model reads ${most.max_length} tokens at once.`;
  byId("tokens").querySelector("div").replaceChildren(note(about),
    ...inOrder(model.inputs).flatMap(input => pieces(input, found)));
}

// The pieces of all texts of an input.
function pieces(input, found) {
  return found.flatMap(each => each.pieces[input.name]).flatMap((text, i, {length}) => [
    element("h3", {}, length > 1 ? `${named(input)} ${i + 1} ` : `${named(input)} `,
      element("small", {}, `${text.length} ${text.length === 1 ? "token" : "tokens"}`)),
    element("p", {className: "tokens"}, ...text.map(piece => words("span", piece))),
  ]);
}

// ---- The form ----------------------------------------------------------------------------------

const named = input => LABELS[input.name] || input.name;

function inputField(input) {
  const id = `input-${input.name}`;
  const hint = isOneALine(input) ? element("span", {className: "note"}, ", one a line") : "";
  const isLong = isOneALine(input) || ["text", "context"].includes(input.name);
  const area = element("textarea", {id, rows: isLong ? 4 : 2, dir: "auto", spellcheck: false,
    value: written[input.name] || ""});
  area.addEventListener("input", () => {
    written[input.name] = area.value;
    showPrograms();
  });
  return element("div", {className: "field"}, element("label", {htmlFor: id}, named(input), hint),
    area);
}

function example(row) {
  const text = inOrder(model.inputs).map(input => [row[input.name]].flat().join(", ")).join(" · ");
  const button = element("button", {type: "button", dir: "auto", title: text}, text);
  button.addEventListener("click", () => {
    fill(row);
    ask();
  });
  return button;
}

function choose(name) {
  const found = models.find(each => each.name === name && !each.error);
  if (!found) return;
  model = found;
  stop();
  show();
  byId("model").value = name;
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  document.title = `${name} · bert-tf serve`;
  const here = isAskedHere();
  byId("about").textContent = here
    ? [`${model.task} ${task().does}`, `version ${model.version}`,
      ...model.max_length ? [`reads ${model.max_length} tokens at once`] : []].join(" · ")
    : `${name} ${areTexts() ? "has no task of bert_tf" : `takes ${dtypes()}, not texts`}; `
      + "query it over REST, as shown below.";
  byId("inputs").replaceChildren(...here ? inOrder(model.inputs).map(inputField) : []);
  byId("examples").replaceChildren(...here && model.examples.length
    ? [element("span", {className: "note"}, "Try"), ...model.examples.map(example)] : []);
  document.querySelector(".actions").hidden = !here;
  byId("answered").hidden = !here;
  byId("programs").hidden = false;
  showPrograms();
}

function option(each) {
  const made = new Option(each.error ? `${each.name} (not ready)` : each.name, each.name);
  made.disabled = Boolean(each.error);
  return made;
}

// Looks which models there are, until all are loaded.
async function look() {
  try {
    const body = await received("models"), text = JSON.stringify(body);
    models = body.models;
    if (text !== known) {
      byId("model").replaceChildren(...models.map(option));
      const ready = models.filter(each => !each.error);
      byId("model").disabled = !ready.length;
      const isThere = models.some(each => each.name === ofHash());
      const name = isThere ? ofHash() : ready[0]?.name;
      const found = ready.find(each => each.name === name);
      if (!found) byId("about").textContent = `Loading ${name ?? "the models"} …`;
      else if (JSON.stringify(found) !== JSON.stringify(model)) choose(name);
      else byId("model").value = name;
    }
    known = text;
    if (models.some(each => each.error)) setTimeout(look, LOADING);
  } catch (error) {
    byId("about").textContent = `Error: ${error.message}`;
    known = "";
    setTimeout(look, LOADING);
  }
}

async function copy(button) {
  const text = button.parentElement.querySelector("pre");
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {  // a page that came without HTTPS has no clipboard
    getSelection().selectAllChildren(text);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

byId("ask").addEventListener("submit", event => {
  event.preventDefault();
  ask();
});
document.addEventListener("keydown", event => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  if (model && isAskedHere()) ask();
});
byId("model").addEventListener("change", () => choose(byId("model").value));
addEventListener("hashchange", () => choose(ofHash()));
document.querySelectorAll("#programs button").forEach(button =>
  button.addEventListener("click", () => copy(button)));
look();
