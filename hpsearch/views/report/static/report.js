// Draws the charts of a page: each element with data-figure, from the JSON of that id.
// Those in view come first, the others one by one afterwards, so that a long page opens at once.
// A page that changes calls hpsearchCharts.show for new elements, .keep to put a known one into the
// place of a new one, and .update for a known one with a new figure.
(function () {
  "use strict";

  var PRINTED_WIDTH = 660;
  var LEGEND_HEIGHT = 24;
  var OPTIONS = { displayModeBar: false, responsive: true };
  var waiting = [];
  var drawn = [];
  var isDrawing = false;

  function colour(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  }

  function theme(layout) {
    var line = colour("--line");
    var changes = {
      "font.color": colour("--text"),
      "hoverlabel.bgcolor": colour("--raised"),
      "hoverlabel.bordercolor": line,
      "hoverlabel.font.color": colour("--text"),
    };
    Object.keys(layout).forEach(function (key) {
      if (/^[xy]axis\d*$/.test(key)) {
        changes[key + ".gridcolor"] = line;
        changes[key + ".linecolor"] = line;
      }
    });
    return changes;
  }

  function set(layout, path, value) {
    var names = path.split(".");
    var last = names.pop();
    var inner = layout;
    names.forEach(function (name) {
      inner[name] = inner[name] || {};
      inner = inner[name];
    });
    inner[last] = value;
  }

  function themed(json) {
    var figure = JSON.parse(json);
    var changes = theme(figure.layout);
    Object.keys(changes).forEach(function (path) {
      set(figure.layout, path, changes[path]);
    });
    return figure;
  }

  // A legend of the page's own: Plotly's covers the picture where lines are broken, and cannot be
  // used without a mouse.
  function legend(element, figure) {
    var named = figure.layout.showlegend ? figure.data.filter(isNamed) : [];
    var before = legendOf(element);
    var hidden = before ? Array.from(before.querySelectorAll('[aria-pressed="false"]')) : [];
    var names = hidden.map(function (button) {
      return button.textContent;
    });
    figure.layout.showlegend = false;
    if (before) {
      before.remove();
    }
    if (!named.length) {
      return;
    }
    figure.layout.height -= LEGEND_HEIGHT;
    element.style.minHeight = figure.layout.height + "px";
    var list = document.createElement("ul");
    list.className = "legend";
    named.forEach(function (trace) {
      trace.visible = names.indexOf(unescaped(trace.name)) < 0;
      var item = list.appendChild(document.createElement("li"));
      item.appendChild(entry(element, figure.data.indexOf(trace), trace));
    });
    element.parentElement.before(list);
  }

  function legendOf(element) {
    var before = element.parentElement.previousElementSibling;
    return before && before.classList.contains("legend") ? before : null;
  }

  function isNamed(trace) {
    return trace.name && trace.showlegend !== false;
  }

  function entry(element, place, trace) {
    var button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(trace.visible));
    button.setAttribute("aria-label", unescaped(trace.name));
    button.appendChild(swatch(trace));
    button.appendChild(document.createTextNode(unescaped(trace.name)));
    button.addEventListener("click", function () {
      var isShown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(isShown));
      Plotly.restyle(element, { visible: isShown }, [place]);
    });
    return button;
  }

  function unescaped(text) {
    return new DOMParser().parseFromString(text, "text/html").documentElement.textContent;
  }

  var SHAPES = {
    circle: "M12 2a4 4 0 1 0 .01 0Z",
    diamond: "M12 1L17 6L12 11L7 6Z",
    bar: "M6 1H18V11H6Z",
    x: "M7 3L9 1L12 4L15 1L17 3L14 6L17 9L15 11L12 8L9 11L7 9L10 6Z",
  };

  function swatch(trace) {
    var marker = trace.marker || {};
    var line = trace.line || {};
    var svg = part(null, "svg", { viewBox: "0 0 24 12", "aria-hidden": "true" });
    var mode = trace.mode || "";
    if (mode.indexOf("lines") >= 0) {
      var dash = line.dash ? "2 3" : "none";
      var width = Math.max(2, line.width || 2);
      var drawing = { stroke: line.color, "stroke-width": width, "stroke-dasharray": dash };
      part(svg, "path", Object.assign({ d: "M0 6H24" }, drawing));
    }
    if (trace.type === "bar" || mode.indexOf("markers") >= 0) {
      var symbol = trace.type === "bar" ? "bar" : marker.symbol || "circle";
      var paint = marker.color || line.color;
      var isOpen = /-open$/.test(symbol);
      var shape = SHAPES[symbol.replace("-open", "")] || SHAPES.circle;
      part(svg, "path", { d: shape, fill: isOpen ? "none" : paint, stroke: paint });
    }
    return svg;
  }

  function part(into, name, attributes) {
    var made = document.createElementNS("http://www.w3.org/2000/svg", name);
    Object.keys(attributes).forEach(function (key) {
      made.setAttribute(key, attributes[key]);
    });
    if (into) {
      into.appendChild(made);
    }
    return made;
  }

  function draw(element) {
    var place = waiting.indexOf(element);
    if (place < 0) {
      return;
    }
    waiting.splice(place, 1);
    var figure = themed(document.getElementById(element.dataset.figure).textContent);
    drawn.push(element);
    legend(element, figure);
    return Plotly.newPlot(element, figure.data, figure.layout, OPTIONS);
  }

  function keep(known, fresh) {
    var list = legendOf(known);
    if (list) {
      fresh.parentElement.before(list);
    }
    fresh.replaceWith(known);
  }

  function update(element, json) {
    if (drawn.indexOf(element) < 0) {
      return;
    }
    var figure = themed(json);
    element.style.minHeight = element.dataset.height + "px";
    legend(element, figure);
    Plotly.react(element, figure.data, figure.layout, OPTIONS);
  }

  function drawNext() {
    isDrawing = waiting.length > 0;
    if (!isDrawing) {
      document.documentElement.dataset.charts = "drawn";
      return;
    }
    draw(waiting[0]);
    setTimeout(drawNext, 0);
  }

  function restyle() {
    drawn.forEach(function (element) {
      Plotly.relayout(element, theme(element.layout));
    });
  }

  function printing() {
    document.querySelectorAll("[data-figure]").forEach(function (element) {
      element.style.minWidth = "0";
    });
    waiting.slice().forEach(draw);
    document.documentElement.classList.add("printing");
    drawn.forEach(function (element) {
      var changes = theme(element.layout);
      changes.width = PRINTED_WIDTH;
      Plotly.relayout(element, changes);
    });
  }

  function printed() {
    document.documentElement.classList.remove("printing");
    drawn.forEach(function (element) {
      element.style.minWidth = element.dataset.narrowest + "px";
      var changes = theme(element.layout);
      changes.width = null;
      changes.autosize = true;
      Plotly.relayout(element, changes);
    });
  }

  var observer = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        draw(entry.target);
      }
    });
  });

  function show(root) {
    drawn = drawn.filter(function (element) {
      return element.isConnected;
    });
    waiting = waiting.filter(function (element) {
      return element.isConnected;
    });
    root.querySelectorAll("[data-figure]").forEach(function (element) {
      if (drawn.indexOf(element) >= 0 || waiting.indexOf(element) >= 0) {
        return;
      }
      element.style.minHeight = element.dataset.height + "px";
      element.style.minWidth = element.dataset.narrowest + "px";
      waiting.push(element);
      observer.observe(element);
    });
    if (document.readyState === "complete") {
      drawRest();
    }
  }

  function drawRest() {
    if (!isDrawing) {
      setTimeout(drawNext, 50);
    }
  }

  window.hpsearchCharts = { show: show, keep: keep, update: update };
  show(document);
  window.addEventListener("load", drawRest);
  window.addEventListener("beforeprint", printing);
  window.addEventListener("afterprint", printed);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
})();
