"use strict";
// Draws the page from #data, which report_page.py writes: deflated JSON in base64. All text from the data
// becomes text nodes, since tree paths may contain any character.

let data, runs;
const tip = document.getElementById("tip");
let current = 0; // index of the run that the sections about one run show

//----------------------------------------------------------------------
// Elements, numbers
//----------------------------------------------------------------------

function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {}))
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  element.append(...children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== ""));
  return element;
}

function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(Math.max(0, digits - 1)).replace(/\.?0+e/, "e");
  return Number(value.toPrecision(Math.max(digits, Math.ceil(Math.log10(size + 1))))).toLocaleString("en", { maximumFractionDigits: 6 });
}

function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]])
    if (Math.abs(value) >= size) return `${(value / size).toFixed(value / size < 10 ? 2 : 1)} ${unit}`;
  return `${value} B`;
}

function time(microseconds) {
  return microseconds >= 1000 ? `${number(microseconds / 1000, 3)} ms` : `${number(microseconds, 3)} µs`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 60) return `${number(seconds, 3)} s`;
  return seconds < 3600 ? `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s` : `${Math.floor(seconds / 3600)} h ${Math.round(seconds % 3600 / 60)} min`;
}

const percent = fraction => `${number(100 * fraction, 3)} %`;
const words = text => text.replace(/_/g, " ");
const shortType = type => type.replace(/^f8/, "").replace(/FN(UZ)?$/, "");
const shortName = path => { const keys = path.match(/'([^']*)'|\.(\w+)$/g); return keys ? keys[keys.length - 1].replace(/[.']/g, "") : path; };

// A series of equal values is stored as that value.
const at = (series, i) => Array.isArray(series) ? series[i] : series;

/** Returns a location as a link to its source line, if the page has it. */
function source(location) {
  const found = /^([^\s:]+):(\d+)/.exec(location || "");
  if (!found || !data.sources[found[1]]) return location || "unknown";
  return h("a", { href: `#${sourceId(found[1], found[2])}`, onclick: () => {
    const folder = document.getElementById(sourceId(found[1], found[2]))?.closest("details");
    if (folder) folder.open = true;
  } }, location);
}
const sourceId = (file, line) => `source-${file.replace(/[^\w.-]/g, "_")}-${line}`;

function sourceText(location) {
  const found = /^([^\s:]+):(\d+)/.exec(location || "");
  const line = found && data.sources[found[1]]?.lines.find(([i]) => i === Number(found[2]));
  return line ? line[1].trim() : "";
}

function showTip(text, x, y) {
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(x + 14, innerWidth - box.width - 8))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(8, y - box.height - 12) : y + 18}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });

function table(header, rows, numeric = [], kind = null) {
  const cell = (tag, value, i) => h(tag, { class: numeric.includes(i) ? "number" : null }, value === null || value === undefined ? "–" : value);
  return h("div", { class: "scroll" }, h("table", { class: kind },
    header ? h("thead", {}, h("tr", {}, header.map((value, i) => cell("th", value, i)))) : null,
    h("tbody", {}, rows.map(row => h("tr", {}, row.map((value, i) => cell(i === 0 ? "th" : "td", value, i)))))));
}

function select(label, options, chosen, change) {
  return h("label", {}, label, " ", h("select", { onchange: event => change(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: String(value) === String(chosen) ? "" : null }, text))));
}

function section(id, title, hint, ...children) {
  return h("section", { id }, h("h2", {}, title), hint ? h("p", { class: "hint" }, hint) : null, children);
}

//----------------------------------------------------------------------
// Charts
//----------------------------------------------------------------------

// Okabe and Ito's colours, which colour-blind readers can distinguish; runs differ in dashes too.
const COLORS = { light: ["#0072b2", "#d55e00", "#009e73", "#b0568f", "#8a6d00", "#3a3f47"], dark: ["#56b4e9", "#e69f00", "#2fc39a", "#dd92bd", "#f0e442", "#c9d1db"] };
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3], [4, 4], [1, 3]];
const VIRIDIS = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];
const dark = matchMedia("(prefers-color-scheme: dark)");
const color = i => { const list = COLORS[dark.matches ? "dark" : "light"]; return list[i % list.length]; };
const style = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function viridis(fraction) {
  const position = Math.max(0, Math.min(1, fraction)) * (VIRIDIS.length - 1), i = Math.min(VIRIDIS.length - 2, Math.floor(position));
  return VIRIDIS[i].map((low, channel) => Math.round(low + (VIRIDIS[i + 1][channel] - low) * (position - i)));
}

const charts = new Map(); // canvas -> the function that makes its chart

/** Returns a canvas with the chart of `config`; it is redrawn when the colours change. */
function chart(height, label, config) {
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const box = h("div", { class: "chart", style: `height:${height}px` }, canvas);
  const make = () => new Chart(canvas, config());
  charts.set(canvas, { make });
  return box;
}

function drawCharts() {
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  Chart.defaults.font.size = 12;
  Chart.defaults.color = style("--soft");
  Chart.defaults.borderColor = style("--grid");
  Chart.defaults.animation = false;
  Chart.defaults.responsive = true;
  Chart.defaults.maintainAspectRatio = false;
  for (const [canvas, entry] of charts) {
    if (!canvas.isConnected) { entry.chart?.destroy(); charts.delete(canvas); continue; }
    if (!entry.chart) entry.chart = entry.make();
  }
}
dark.addEventListener("change", () => { for (const entry of charts.values()) { entry.chart?.destroy(); entry.chart = null; } drawCharts(); });

const axis = (text, more = {}) => ({ title: { display: !!text, text }, grid: { color: style("--grid"), drawBorder: false }, ...more });
const legend = { position: "top", align: "start", labels: { usePointStyle: true, boxWidth: 22, boxHeight: 7, padding: 12 } };
const shortened = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
const compact = value => value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(1).replace(".0e", "e").replace("e+", "e") : value.toLocaleString("en", { maximumFractionDigits: 4 });

/** Draws lines over steps, each {label, steps, values, color, dash, width, points}. */
function lines(height, label, series, { y = "", logarithmic = false, showLegend = true, x = "step", suffix = "" } = {}) {
  const range = drawn => {
    // Centre a constant on its axis.
    const values = drawn.flatMap(s => s.values).filter(value => value !== null && value !== undefined);
    const low = Math.min(...values), margin = Math.abs(low) * 0.1 || 1;
    return values.length && values.every(value => value === low) && !logarithmic ? { min: low ? low - margin : 0, max: low + margin } : {};
  };
  return chart(height, label, () => ({
    type: "line",
    data: { datasets: series().map(s => ({
      label: s.label, data: s.steps.map((step, i) => ({ x: step, y: s.values[i] })), borderColor: s.color, backgroundColor: s.color, borderDash: s.dash || [],
      borderWidth: s.width ?? 2, pointRadius: s.points ? 4 : s.steps.length < 3 ? 3 : 0, pointStyle: s.pointStyle || (s.steps.length < 3 ? "circle" : "line"), pointHoverRadius: 4, pointHitRadius: 6, showLine: !s.points, spanGaps: true, order: s.order || 0 })) },
    options: {
      interaction: { mode: "nearest", axis: "x", intersect: false },
      plugins: { legend: { ...legend, display: showLegend, labels: legend.labels },
        tooltip: { callbacks: { title: items => items.length ? `${x} ${number(items[0].parsed.x, 7)}` : "", label: item => ` ${item.dataset.label}: ${number(item.parsed.y, 5)}${suffix}` } } },
      scales: { x: axis(x, { type: "linear", ticks: { maxRotation: 0, callback: value => Number.isInteger(value) ? value.toLocaleString("en") : "" } }),
        y: axis(y, { ...range(series()), type: logarithmic ? "logarithmic" : "linear", ticks: { maxTicksLimit: 8, callback: compact } }) },
    },
  }));
}

/** Returns an average over about a hundredth of the run. */
function smoothed(values) {
  const decay = Math.exp(-1 / Math.max(1, values.length / 100));
  let sum = 0, weight = 0;
  return values.map(value => {
    if (value !== null) { sum = decay * sum + value; weight = decay * weight + 1; }
    return weight ? sum / weight : null;
  });
}

//----------------------------------------------------------------------
// All runs: summary, loss, metrics
//----------------------------------------------------------------------

const peakMemory = run => run.memory?.peak_rss;
const arena = run => run.memory?.step?.arena_planned;
function median(values) {
  const sorted = values.filter(value => value !== null).sort((a, b) => a - b);
  const half = sorted.length / 2;
  return sorted.length ? (sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2 : null;
}
function worstSnr(run) {
  let worst = null;
  for (const [name, , , , metrics] of run.trace?.tensors || [])
    run.trace.last.forEach((step, i) => {
      const value = at(metrics.snr ?? null, i);
      if (value !== null && value !== undefined && (!worst || value < worst.value)) worst = { value, name, step };
    });
  return worst;
}
const SUMMARY = [
  ["recipe", run => run.recipe.name || "–"],
  ["steps", run => number(run.steps, 9)],
  ["loss, last step", run => number(run.loss[1], 5)],
  ["loss, mean of the last 20", run => number(run.mean_loss_20, 5)],
  ["held-out loss, last", run => number(run.log.heldout_loss[run.log.heldout_loss.length - 1], 5)],
  ["tokens/s, median", run => number(median(run.log.tokens_per_second), 6)],
  ["time", run => duration(run.seconds)],
  ["dots in FP8", run => run.verdicts ? `${run.verdicts.fp8} of ${run.verdicts.total}` : "–"],
  ["fallbacks", run => run.verdicts ? number(run.verdicts.fallback) : "–"],
  ["arena, planned", run => bytes(arena(run))],
  ["process, at most", run => bytes(peakMemory(run))],
  ["worst SNR", run => { const worst = worstSnr(run); return worst ? `${number(worst.value, 3)} dB` : "–"; }],
  ["alarms", run => number(run.log.alarm_count)],
  ["skipped steps", run => number(run.log.skipped.length)],
];

function summarySection() {
  const content = runs.length > 1
    ? table(["", ...runs.map((run, i) => h("span", {}, h("i", { class: "key", style: `background:${color(i)}` }), run.name))],
      SUMMARY.map(([label, value]) => [label, ...runs.map(value)]), runs.map((_, i) => i + 1))
    : h("div", { class: "tiles" }, SUMMARY.map(([label, value]) => h("div", { class: "tile" }, h("b", {}, value(runs[0])), h("span", {}, label))));
  const notes = runs.flatMap(run => run.notes.map(note => runs.length > 1 ? `${run.name}: ${note}` : note));
  return section("summary", "Summary", "", content, notes.length ? h("ul", { class: "notes" }, notes.map(note => h("li", {}, note))) : null);
}

function lossSection() {
  const of = run => runs.length > 1 ? `${run.name}, ` : "";
  const marks = (run, label, at, pointStyle, color) => {
    const steps = new Set(at), shown = run.log.step.map((step, k) => [step, run.log.loss[k]]).filter(([step]) => steps.has(step));
    return { label, steps: shown.map(([step]) => step), values: shown.map(([, loss]) => loss), color, points: true, pointStyle, order: -2 };
  };
  const series = () => runs.flatMap((run, i) => [
    { label: `${of(run)}train, smoothed`, steps: run.log.step, values: smoothed(run.log.loss), color: color(i), dash: DASHES[i % 6], width: 2.2 },
    ...(runs.length < 4 ? [{ label: `${of(run)}train`, steps: run.log.step, values: run.log.loss, color: color(i) + "80", width: 1, order: 2 }] : []),
    ...(run.log.heldout_step.length ? [{ label: `${of(run)}held out`, steps: run.log.heldout_step, values: run.log.heldout_loss, color: color(runs.length > 1 ? i : 1), points: true, pointStyle: ["circle", "triangle", "rect", "star", "rectRounded", "cross"][i % 6], order: -1 }] : []),
    ...(run.log.alarms.length ? [marks(run, `${of(run)}alarm`, run.log.alarms.map(([step]) => step), "rectRot", color(runs.length > 1 ? i : 2))] : []),
    ...(run.log.skipped.length ? [marks(run, `${of(run)}skipped by an alarm`, run.log.skipped, "crossRot", style("--fallback"))] : []),
  ]);
  const body = h("div");
  const draw = logarithmic => { body.replaceChildren(lines(runs.length > 2 ? 400 : 340, "Loss by step", series, { y: "loss", logarithmic })); drawCharts(); };
  queueMicrotask(() => draw(false));
  const stride = Math.max(...runs.map(run => run.log.stride));
  const alarms = runs.filter(run => run.log.alarm_count).map(run => h("details", { class: "alarms" }, h("summary", {}, `${of(run)}${run.log.alarm_count} ${run.log.alarm_count === 1 ? "alarm" : "alarms"}`),
    h("ul", { class: "notes" }, run.log.alarms.map(([, text]) => h("li", {}, text)), run.log.alarm_count > run.log.alarms.length ? h("li", {}, `and ${run.log.alarm_count - run.log.alarms.length} more`) : null)));
  return section("loss", "Loss", stride > 1 ? `Every ${stride}th step is drawn.` : "",
    h("div", { class: "controls" }, select("scale", [["", "linear"], ["log", "logarithmic"]], "", value => draw(!!value))), body, alarms);
}

function metricsSection() {
  const charted = [];
  const add = (title, stepsOf, valuesOf) => charted.push(h("div", {}, h("h3", { title }, runs.length ? shortName(title) : ""),
    lines(190, title, () => runs.map((run, i) => ({ label: run.name, steps: stepsOf(run), values: valuesOf(run), color: color(i), dash: DASHES[i % 6], width: 1.6 })).filter(s => s.values), { showLegend: runs.length > 1, x: "step" })));
  for (const name of new Set(runs.flatMap(run => Object.keys(run.log.metrics)))) add(name, run => run.log.step, run => run.log.metrics[name]);
  for (const name of new Set(runs.flatMap(run => Object.keys(run.log.heldout_metrics)))) add(`held out ${name}`, run => run.log.heldout_step, run => run.log.heldout_metrics[name]);
  add("tokens per second", run => run.log.step, run => run.log.tokens_per_second);
  return section("metrics", "Metrics", "Every scalar result of the step, and the speed.", h("div", { class: "grid" }, charted));
}

//----------------------------------------------------------------------
// One run: the model and the verdicts
//----------------------------------------------------------------------

const ROLES = { forward: "fwd", dgrad: "dgrad", wgrad: "wgrad", embedding: "emb", attention: "attn", other: "other" };
const ORDER = ["forward", "dgrad", "wgrad", "embedding", "attention", "other"];
const VERDICTS = { fp8: "FP8", high_precision: "high precision", fallback: "fallback" };

function dots(verdicts) {
  return verdicts.dots.map(([row, label, placed, fields, sizes, notes]) => {
    const dot = { row: verdicts.texts[row], label: verdicts.texts[label], placed, sizes, notes: notes.map(i => verdicts.texts[i]) };
    verdicts.fields.forEach((field, i) => { dot[field] = verdicts.texts[fields[i]]; });
    return dot;
  });
}

function dotText(dot) {
  const [batch, m, n, k] = dot.sizes;
  return [`${dot.layer || dot.category} · ${dot.role}`, `${VERDICTS[dot.verdict]}: ${dot.reason}`, `${dot.lhs}${dot.lhs_tile ? ` (${dot.lhs_tile})` : ""} × ${dot.rhs}${dot.rhs_tile ? ` (${dot.rhs_tile})` : ""}`,
    `${batch > 1 ? `${batch} × ` : ""}m ${m}, n ${n}, k ${k}`, dot.location, sourceText(dot.location)].filter(Boolean).join("\n");
}

function modelSection(run) {
  const verdicts = run.verdicts;
  const title = "Model: the verdict of every dot";
  if (!verdicts) return section("model", title, "", h("p", { class: "hint" }, "The run has no verdicts.json."));
  const layers = new Map();
  for (const dot of dots(verdicts)) {
    if (!layers.has(dot.row)) layers.set(dot.row, new Map());
    const blocks = layers.get(dot.row);
    if (!blocks.has(dot.label)) blocks.set(dot.label, []);
    blocks.get(dot.label).push(dot);
  }
  const details = h("div", { class: "details" }, h("p", { class: "hint" }, "Click a dot for its op, its place in the source and its tensors."));
  let chosen = null;
  const show = (dot, button) => {
    chosen?.classList.remove("chosen");
    (chosen = button).classList.add("chosen");
    const tensors = (run.trace?.tensors || []).filter(([name]) => dot.layer && (name === dot.layer || name.startsWith(dot.layer + ".")));
    const op = /\(([^()]*)\)$/.exec(dot.location);
    details.replaceChildren(h("p", {}, h("b", {}, `${dot.layer || dot.category}, ${dot.role}`), dot.placed ? " (placed by its order in the step)" : ""),
      h("p", {}, `${VERDICTS[dot.verdict]}: ${dot.reason}`),
      h("p", {}, `op ${op ? op[1] : "dot_general"} in function ${dot.function}: ${dotText(dot).split("\n").slice(2, 4).join(", ")}`),
      h("p", {}, "source ", source(dot.location), " ", h("code", {}, sourceText(dot.location))),
      ...dot.notes.map(note => h("p", { class: "hint" }, note)),
      tensors.length ? h("p", {}, "tensors ", ...tensors.map(([name]) => [h("a", { href: "#heat", onclick: () => run.showTensor?.(name) }, name.slice(dot.layer.length + 1) || "parameter"), " "])) : "");
  };
  const mark = { fp8: "", high_precision: "", fallback: "! " };
  const button = dot => {
    const formats = dot.lhs === dot.rhs ? shortType(dot.lhs) : `${shortType(dot.lhs)}·${shortType(dot.rhs)}`;
    return h("button", { class: `dot ${dot.verdict}`, type: "button", "aria-label": dotText(dot), onclick: event => { hideTip(); show(dot, event.currentTarget); },
      onpointermove: event => { if (event.pointerType === "mouse") showTip(dotText(dot), event.clientX, event.clientY); }, onpointerleave: hideTip },
      h("span", {}, small ? mark[dot.verdict] || ROLES[dot.role][0].toUpperCase() : mark[dot.verdict] + ROLES[dot.role]), h("span", {}, formats));
  };
  const small = layers.size > 16;
  const times = blocks => /^(\d+) times in a loop$/m.exec([...blocks.values()][0][0].notes.join("\n"));
  const picture = [...layers].map(([row, blocks]) => h("div", { class: "layer" }, h("b", {}, row, times(blocks) ? ` × ${times(blocks)[1]}` : ""), h("div", { class: "blocks" },
    [...blocks].map(([label, list]) => h("div", { class: list.length > 3 ? "block many" : "block" }, h("span", { title: label }, label), list.sort((a, b) => ORDER.indexOf(a.role) - ORDER.indexOf(b.role)).map(button))))));
  const counts = ["fp8", "high_precision", "fallback"];
  const state = verdicts.state.filter(([, from, to]) => from !== to);
  const gated = verdicts.gated_units.map(([layer, activation, granularity, reason, location]) => [layer, reason || `${activation}, one factor a ${granularity}`, source(location)]);
  const softmaxes = verdicts.softmaxes.map(([scores, pass, batch, queries, keys, reason, location]) => [scores === "stored" ? "! stored" : scores, pass, `${batch} × ${queries} × ${keys}`, reason, source(location)]);
  const collectives = verdicts.collectives.map(([what, operation, shape, from, wire, block, size, reason]) => [what, operation, shape.join(" × ") || "one number", from === wire ? from : `${from} as ${wire}${block ? `, a scale a ${block}` : ""}`, bytes(size), reason]);
  const stored = verdicts.softmaxes.filter(([scores]) => scores === "stored").length;
  return section("model", title, `${verdicts.summary}. Recipe ${verdicts.recipe}.`,
    h("div", { class: "share", role: "img", "aria-label": counts.map(c => `${verdicts[c]} ${VERDICTS[c]}`).join(", ") }, counts.map(c => h("i", { class: c, style: `flex:${verdicts[c]}` }))),
    h("div", { class: "legend" }, counts.map(c => h("span", {}, h("i", { class: `key ${c}` }), `${c === "fallback" ? "! " : ""}${VERDICTS[c]}: ${verdicts[c]}`))),
    h("div", { id: "picture", class: small ? "small" : null }, picture), details,
    softmaxes.length ? [h("h3", {}, "Softmaxes over scores"), h("details", {}, h("summary", {}, `${stored} of ${softmaxes.length} store them`), table(["scores", "pass", "batch × queries × keys", "why", "source"], softmaxes))] : null,
    gated.length ? [h("h3", {}, "Gated units"), h("details", {}, h("summary", {}, `${gated.length} of them`), table(["layer that reads it", "smoothing", "source"], gated))] : null,
    collectives.length ? [h("h3", {}, "Between ranks"), h("details", {}, h("summary", {}, `${collectives.length} collectives`), table(["what", "operation", "shape", "travels as", "bytes", "why"], collectives, [4]))] : null,
    state.length ? [h("h3", {}, "State stored otherwise"), table(["kind", "from", "stored as", "bytes"], state.map(([kind, from, to, tile, size]) => [kind, from, to + (tile ? `, a scale a ${tile}` : ""), bytes(size)]), [3])] : null);
}

//----------------------------------------------------------------------
// One run: heat maps of the trace
//----------------------------------------------------------------------

const METRICS = {
  amax: ["amax, largest |x|", true], scale: ["scale", true], scale_min: ["smallest scale", true], underflow: ["underflow, fraction", true], saturation: ["saturation, fraction", true],
  snr: ["SNR in dB", false], kurtosis: ["kurtosis", true], alignment_max: ["largest |cos(w1, w2)|", false], alignment_mean: ["mean |cos(w1, w2)|", false], update_rms: ["update RMS", true],
};

/** Returns the colour of a value within the range of all rows: logarithmic if all are positive and far apart. */
function colorScale(rows, columns, mayBeLogarithmic) {
  let low = Infinity, high = -Infinity, positive = Infinity;
  for (const { series } of rows)
    for (let i = 0; i < columns; i++) {
      const value = at(series, i);
      if (value === null || value === undefined) continue;
      low = Math.min(low, value); high = Math.max(high, value);
      if (value > 0) positive = Math.min(positive, value);
    }
  const logarithmic = mayBeLogarithmic && low >= 0 && positive < Infinity && high > 20 * positive;
  if (logarithmic) low = positive;
  const fraction = value => high <= low ? 0.5 : logarithmic ? value <= 0 ? 0 : Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return { low, high, logarithmic, fraction, middle: logarithmic ? Math.sqrt(low * high) : (low + high) / 2 };
}

function heatSection(run) {
  const title = "Tensors: layer × step";
  const trace = run.trace;
  if (!trace) return section("heat", title, "", h("p", { class: "hint" }, "The run has no trace.jsonl: fp8-run --trace writes it."));
  const order = new Map(run.verdicts ? dots(run.verdicts).map((dot, i) => [dot.label, i]).reverse() : []);
  const metrics = Object.keys(METRICS).filter(metric => trace.tensors.some(t => metric in t[4]));
  const columns = trace.first.length;
  const stepText = i => trace.first[i] === trace.last[i] ? `step ${trace.last[i]}` : `steps ${trace.first[i]} to ${trace.last[i]}, the worst`;
  let metric = metrics.includes("snr") ? "snr" : metrics[0], part = null, tensor = null;
  const body = h("div"), controls = h("div", { class: "controls" }), single = h("div");

  const rank = name => { const i = ["activation", "weight", "gradient", "parameter"].indexOf(name.split(".")[0]); return i < 0 ? 9 : i; };
  const partsOf = () => [...new Set(trace.tensors.filter(t => metric in t[4]).map(t => t[1]))].sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const rowsOf = () => trace.tensors.filter(t => metric in t[4] && t[1] === part)
    .map(([name, , layer, label, values]) => ({ name, layer, label: layer === null ? label : `${layer} ${label}`, key: order.get(label) ?? 1e6, series: values[metric] }))
    .sort((a, b) => (a.layer ?? (a.label.includes("emb") ? -1 : 1e9)) - (b.layer ?? (b.label.includes("emb") ? -1 : 1e9)) || a.key - b.key || a.name.localeCompare(b.name));

  function heatChart(rows) {
    const scale = colorScale(rows, columns, METRICS[metric][1]);
    const picture = document.createElement("canvas");
    picture.width = columns; picture.height = rows.length;
    const context = picture.getContext("2d"), pixels = context.createImageData(columns, rows.length);
    rows.forEach((row, r) => { for (let i = 0; i < columns; i++) {
      const value = at(row.series, i);
      if (value !== null && value !== undefined) pixels.data.set([...viridis(scale.fraction(value)), 255], 4 * (r * columns + i));
    } });
    context.putImageData(pixels, 0, 0);
    const rowHeight = Math.max(3, Math.min(15, 640 / rows.length));
    const cells = { id: "cells", beforeDatasetsDraw({ ctx, chartArea: { left, top, width, height } }) {
      ctx.save(); ctx.imageSmoothingEnabled = false; ctx.drawImage(picture, left, top, width, height); ctx.restore();
    } };
    const find = (chart, event) => {
      const { left, top, width, height } = chart.chartArea, box = chart.canvas.getBoundingClientRect();
      const i = Math.floor((event.clientX - box.left - left) / width * columns), r = Math.floor((event.clientY - box.top - top) / height * rows.length);
      return i >= 0 && i < columns && r >= 0 && r < rows.length ? { i, row: rows[r] } : null;
    };
    const box = chart(Math.max(90, rowHeight * rows.length + 54), `${METRICS[metric][0]} of ${part} by layer and step`, () => ({
      type: "scatter", data: { labels: rows.map(row => row.label), datasets: [{ data: [] }] }, plugins: [cells],
      options: { events: [], plugins: { legend: { display: false }, tooltip: { enabled: false } }, scales: {
        x: axis("step", { type: "linear", min: 0, max: columns, grid: { display: false }, ticks: { maxRotation: 0, maxTicksLimit: 9, callback: value => Number.isInteger(value) && value < columns ? trace.first[value].toLocaleString("en") : "" } }),
        y: { type: "category", labels: rows.map(row => row.label), offset: true, grid: { display: false, drawBorder: false }, ticks: { autoSkip: true, autoSkipPadding: 0, font: { size: Math.max(9, Math.min(11, rowHeight * 0.8)) }, padding: 3, callback(value) { return shortened(this.getLabelForValue(value), 16); } } } } },
    }));
    const canvas = box.firstChild;
    const chartOf = () => charts.get(canvas)?.chart;
    canvas.style.cursor = "crosshair";
    for (const kind of ["pointermove", "pointerdown"])
      canvas.addEventListener(kind, event => {
        const found = chartOf() && find(chartOf(), event);
        if (!found) return hideTip();
        showTip(`${found.row.name}\n${stepText(found.i)}\n${METRICS[metric][0]}: ${number(at(found.row.series, found.i), 5)}`, event.clientX, event.clientY);
      });
    canvas.addEventListener("pointerleave", hideTip);
    canvas.addEventListener("click", event => { const found = chartOf() && find(chartOf(), event); if (found) { tensor = found.row.name; drawSingle(); } });
    const ramp = `linear-gradient(90deg, ${VIRIDIS.map(c => `rgb(${c})`).join(",")})`;
    const bar = h("div", { class: "colors" }, h("div", { class: "ramp", style: `background:${ramp}` }),
      h("div", { class: "ramp-labels" }, [scale.low, scale.middle, scale.high].map(value => h("span", {}, number(value, 3)))),
      h("div", { class: "hint" }, `${METRICS[metric][0]}${scale.logarithmic ? ", logarithmic; zero is drawn as the least" : ""}; no colour: no finite number`));
    return [box, bar];
  }

  function drawSingle() {
    const found = trace.tensors.find(t => t[0] === tensor);
    if (!found) return single.replaceChildren();
    const [name, tensorPart, , , values] = found;
    const shown = Object.keys(METRICS).filter(m => m in values);
    const steps = trace.last;
    const dot = run.verdicts && dots(run.verdicts).find(d => d.layer && (name === d.layer || name.startsWith(d.layer + ".")));
    single.replaceChildren(h("h3", {}, name), h("p", { class: "hint" }, `${tensorPart}. `, dot ? ["Of the dot at ", source(dot.location), ". "] : "",
      (run.histograms || []).some(([, list]) => list.some(t => t[0] === name)) ? h("a", { href: "#histograms", onclick: () => run.showHistogram?.(name) }, "Histogram") : ""),
      h("div", { class: "grid" }, shown.map(m => h("div", {}, h("h4", {}, METRICS[m][0]), lines(140, `${METRICS[m][0]} of ${name}`, () => [{ label: METRICS[m][0], steps, values: steps.map((_, i) => at(values[m], i)), color: color(0), width: 1.6 }], { showLegend: false })))));
    drawCharts();
  }

  function draw() {
    const parts = partsOf();
    if (!parts.includes(part)) part = parts[0];
    const rows = rowsOf();
    if (!tensor && rows.length) tensor = rows[0].name;
    controls.replaceChildren(select("metric", metrics.map(m => [m, METRICS[m][0]]), metric, value => { metric = value; draw(); }),
      select("tensors", parts.map(p => [p, `${p} (${trace.tensors.filter(t => metric in t[4] && t[1] === p).length})`]), part, value => { part = value; draw(); }));
    body.replaceChildren(...heatChart(rows));
    drawSingle();
  }
  run.showTensor = name => {
    const found = trace.tensors.find(t => t[0] === name);
    if (!found) return;
    tensor = name; part = found[1];
    if (!(metric in found[4])) metric = Object.keys(METRICS).find(m => m in found[4]);
    draw();
  };
  queueMicrotask(draw);
  const hint = `${trace.tensors.length} tensors, ${number(columns)} columns${trace.bucket > 1 ? `, each the worst of ${trace.bucket} traced steps (least SNR, else the largest value)` : ", one a traced step"}. Hover for numbers, click a row for its lines.`;
  return section("heat", title, hint, controls, body, single);
}

//----------------------------------------------------------------------
// One run: histograms
//----------------------------------------------------------------------

function histogramSection(run) {
  const title = "Histogram of a tensor";
  const stored = run.histograms || [];
  if (!stored.length) return section("histograms", title, "", h("p", { class: "hint" }, "The run has no checkpoint with tensors to count."));
  let step = stored[stored.length - 1][0];
  const names = () => stored.find(([s]) => s === step)[1].map(t => t[0]).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  let name = names().find(n => n.startsWith("param")) || names()[0];
  const controls = h("div", { class: "controls" }), body = h("div");
  function draw() {
    if (!names().includes(name)) name = names()[0];
    controls.replaceChildren(select("step", stored.map(([s]) => [s, s]), step, value => { step = Number(value); draw(); }), select("tensor", names().map(n => [n, n]), name, value => { name = value; draw(); }));
    const [, , , , type, shape, scaled, [low, counts, zero, below, negative, nonfinite, every]] = stored.find(([s]) => s === step)[1].find(t => t[0] === name);
    const total = counts.reduce((sum, n) => sum + n, 0) + zero + below + nonfinite;
    const edge = i => 2 ** (i / 4);
    const facts = [`${type}${scaled ? `, ${scaled}` : ""}, ${shape.join(" × ")}`, every > 1 ? `each ${every}th element counted` : "", `${percent(negative / total)} negative`, `${percent(zero / total)} zero`,
      below ? `${percent(below / total)} below the picture` : "", nonfinite ? `${nonfinite} not finite` : ""].filter(Boolean).join("; ");
    body.replaceChildren(chart(260, `Histogram of ${name} at step ${step}`, () => ({
      type: "bar",
      data: { labels: counts.map((_, i) => low + i), datasets: [{ data: counts.map(n => 100 * n / total), backgroundColor: color(0), barPercentage: 1, categoryPercentage: 0.96 }] },
      options: { interaction: { mode: "index", intersect: false }, plugins: { legend: { display: false }, tooltip: { callbacks: {
        title: items => `|x| from ${number(edge(low + items[0].dataIndex), 3)} to ${number(edge(low + items[0].dataIndex + 1), 3)}`, label: item => ` ${number(item.parsed.y, 4)} % of the elements (${counts[item.dataIndex].toLocaleString("en")})` } } },
        scales: { x: axis("|x|", { grid: { display: false }, ticks: { autoSkip: false, maxRotation: 0, callback(_, i) { const bin = low + i, every = Math.max(1, Math.ceil(counts.length / 4 * 50 / this.chart.width)); return bin % 4 === 0 && bin / 4 % every === 0 ? `2^${bin / 4}` : ""; } } }),
          y: axis("% of the elements", { ticks: { maxTicksLimit: 6 } }) } },
    })), h("p", { class: "hint" }, facts));
    drawCharts();
  }
  run.showHistogram = wanted => { name = wanted; draw(); };
  queueMicrotask(draw);
  return section("histograms", title, `From the checkpoints, counted when the page was written: sizes in four bins an octave. Activations and gradients are in no checkpoint; of these the trace has amax, underflow, saturation and kurtosis.`, controls, body);
}

//----------------------------------------------------------------------
// One run: memory, profile
//----------------------------------------------------------------------

function memorySection(run) {
  const memory = run.memory;
  if (!memory) return section("memory", "Memory", "", h("p", { class: "hint" }, "The run has no memory.json."));
  const line = memory.timeline, step = memory.step || {};
  const children = [];
  if (line) {
    const categories = Object.entries(line.categories).filter(([, values]) => values.some(Boolean)).sort((a, b) => Math.max(...b[1]) - Math.max(...a[1]));
    const totals = line.position.map((_, i) => categories.reduce((sum, [, values]) => sum + values[i], 0));
    const peak = totals.indexOf(Math.max(...totals));
    const mark = { id: "peak", afterDatasetsDraw({ ctx, chartArea, scales }) {
      const x = scales.x.getPixelForValue(line.position[peak]), text = `peak ${bytes(totals[peak])}`;
      ctx.save(); ctx.strokeStyle = ctx.fillStyle = style("--text"); ctx.setLineDash([3, 3]); ctx.beginPath(); ctx.moveTo(x, chartArea.top); ctx.lineTo(x, chartArea.bottom); ctx.stroke();
      ctx.font = `12px ${Chart.defaults.font.family}`; ctx.textAlign = x > (chartArea.left + chartArea.right) / 2 ? "right" : "left"; ctx.fillText(text, x + (ctx.textAlign === "right" ? -6 : 6), chartArea.top + 12); ctx.restore();
    } };
    children.push(chart(320, "Arena by place in the schedule", () => ({
      type: "line", plugins: [mark],
      data: { datasets: categories.map(([name, values], i) => ({ label: words(name), data: values.map((value, k) => ({ x: line.position[k], y: value / 2 ** 20 })), fill: i ? "-1" : "origin", stepped: true, borderWidth: 1, pointRadius: 0, borderColor: color(i), backgroundColor: color(i) + (i < 6 ? "b0" : "50") })) },
      options: { interaction: { mode: "index", intersect: false }, plugins: { legend: { ...legend, labels: { boxHeight: 10, boxWidth: 12, padding: 10 } }, tooltip: { filter: item => item.parsed.y > 0, callbacks: { title: items => items.length ? `place ${items[0].parsed.x} of ${line.end}: ${bytes(totals[items[0].dataIndex])}` : "", label: item => ` ${item.dataset.label}: ${bytes(item.parsed.y * 2 ** 20)}` } } },
        scales: { x: axis("place in the schedule of one step", { type: "linear", min: 0, max: line.end, grid: { display: false }, ticks: { maxRotation: 0 } }), y: axis("MiB", { stacked: true, beginAtZero: true, suggestedMax: 1.08 * totals[peak] / 2 ** 20 }) } },
    })));
    children.push(h("h3", {}, "Largest buffers at the peak"), table(["bytes", "what", "type", "alive", "source"], line.largest.map(([size, category, type, location, begin, end]) => [bytes(size), words(category), type, `${begin} to ${end}`, source(location)]), [0], "wide"));
  } else children.push(h("p", { class: "hint" }, "memory.json has no plan with buffers: no timeline."));
  const state = Object.entries(memory.plan.state_bytes || {}).filter(([, size]) => size);
  const rows = [["arena, planned", bytes(step.arena_planned)], ["arena, touched", bytes(step.arena_touched)], ["arguments (state, batch)", bytes(step.arguments)], ...state.map(([name, size]) => [`\u2003of these ${words(name)}`, bytes(size)]),
    ["results", bytes(step.results)], ["constants", bytes(step.constants)], ["scratch", bytes(step.scratch)], ["process at most", bytes(memory.peak_rss)], ["beside the step", bytes(memory.rest_of_process)]];
  children.push(h("h3", {}, "All memory of the process"), table(null, rows, [1], "narrow"));
  return section("memory", "Memory over the schedule", line ? "What the arena holds at every place of the plan, by kind. State lies outside the arena, below." : "", children);
}

function profileSection(run) {
  const profile = run.profile;
  if (!profile) return section("profile", "Profile", "", h("p", { class: "hint" }, "The run has no profile.json: fp8-run --profile writes it."));
  const most = profile.groups.length ? profile.groups[0][2] : 1;
  const limits = profile.limits;
  // The least time that arithmetic or memory needs, and which of them limits.
  const limitOf = (arithmetic, memory) => limits ? { time: Math.max(arithmetic, memory), what: arithmetic > memory ? "arithmetic" : "memory" } : null;
  const limitText = (limit, total) => limit && limit.time > 0 ? ` · ${percent(limit.time / total)} of the ${limit.what} limit` : "";
  const bar = ([kind, place, total, launches, tasks, longest, flops, arithmetic, memory]) => h("div", { class: "bar", title: `${kind}: ${launches} launches, ${tasks} tasks, longest ${time(longest)}${limits ? `; at least ${time(arithmetic)} of arithmetic, ${time(memory)} of memory` : ""}` },
    h("div", {}, h("span", { class: "name" }, h("b", {}, kind), " ", source(place), launches > 1 ? ` × ${launches}` : ""),
      h("span", { class: "value" }, `${time(total)} · ${percent(total / profile.microseconds)}${flops ? ` · ${number(flops / total / 1000, 3)} GFLOP/s` : ""}${limitText(limitOf(arithmetic, memory), total)}`)),
    h("div", { class: "track" }, h("i", { style: `width:${100 * total / most}%` }, limits ? h("b", { style: `width:${Math.min(100, 100 * limitOf(arithmetic, memory).time / total)}%` }) : null)));
  const kinds = profile.kinds.slice(0, 10);
  return section("profile", "Profile", `One step: ${profile.launches} launches, ${time(profile.microseconds)} (mean over the steps). Equal kernels of several layers are one bar. ` +
    (limits ? `GFLOP/s are of dots. The dark part of a bar is the time that the machine would take at its limits with ${limits.threads} threads, as measured before the first step: ${number(Math.max(limits.f32_flops_per_second, limits.bf16_flops_per_second) / 1e9, 3)} GFLOP/s in dots, ${number(limits.f32_flops_per_second / 1e9, 3)} elsewhere, ${number(limits.bytes_per_second / 1e9, 3)} GB/s copied between arrays of 64 MiB. What caches keep is faster than that: such kernels may be over 100 %.`
      : "GFLOP/s where the launches are one dot by themselves. How near that is to the machine's limits is not shown: the run has no cost.json."),
    chart(Math.max(120, 26 * kinds.length + 50), "Time by kind of kernel", () => ({ type: "bar", data: { labels: kinds.map(([kind]) => kind), datasets: [{ data: kinds.map(([, total]) => total / 1000), backgroundColor: color(0), barPercentage: 0.8 }] },
      options: { indexAxis: "y", plugins: { legend: { display: false }, tooltip: { callbacks: { label: item => ` ${time(item.parsed.x * 1000)}, ${percent(item.parsed.x * 1000 / profile.microseconds)}` } } }, scales: { x: axis("ms of a step", { beginAtZero: true }), y: { grid: { display: false }, ticks: { callback(value) { return shortened(this.getLabelForValue(value), this.chart.width < 500 ? 16 : 32); } } } } } })),
    h("h3", {}, "By kernel and place"), h("div", { class: "bars" }, profile.groups.slice(0, 12).map(bar)),
    profile.groups.length > 12 ? h("details", { style: "margin-top:10px" }, h("summary", {}, `${profile.groups.length - 12} more`), h("div", { class: "bars", style: "margin-top:8px" }, profile.groups.slice(12).map(bar), profile.rest[0] ? h("p", { class: "hint" }, `and ${profile.rest[0]} more with ${time(profile.rest[1])} in all`) : null)) : null);
}

//----------------------------------------------------------------------
// Recipes, source
//----------------------------------------------------------------------

function recipeSection() {
  const children = [];
  const known = runs.filter(run => run.recipe.keys);
  for (const run of known.filter(run => run.recipe.preset)) {
    const all = [...new Set([...Object.keys(run.recipe.preset), ...Object.keys(run.recipe.keys)])].filter(key => key !== "name" && run.recipe.preset[key] !== run.recipe.keys[key]);
    children.push(h("h3", {}, `${runs.length > 1 ? `${run.name}: ` : ""}differences from the preset ${run.recipe.preset.name}`),
      all.length ? table(["key", "this run", "preset"], all.map(key => [key, h("span", { class: "change" }, run.recipe.keys[key] ?? "–"), run.recipe.preset[key] ?? "–"])) : h("p", { class: "hint" }, "none"));
  }
  if (known.length > 1) {
    const differing = [...new Set(known.flatMap(run => Object.keys(run.recipe.keys)))].filter(key => new Set(known.map(run => run.recipe.keys[key])).size > 1);
    const rows = differing.map(key => [key, ...known.map(run => run.recipe.keys[key] ?? "–")]);
    children.push(h("h3", {}, "Where the runs' recipes differ"), differing.length ? h("details", { open: differing.length <= 12 ? "" : null }, h("summary", {}, `${differing.length} ${differing.length === 1 ? "key" : "keys"}`),
      table(["key", ...known.map(run => run.name)], rows)) : h("p", { class: "hint" }, "nowhere"));
  }
  for (const run of known) children.push(h("details", {}, h("summary", {}, `${run.name}: the effective recipe`), h("pre", {}, run.recipe.text)));
  const nameless = runs.filter(run => !run.recipe.keys);
  if (nameless.length) children.push(table(["run", "recipe"], nameless.map(run => [run.name, run.recipe.name || "unknown"])), h("p", { class: "hint" }, "Without recipe.yaml in the run's directory only the name is known."));
  return section("recipe", "Recipe", "", children);
}

function sourceSection() {
  const files = Object.entries(data.sources);
  return section("source", "Source", files.length ? "The lines that this page speaks of." : "No file of the step's source was found when the page was written: --source says where to look.",
    files.map(([file, { path, lines: text }]) => h("details", { open: files.length === 1 ? "" : null }, h("summary", { title: path }, file),
      h("pre", {}, text.map(([i, line], k) => [k && text[k - 1][0] + 1 < i ? h("span", { class: "source" }, h("b", {}, "⋮")) : null, h("span", { class: "source", id: sourceId(file, i) }, h("b", {}, i), line)])))));
}

//----------------------------------------------------------------------
// The page
//----------------------------------------------------------------------

const ONE_RUN = { model: modelSection, heat: heatSection, histograms: histogramSection, memory: memorySection, profile: profileSection };
const TITLES = { summary: "Summary", loss: "Loss", metrics: "Metrics", model: "Model", heat: "Tensors", histograms: "Histograms", memory: "Memory", profile: "Profile", recipe: "Recipe", source: "Source" };

function drawRun() {
  for (const [id, make] of Object.entries(ONE_RUN)) document.getElementById(id).replaceWith(make(runs[current]));
  queueMicrotask(drawCharts);
}

async function load() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), c => c.charCodeAt(0));
  data = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  runs = data.runs;
}

function drawPage() {
  document.getElementById("title").textContent = runs.length > 1 ? `${runs.length} runs` : runs[0].name;
  document.getElementById("subtitle").textContent = runs.map(run => run.directory).join(" · ");
  document.title = `${runs.map(run => run.name).join(", ")} · fp8 report`;
  document.getElementById("main").replaceChildren(summarySection(), lossSection(), metricsSection(), ...Object.keys(ONE_RUN).map(id => h("section", { id })), recipeSection(), sourceSection());
  document.getElementById("nav").append(runs.length > 1 ? select("", runs.map((run, i) => [i, run.name]), 0, value => { current = Number(value); drawRun(); }) : "",
    ...Object.entries(TITLES).map(([id, title]) => h("a", { href: `#${id}` }, title)));
  drawRun();
  setTimeout(() => { document.body.dataset.ready = "yes"; }, 0);
}

load().then(drawPage).catch(error => { document.getElementById("main").textContent = `This browser cannot draw the page: ${error}`; throw error; });
