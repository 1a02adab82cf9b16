// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Has the main part of a page follow what it shows, as the server sends it.
"use strict";
(() => {
  const main = document.getElementById("main");
  const sign = document.getElementById("live");
  if (!main || main.hasAttribute("data-still") || !window.EventSource) return;

  const told = (text, kind) => {
    if (sign.textContent !== text) sign.textContent = text;
    sign.className = "live " + kind;
  };

  // Makes a node like another one by as few changes as can be: what a person has typed, opened, chosen
  // or is about to click stays.
  const morph = (from, to) => {
    if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName || from.id !== to.id) {
      from.replaceWith(to);
      return;
    }
    if (from.nodeType !== Node.ELEMENT_NODE) {
      if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
      return;
    }
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    children(from, to);
  };
  const children = (from, to) => {
    const wanted = [...to.childNodes];
    while (from.childNodes.length > wanted.length) from.lastChild.remove();
    wanted.forEach((node, i) => {
      if (i < from.childNodes.length) morph(from.childNodes[i], node);
      else from.append(node);
    });
  };
  const show = (html) => {
    const log = main.querySelector("pre.log");
    const atEnd = !log || log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
    const template = document.createElement("template");
    template.innerHTML = html;
    children(main, template.content);
    const now = main.querySelector("pre.log");
    if (now && atEnd) now.scrollTop = now.scrollHeight;
  };

  let source = null;
  const close = () => { if (source) source.close(); source = null; };
  const open = () => {
    if (source) return;
    source = new EventSource(location.href);
    source.onopen = () => told("live", "on");
    source.onerror = () => {
      told("not live", "off");
      // A refusal is final for EventSource: try again later.
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(open, 10000); }
    };
    source.addEventListener("main", (event) => show(event.data));
    source.addEventListener("still", () => { close(); told("ended", "off"); });
  };
  // A page that nobody sees needs no stream.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { close(); told("paused", "off"); } else open();
  });
  const log = main.querySelector("pre.log");
  if (log) log.scrollTop = log.scrollHeight;
  if (!document.hidden) open();
})();
