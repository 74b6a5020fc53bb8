"use strict";
// Draws the page from DATA: charts over time, and the mechanism in motion. Angles of bodies are unit quaternions w x y z.

const dark = matchMedia("(prefers-color-scheme: dark)");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Fingers scroll the page across charts; a mouse zooms in them.
const byFinger = matchMedia("(pointer: coarse)");
const byId = (id) => document.getElementById(id);
const PALETTES = {
  light: ["#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#c2255c", "#0b7285", "#a15c00", "#5f3dc4", "#5c940d", "#495057"],
  dark: ["#6ea8fe", "#ff9558", "#69db7c", "#da8bf0", "#ff7aa8", "#5fd3e6", "#f2c14e", "#a899ff", "#b5e36b", "#ced4da"],
};
const palette = () => (dark.matches ? PALETTES.dark : PALETTES.light);
const CONFIG = { displaylogo: false, responsive: true, doubleClick: "reset" };
const FONT = 'system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif';

const MODEBAR = () => ({ bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--accent") });

// ---- charts

const charts = DATA.charts.map((chart, i) => ({ ...chart, div: byId("chart" + i), set: 0 }));
const SHOWN = 8; // further curves wait in the legend

// Many names stand beside the curves, where they scroll; in a narrow window all stand below.
const isNarrow = (chart) => chart.div.clientWidth < 480;
function legend(chart) {
  const below = { orientation: "h", yref: "container", y: 0, yanchor: "bottom", font: { size: 11 } };
  return chart.sets[chart.set].length > SHOWN && !isNarrow(chart) ? { font: { size: 10 } } : below;
}

// Room for the names below the curves, as many as may stand there without scrolling.
function makeRoom(chart) {
  const names = chart.sets[chart.set].map((curve) => curve.name);
  const longest = 45 + 7 * Math.max(...names.map((name) => name.length));
  const rows = Math.ceil(names.length / Math.max(Math.floor(chart.div.clientWidth / longest), 1));
  const extra = names.length > SHOWN && !isNarrow(chart) ? 0 : Math.min(rows - 1, 9);
  chart.div.style.height = 315 + 19 * extra + "px";
}

function chartLayout(chart) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), linecolor: css("--line"), automargin: true };
  return {
    margin: { l: 60, r: 10, t: 28, b: 40 }, // the tools stand above the curves
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: FONT, size: 12, color: css("--text") },
    colorway: palette(),
    hovermode: chart.kind === "lines" ? "x unified" : "closest",
    dragmode: byFinger.matches ? false : "zoom",
    hoverlabel: { bgcolor: css("--back"), bordercolor: css("--line"), font: { color: css("--text") } },
    showlegend: true,
    legend: legend(chart),
    xaxis: { ...axis, type: chart.names.length > 0 ? "category" : chart.kind === "paths" ? "log" : "linear", title: { text: chart.over ?? "t [s]", standoff: 4 }, hoverformat: ".6~g" },
    yaxis: { ...axis, title: { text: chart.axis, standoff: 6 }, type: chart.log ? "log" : "linear", exponentformat: "power", hoverformat: ".6~g" },
    modebar: MODEBAR(),
    uirevision: String(chart.set),
  };
}

// Polylines over the names, one after the other, with gaps between them.
function polylines(chart, curve) {
  const n = chart.names.length;
  const [x, y] = [[], []];
  curve.y.forEach((value, i) => {
    x.push(chart.names[i % n]);
    y.push(value);
    if (i % n === n - 1) {
      x.push(chart.names[n - 1]);
      y.push(null);
    }
  });
  return { type: "scatter", mode: "lines", name: curve.name, x, y, line: { width: 1 }, opacity: 0.5, hoverinfo: "name" };
}

function chartTraces(chart) {
  const x = DATA.times[chart.times];
  const curves = chart.sets[chart.set];
  if (chart.kind === "bars") return curves.map((curve) => ({ type: "bar", name: curve.name, x: chart.names, y: curve.y }));
  if (chart.kind === "parallel") return curves.map((curve) => polylines(chart, curve));
  if (chart.kind === "paths") {
    const part = (curve, k) => curve.y.filter((_, i) => i % 2 === k);
    return curves.map((curve) => ({ type: "scatter", mode: "lines+markers", name: curve.name, x: part(curve, 0), y: part(curve, 1), line: { width: 1.6 } }));
  }
  if (chart.kind === "points") {
    const marker = { size: 4, opacity: 0.6 };
    return curves.map((curve) => ({ type: "scatter", mode: "markers", name: curve.name, x, y: curve.y, marker }));
  }
  return chart.sets[chart.set].map((curve, k) => ({
    type: "scatter",
    mode: "lines",
    name: curve.name,
    x,
    y: chart.log ? curve.y.map((y) => (y > 0 ? y : null)) : curve.y,
    line: { width: 1.6 },
    visible: k < SHOWN ? true : "legendonly",
  }));
}

function drawChart(chart) {
  makeRoom(chart);
  return Plotly.react(chart.div, chartTraces(chart), chartLayout(chart), CONFIG).then(() => placeCursor(chart));
}

// A zoom in time is one in all charts.
let zooming = false;
function shareZoom(from, change) {
  const range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
  const auto = change["xaxis.autorange"];
  if (zooming || (range[0] === undefined && !auto)) return;
  zooming = true;
  const update = auto ? { "xaxis.autorange": true } : { "xaxis.range": range };
  const others = charts.filter((chart) => chart !== from && !chart.over && !from.over).map((chart) => Plotly.relayout(chart.div, update));
  Promise.all(others).then(() => {
    zooming = false;
    charts.forEach(placeCursor);
  });
}

// The line at the time that the scene shows.
function placeCursor(chart) {
  if (!scene || chart.over || !chart.div._fullLayout) return;
  if (!chart.cursor) {
    chart.cursor = document.createElement("div");
    chart.cursor.className = "cursor";
    chart.div.parentElement.appendChild(chart.cursor);
  }
  const { xaxis, yaxis } = chart.div._fullLayout;
  const pixel = xaxis.l2p(now);
  chart.cursor.hidden = !(pixel >= 0 && pixel <= xaxis._length);
  chart.cursor.style.left = chart.div.offsetLeft + xaxis._offset + pixel + "px";
  chart.cursor.style.top = chart.div.offsetTop + yaxis._offset + "px";
  chart.cursor.style.height = yaxis._length + "px";
}

// ---- the scene

const scene = DATA.scene;
let now = scene ? scene.t[0] : 0;
let playing = false;

const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
const scaled = (s, a) => [s * a[0], s * a[1], s * a[2]];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const norm = (a) => Math.hypot(a[0], a[1], a[2]);

// Positions and rotation matrices of all bodies at a time, between frames on straight lines; from the middle of what travels.
function posesAt(t) {
  const n = scene.bodies.length;
  let after = scene.t.findIndex((time) => time >= t);
  if (after < 0) after = scene.t.length - 1;
  const before = Math.max(after - 1, 0);
  const span = scene.t[after] - scene.t[before];
  const s = span > 0 ? Math.min(Math.max((t - scene.t[before]) / span, 0), 1) : 1;
  const centre = [0, 1, 2].map((k) => (scene.centres ? (1 - s) * scene.centres[3 * before + k] + s * scene.centres[3 * after + k] : 0));
  return scene.bodies.map((_, b) => {
    const p = scene.poses.slice(7 * (before * n + b), 7 * (before * n + b) + 7);
    const q = scene.poses.slice(7 * (after * n + b), 7 * (after * n + b) + 7);
    const sign = p[3] * q[3] + p[4] * q[4] + p[5] * q[5] + p[6] * q[6] < 0 ? -1 : 1;
    const mix = p.map((x, k) => (1 - s) * x + s * (k < 3 ? q[k] : sign * q[k]));
    const length = Math.hypot(mix[3], mix[4], mix[5], mix[6]);
    const [w, x, y, z] = mix.slice(3).map((e) => e / length);
    return {
      o: [0, 1, 2].map((k) => mix[k] - centre[k]),
      r: [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
      ],
    };
  });
}
const world = (pose, p) => pose.r.map((row, k) => pose.o[k] + row[0] * p[0] + row[1] * p[1] + row[2] * p[2]);

// A coil between two points.
function coil(a, b) {
  const along = add(b, scaled(-1, a));
  const length = norm(along);
  const axis = length > 0 ? scaled(1 / length, along) : [0, 0, 1];
  const far = Math.abs(axis[0]) < 0.7 ? [1, 0, 0] : [0, 1, 0];
  let u = cross(axis, far);
  u = scaled(1 / norm(u), u);
  const v = cross(axis, u);
  const points = [a];
  const turns = 9, steps = 12;
  for (let k = 0; k <= turns * steps; k++) {
    const angle = (2 * Math.PI * k) / steps;
    const at = add(a, scaled(0.1 + (0.8 * k) / (turns * steps), along));
    const radius = 1.4 * scene.radius;
    points.push(add(at, add(scaled(radius * Math.cos(angle), u), scaled(radius * Math.sin(angle), v))));
  }
  points.push(b);
  return points;
}

// The library turns a scene about its own third axis: the axis of the model that points up stands there, the others in their order.
const third = scene ? [0, 1, 2].reduce((best, k) => (Math.abs(scene.up[k]) > Math.abs(scene.up[best]) ? k : best), 2) : 2;
const order = [(third + 1) % 3, (third + 2) % 3, third];
const columns = (points) => order.map((k) => points.map((p) => (p ? p[k] : null)));

// Parts of all bodies, with the body they move with.
const PARTS = scene ? scene.bodies.flatMap((body, b) => body.parts.map((part) => ({ b, part }))) : [];

// Corners of all bodies, and lines, at a time: what changes while it moves.
function shapesAt(t) {
  const poses = posesAt(t);
  const corners = [];
  for (const { b, part } of PARTS) {
    for (let k = 0; k < part.p.length; k += 3) corners.push(world(poses[b], part.p.slice(k, k + 3)));
  }
  const ends = (link) => link.ends.map(([b, p]) => world(poses[b], p));
  const springs = scene.springs.flatMap((spring) => [...coil(...ends(spring)), null]);
  const links = scene.links.flatMap((link) => [...ends(link), null]);
  const tips = scene.paths.map((path) => world(poses[path.end[0]], path.end[1]));
  return [columns(corners), columns(springs), columns(links), columns(tips)];
}

function triangles() {
  const faces = [[], [], []], colours = [];
  const joint = dark.matches ? "#aeb7c4" : "#4a5361";
  const ground = dark.matches ? "#5b6675" : "#9aa3af";
  let first = 0;
  for (const { b, part } of PARTS) {
    const own = b === 0 ? ground : palette()[(b - 1) % palette().length];
    const colour = part.c === "joint" ? joint : part.c || own;
    for (let k = 0; k < part.f.length; k += 3) {
      for (let c = 0; c < 3; c++) faces[c].push(first + part.f[k + c]);
      colours.push(colour);
    }
    first += part.p.length / 3;
  }
  return { faces, colours };
}

function pathLines() {
  const poses = scene.paths.length ? scene.t.map(posesAt) : [];
  return columns(scene.paths.flatMap(({ end }) => [...poses.map((pose) => world(pose[end[0]], end[1])), null]));
}

function sceneTraces() {
  const { faces, colours } = triangles();
  const [corners, springs, links, tips] = shapesAt(now);
  const paths = pathLines();
  const line = (p, colour, width) => ({ type: "scatter3d", mode: "lines", x: p[0], y: p[1], z: p[2], line: { color: colour, width }, hoverinfo: "skip", showlegend: false });
  const names = scene.paths.map((path) => path.name);
  return [
    {
      type: "mesh3d", x: corners[0], y: corners[1], z: corners[2], i: faces[0], j: faces[1], k: faces[2], facecolor: colours,
      flatshading: true, hoverinfo: "skip", lighting: { ambient: 0.62, diffuse: 0.7, specular: 0.12, roughness: 0.7, fresnel: 0.05 },
      lightposition: { x: 2000, y: 3000, z: 5000 },
    },
    line(springs, dark.matches ? "#d0d6df" : "#5c6675", 3),
    line(links, css("--soft"), 5),
    { ...line(tips, css("--accent"), 2), mode: "markers", marker: { size: 3.5, color: css("--accent") }, hoverinfo: "text", text: names },
    line(paths, css("--accent"), 1.5),
  ];
}

// Lengths of the box, the longest 1.6 of the library's units.
function ratio() {
  const sides = order.map((k) => scene.high[k] - scene.low[k]);
  return scaled(1.6 / Math.max(...sides), sides);
}

// So far along a direction that all corners of the box are seen, with some pixels around them for labels, and its picture in the middle. The library's
// angle of view is 45° upright. A corner c is seen from a distance if ±(c·side − shift) ≤ slope (distance − c·toEye), for both sides of
// the picture; so the least distance is half the sum of what + and − ask for, and the shift half their difference.
function camera(direction) {
  const of = (v) => order.map((k) => v[k]);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const toEye = scaled(1 / norm(direction), of(direction));
  let right = cross(of(scene.up), toEye);
  right = scaled(1 / norm(right), right);
  const above = cross(toEye, right);
  const half = scaled(0.5, ratio());
  const corners = [...Array(8).keys()].map((n) => half.map((x, k) => ((n >> k) & 1 ? x : -x)));
  const { clientWidth, clientHeight } = byId("scene");
  const slope = (pixels, labels) => (Math.tan(Math.PI / 8) * Math.max(pixels - 2 * labels, 0.5 * pixels)) / clientHeight;
  const fit = (side, slope) => {
    const ask = (sign) => Math.max(...corners.map((c) => dot(c, toEye) + (sign * dot(c, side)) / slope));
    return { distance: (ask(1) + ask(-1)) / 2, shift: scaled((slope * (ask(1) - ask(-1))) / 2, side) };
  };
  const fits = [fit(above, slope(clientHeight, 33)), fit(right, slope(clientWidth, 55))];
  const middle = add(fits[0].shift, fits[1].shift);
  const eye = add(middle, scaled(Math.max(...fits.map((fit) => fit.distance)), toEye));
  const point = ([x, y, z]) => ({ x, y, z });
  return { eye: point(eye), up: point(of(scene.up)), center: point(middle), projection: { type: "perspective" } };
}

function sceneLayout() {
  const axis = (k) => ({
    title: { text: "xyz"[k] + (scene.centres ? "" : " [m]"), font: { size: 11 } }, range: [scene.low[k], scene.high[k]], gridcolor: css("--line"),
    zerolinecolor: css("--line"), linecolor: css("--line"), tickfont: { size: 10 }, showbackground: false, showspikes: false, nticks: 5,
    showticklabels: !scene.centres,
  });
  const [x, y, z] = ratio();
  return {
    margin: { l: 0, r: 0, t: 0, b: 0 },
    paper_bgcolor: "rgba(0,0,0,0)",
    font: { family: FONT, size: 11, color: css("--soft") },
    showlegend: false,
    modebar: MODEBAR(),
    uirevision: "same",
    scene: {
      xaxis: axis(order[0]), yaxis: axis(order[1]), zaxis: axis(order[2]), aspectmode: "manual", aspectratio: { x, y, z },
      camera: camera(scene.eye), dragmode: scene.up[third] > 0.99 ? "turntable" : "orbit", uirevision: "same",
    },
  };
}

let moving = false;
function show(t) {
  now = t;
  const [begin, end] = [scene.t[0], scene.t[scene.t.length - 1]];
  byId("clock").textContent = t.toFixed(end - begin < 1 ? 4 : end - begin < 10 ? 3 : 2) + " s";
  byId("scrub").value = end > begin ? (1000 * (t - begin)) / (end - begin) : 0;
  charts.forEach(placeCursor);
  if (moving) return; // the frame under way is drawn first
  moving = true;
  const shapes = shapesAt(t);
  const axis = (k) => shapes.map((p) => p[k]);
  Plotly.restyle("scene", { x: axis(0), y: axis(1), z: axis(2) }, [0, 1, 2, 3]).then(() => { moving = false; });
}

function play(on) {
  playing = on;
  byId("play").textContent = on ? "⏸" : "▶";
  const [begin, end] = [scene.t[0], scene.t[scene.t.length - 1]];
  if (on && now >= end) now = begin;
  let last;
  const tick = (stamp) => {
    if (!playing) return;
    const step = last === undefined ? 0 : (stamp - last) / 1000;
    last = stamp;
    let t = now + step * Number(byId("speed").value);
    if (t > end) t = begin; // again and again
    show(t);
    requestAnimationFrame(tick);
  };
  if (on) requestAnimationFrame(tick);
}

function prepareControls() {
  const [begin, end] = [scene.t[0], scene.t[scene.t.length - 1]];
  // Speeds of 1, 2, 5 and powers of ten, so that the whole run takes from two seconds to a minute; the first choice is real time or ten seconds.
  const span = end - begin || 1;
  const wanted = span > 20 || span < 2 ? span / 10 : 1;
  const speeds = [];
  for (let e = -6; e <= 6; e++) for (const m of [1, 2, 5]) speeds.push(Number(m + "e" + e));
  const near = speeds.reduce((best, s) => (Math.abs(Math.log(s / wanted)) < Math.abs(Math.log(best / wanted)) ? s : best), 1e-6);
  for (const s of speeds.filter((s) => s >= near / 21 && s <= near * 11)) {
    const option = new Option((s >= 1e-3 && s < 1e4 ? s : s.toExponential()) + " ×", s);
    option.selected = s === near;
    byId("speed").add(option);
  }
  byId("play").addEventListener("click", () => play(!playing));
  byId("scrub").addEventListener("input", (event) => {
    play(false);
    show(begin + (Number(event.target.value) / 1000) * (end - begin));
  });
  byId("shows-paths").closest("label").hidden = scene.paths.length === 0;
  byId("shows-paths").addEventListener("change", (event) => Plotly.restyle("scene", { visible: event.target.checked }, [3, 4]));
  // Slightly off the axis of "up", along which no camera can look.
  const off = add([1e-3, 1e-3, 1e-3], [0, 0, 0]);
  const views = { start: scene.eye, x: [1, 0, 0], y: [0, 1, 0], z: [0, 0, 1] };
  for (const [name, direction] of Object.entries(views)) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = name === "start" ? "⌂" : name;
    button.title = name === "start" ? "first view" : "look along " + name;
    button.dataset.view = name;
    button.addEventListener("click", () => Plotly.relayout("scene", { "scene.camera": camera(add(direction, off)) }));
    byId("views").appendChild(button);
  }
  document.addEventListener("keydown", (event) => {
    if (event.code !== "Space" || /INPUT|SELECT|BUTTON/.test(event.target.tagName)) return;
    event.preventDefault();
    play(!playing);
  });
}

function hasWebGl() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
}

function drawScene() {
  if (!scene) return Promise.resolve();
  if (!hasWebGl()) {
    byId("scene").textContent = "This browser has no WebGL, which the animation needs; the plots below need none.";
    return Promise.resolve();
  }
  return Plotly.react("scene", sceneTraces(), sceneLayout(), { ...CONFIG, scrollZoom: true });
}

// ---- everything

const drawAll = () => Promise.all([drawScene(), ...charts.map(drawChart)]);
if (scene) prepareControls();
drawAll().then(() => {
  charts.forEach((chart) => chart.div.on("plotly_relayout", (change) => {
    shareZoom(chart, change);
    placeCursor(chart);
  }));
  if (scene) show(now);
  document.documentElement.dataset.ready = "true";
});
for (const choice of document.querySelectorAll("select[data-chart]")) {
  choice.addEventListener("change", () => {
    const chart = charts[Number(choice.dataset.chart)];
    chart.set = Number(choice.value);
    drawChart(chart);
  });
}
dark.addEventListener("change", drawAll);
addEventListener("resize", () => setTimeout(() => charts.forEach(placeCursor), 300));
