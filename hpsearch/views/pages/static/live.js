// Keeps the parts of a page up with their study: each element with data-live is fetched again from
// that address when the study's revision has changed. A part with data-slow waits ten times as
// long as its last answer took, so that a large report does not keep the server busy.
(function () {
  "use strict";

  var EVERY_MS = 2000;
  var AFTER_AN_ERROR_MS = 10000;
  var PATIENCE = 10;
  var parts = Array.from(document.querySelectorAll("[data-live]"));
  var news = document.getElementById("news");
  var resting = new WeakMap();

  function say(text) {
    if (news.textContent !== text) {
      news.textContent = text;
      news.hidden = !text;
    }
  }

  function get(address) {
    return fetch(address, { headers: { Accept: "text/html, application/json" } }).then(function (answer) {
      if (!answer.ok) {
        var error = new Error(String(answer.status));
        error.status = answer.status;
        throw error;
      }
      return answer;
    });
  }

  // Where the focus is, so that it can be found again in what takes a part's place.
  function focused(part) {
    var element = document.activeElement;
    if (!part.contains(element)) {
      return null;
    }
    var alike = function (root) {
      return Array.from(root.querySelectorAll(element.tagName)).filter(function (each) {
        return each.getAttribute("aria-label") === element.getAttribute("aria-label") &&
          each.getAttribute("href") === element.getAttribute("href");
      });
    };
    var place = alike(part).indexOf(element);
    return function () {
      var found = alike(part)[place] || alike(part)[0];
      if (found) {
        found.focus({ preventScroll: true });
      }
    };
  }

  function scrolled(part) {
    var places = Array.from(part.querySelectorAll(".scrolling, .log")).map(function (each) {
      return [each.scrollLeft, each.scrollTop];
    });
    return function () {
      part.querySelectorAll(".scrolling, .log").forEach(function (each, n) {
        if (places[n]) {
          each.scrollLeft = places[n][0];
          each.scrollTop = places[n][1];
        }
      });
    };
  }

  // Put charts that are drawn already into the place of the new ones, with their new figures.
  function keepCharts(part, fresh) {
    fresh.querySelectorAll("[data-figure]").forEach(function (element) {
      var name = element.dataset.figure;
      var known = part.querySelector('[data-figure="' + name + '"]');
      if (!known) {
        return;
      }
      var before = part.querySelector("#" + name).textContent;
      var after = fresh.querySelector("#" + name).textContent;
      known.setAttribute("aria-label", element.getAttribute("aria-label"));
      known.dataset.height = element.dataset.height;
      window.hpsearchCharts.keep(known, element);
      if (before !== after) {
        window.hpsearchCharts.update(known, after);
      }
    });
  }

  function put(part, text) {
    var fresh = document.createElement("div");
    fresh.innerHTML = text;
    var focus = focused(part);
    var scroll = scrolled(part);
    var at = window.scrollY;
    keepCharts(part, fresh);
    part.replaceChildren.apply(part, Array.from(fresh.childNodes));
    scroll();
    if (focus) {
      focus();
    }
    window.scrollTo(window.scrollX, at);
    window.hpsearchCharts.show(part);
  }

  function refresh(part, revision) {
    if (part.dataset.revision === revision || Date.now() < (resting.get(part) || 0)) {
      return Promise.resolve();
    }
    var began = Date.now();
    return get(part.dataset.live).then(function (answer) {
      return answer.text();
    }).then(function (text) {
      put(part, text);
      part.dataset.revision = revision;
      if ("slow" in part.dataset) {
        resting.set(part, Date.now() + PATIENCE * (Date.now() - began));
      }
    });
  }

  function look() {
    get(parts[0].dataset.revisionOf).then(function (answer) {
      return answer.json();
    }).then(function (found) {
      return parts.reduce(function (before, part) {
        return before.then(function () {
          return refresh(part, String(found.revision));
        });
      }, Promise.resolve());
    }).then(function () {
      say("");
      return EVERY_MS;
    }, function (error) {
      if (error.status === 404) {
        say("This is not in the database any more: it was deleted.");
        return 0;
      }
      say(error.status === 401 || error.status === 403
        ? "The dashboard does not let this page in any more: open the link that it printed."
        : "The dashboard or its database does not answer. This page shows what it knew, and asks again.");
      return AFTER_AN_ERROR_MS;
    }).then(function (wait) {
      if (wait) {
        setTimeout(look, wait);
      }
    });
  }

  if (parts.length) {
    look();
  }
})();
