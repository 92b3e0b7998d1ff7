// Draws the charts of a page: each element with data-figure, from the JSON of that id.
// Those in view come first, the others one by one afterwards, so that a long page opens at once.
// A page that changes calls hpsearchCharts.show for new elements and .update for known ones.
(function () {
  "use strict";

  var PRINTED_WIDTH = 660;
  var PRINTED_SMALL_WIDTH = 310;
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

  function draw(element) {
    var place = waiting.indexOf(element);
    if (place < 0) {
      return;
    }
    waiting.splice(place, 1);
    var figure = themed(document.getElementById(element.dataset.figure).textContent);
    drawn.push(element);
    return Plotly.newPlot(element, figure.data, figure.layout, OPTIONS);
  }

  function update(element, json) {
    if (drawn.indexOf(element) < 0) {
      return;
    }
    var figure = themed(json);
    element.style.minHeight = element.dataset.height + "px";
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
      var isSmall = element.closest("figure").classList.contains("small");
      var changes = theme(element.layout);
      changes.width = isSmall ? PRINTED_SMALL_WIDTH : PRINTED_WIDTH;
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

  window.hpsearchCharts = { show: show, update: update };
  show(document);
  window.addEventListener("load", drawRest);
  window.addEventListener("beforeprint", printing);
  window.addEventListener("afterprint", printed);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
})();
