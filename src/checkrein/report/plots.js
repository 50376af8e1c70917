// Draws every figure, and draws it again when its width, the colour scheme or the medium changes.
(() => {
  "use strict";
  const NARROW = 420;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const touch = matchMedia("(pointer: coarse)").matches;
  const config = {
    displaylogo: false,
    displayModeBar: touch ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
  };

  // Colours are CSS variables; what a user named "var(--x)" is under no key of a colour and stays as it is.
  function coloured(value, key, style) {
    if (Array.isArray(value)) return value.map((item) => coloured(item, key, style));
    if (value !== null && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, coloured(item, name, style)]));
    }
    const variable = /color/.test(key) && typeof value === "string" && /^var\((--[\w-]+)\)$/.exec(value);
    return variable ? style.getPropertyValue(variable[1]).trim() : value;
  }

  function draw(name) {
    const element = document.getElementById(name);
    const figure = coloured(figures[name], "", getComputedStyle(root));
    const width = element.clientWidth;
    const dragmode = touch ? false : "zoom"; // on a phone a finger scrolls the page
    const layout = { ...figure.layout, dragmode, width };
    if (width < NARROW) {
      for (const [part, change] of Object.entries(figure.narrow)) layout[part] = { ...layout[part], ...change };
    }
    element.dataset.width = width;
    return Plotly.react(element, figure.data, layout, config);
  }

  function drawAll() {
    Object.keys(figures).forEach(draw);
  }

  // One figure at a time, so that the page can be read and scrolled from the start.
  async function drawFirst() {
    for (const name of Object.keys(figures)) {
      await draw(name);
      await new Promise((resolve) => setTimeout(resolve));
    }
    root.dataset.drawn = Object.keys(figures).length;
  }

  drawFirst();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

  const observer = new ResizeObserver((entries) => requestAnimationFrame(() => {
    for (const { target } of entries) {
      if (Number(target.dataset.width) !== target.clientWidth) draw(target.id);
    }
  }));
  Object.keys(figures).forEach((name) => observer.observe(document.getElementById(name)));

  // On paper: light, as wide as the sheet, nothing folded away.
  let folded = [];
  addEventListener("beforeprint", () => {
    root.classList.add("printing");
    folded = [...document.querySelectorAll("details:not([open])")];
    folded.forEach((details) => { details.open = true; });
    drawAll();
  });
  addEventListener("afterprint", () => {
    root.classList.remove("printing");
    folded.forEach((details) => { details.open = false; });
    drawAll();
  });
})();
