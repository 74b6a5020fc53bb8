// Stands after everything else in the page: uses it as a person would, and writes down what happened.
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits for something to become true, as long as a busy computer may take; whether it did.
async function becomes(is) {
  for (let i = 0; i < 400 && !is(); i++) await pause(50);
  return Boolean(is());
}

// Colours of a drawing: how many, how much of it is not background, how many pixels of its edge, and a sum that tells pictures apart.
async function pixels(id) {
  const box = document.getElementById(id).getBoundingClientRect();
  // As large as it is: letters do not shrink with a picture.
  const [width, height] = [Math.round(box.width), Math.round(box.height)];
  const address = await Plotly.toImage(id, { format: "png", width, height });
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(image, 0, 0);
  const data = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const colours = new Map();
  let sum = 0;
  data.forEach((c, i) => {
    colours.set(c, (colours.get(c) || 0) + 1);
    sum = (sum * 31 + (c >>> 0) + i) % 4294967291;
  });
  const background = [...colours].reduce((best, one) => (one[1] > best[1] ? one : best))[0];
  const onEdge = (i) => i < width || i >= width * (height - 1) || i % width === 0 || i % width === width - 1;
  const edge = data.reduce((n, c, i) => n + (onEdge(i) && c !== background ? 1 : 0), 0);
  return { colours: colours.size, drawn: 1 - colours.get(background) / data.length, edge, sum };
}

const eye = () => JSON.stringify(document.getElementById("scene")._fullLayout.scene._scene.getCamera().eye);

async function drive() {
  const seen = {};
  const element = (id) => document.getElementById(id);
  seen.ready = await becomes(() => document.documentElement.dataset.ready);
  seen.background = getComputedStyle(document.body).backgroundColor;
  seen.title = document.title;
  seen.fits = document.documentElement.scrollWidth <= innerWidth;
  seen.charts = [];
  for (const chart of document.querySelectorAll(".chart")) seen.charts.push((await pixels(chart.id)).drawn);
  seen.first = await pixels("scene");

  const start = element("clock").textContent;
  element("play").click();
  await becomes(() => element("clock").textContent !== start);
  seen.playing = element("clock").textContent;
  element("play").click();
  await pause(300);
  seen.paused = element("clock").textContent;
  await pause(300);
  seen.still = element("clock").textContent === seen.paused;

  element("scrub").value = 700;
  element("scrub").dispatchEvent(new Event("input", { bubbles: true }));
  await pause(500);
  seen.scrubbed = element("clock").textContent;
  seen.later = await pixels("scene");

  const before = eye();
  document.querySelector('[data-view="x"]').click();
  seen.turned = await becomes(() => eye() !== before);
  await pause(500);

  // A drag across the scene turns the camera, as does a button.
  const fixed = eye();
  const target = document.querySelector("#scene canvas") || element("scene");
  const box = element("scene").getBoundingClientRect();
  const mouse = (kind, x, y, buttons) => target.dispatchEvent(new MouseEvent(kind, {
    bubbles: true, clientX: box.left + x, clientY: box.top + y, buttons, button: 0, view: window }));
  mouse("mousemove", 300, 200, 0); mouse("mousedown", 300, 200, 1);
  for (let k = 0; k < 10; k++) { mouse("mousemove", 300 + 12 * k, 200, 1); await pause(40); }
  mouse("mouseup", 420, 200, 0);
  seen.dragged = await becomes(() => eye() !== fixed);

  const [begin, end] = [DATA.times[0][0], DATA.times[0].at(-1)];
  await Plotly.relayout("chart0", { "xaxis.range[0]": begin + 0.25 * (end - begin), "xaxis.range[1]": begin + 0.5 * (end - begin) });
  const last = element("chart" + (document.querySelectorAll(".chart").length - 1));
  const left = begin + 0.25 * (end - begin);
  seen.zoomed = await becomes(() => Math.abs(last._fullLayout.xaxis.range[0] - left) < 1e-6 * (end - begin));
  Plotly.Fx.hover("chart0", [{ curveNumber: 0, pointNumber: Math.floor(0.375 * DATA.times[0].length) }]);
  await becomes(() => document.querySelector("#chart0 .hoverlayer").textContent);
  seen.hover = document.querySelector("#chart0 .hoverlayer").textContent;

  const choice = document.querySelector("select[data-chart]");
  const shown = element("chart" + choice.dataset.chart);
  const names = () => shown.data.map((trace) => trace.name).join();
  const first = names();
  choice.value = "1";
  choice.dispatchEvent(new Event("change", { bubbles: true }));
  seen.chosen = await becomes(() => names() !== first);
  return seen;
}

// To the test, which listens at ADDRESS.
drive().catch((error) => ({ failed: String(error.stack || error) })).then((seen) =>
  fetch(ADDRESS, { method: "POST", mode: "no-cors", body: JSON.stringify({ ...seen, trouble: TROUBLE }) }));
