// What the tests and the screenshots share: a server, a browser, and waiting for what is to come.

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

export const NODE = process.env.NODE ?? process.execPath;
const BLACKLIGHT = process.env.BLACKLIGHT;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
// What anything may take on a machine that is busy with other things: this ends what hangs, and judges nothing.
export const LIMIT = 180_000;

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch(...flags) {
  return chromium.launch({ executablePath: "/usr/bin/chromium", args: [...FLAGS, ...flags], timeout: LIMIT });
}

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "blacklight-page-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

// Starts `blacklight live` without a browser; resolves when it has said where the page is.
export function live(...options) {
  return serve({}, "--no-open", ...options);
}

// The same with something in its environment, and with a browser.
export function serve(env, ...options) {
  const server = spawn(BLACKLIGHT, ["live", ...options], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, TMPDIR: folder(), ...env },
  });
  process.on("exit", () => server.kill("SIGKILL"));
  let said = "";
  const ended = new Promise((resolve) => server.on("exit", (code, signal) => resolve({ code, signal })));
  return new Promise((resolve, reject) => {
    ended.then(() => reject(new Error(`blacklight live has ended: ${said}`)));
    server.stderr.on("data", (data) => {
      said += data;
      const found = /^blacklight: (http:\S+)$/m.exec(said);
      if (!found) return;
      const url = new URL(found[1]);
      const pid = Number(new URLSearchParams(url.hash.slice(1)).get("pid")) || null;
      resolve({ server, url, pid, ended, said: () => said });
    });
  });
}

// Waits until something is true.
export async function until(what, isTrue, limit = LIMIT) {
  const begun = Date.now();
  for (;;) {
    const value = await isTrue();
    if (value) return value;
    if (Date.now() - begun > limit) throw new Error(`${what} did not come true`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export function isThere(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

// Counts what the page is told, in a page that is still to come: `told` frames, and `letters` of them.
export function countFrames(page) {
  return page.addInitScript(() => {
    [window.told, window.letters] = [0, 0];
    const Source = window.EventSource;
    window.EventSource = class extends Source {
      constructor(...options) {
        super(...options);
        this.addEventListener("frame", (event) => {
          window.told += 1;
          window.letters += event.data.length;
        });
      }
    };
  });
}

// A page, whose errors and dialogs are kept, and whose frames are counted.
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(LIMIT);
  page.wrong = [];
  page.on("pageerror", (error) => page.wrong.push(String(error)));
  page.on("dialog", (dialog) => {
    page.wrong.push(`a dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on("console", (message) => {
    // A connection that is lost is told by the page itself.
    if (message.type() === "error" && !/ERR_|Failed to load/.test(message.text())) page.wrong.push(message.text());
  });
  await countFrames(page);
  await page.goto(String(url));
  return page;
}

// What a checker of accessibility finds.
export async function violations(page) {
  await page.evaluate(AXE);
  const results = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return results.violations.map((of) => `${of.id}: ${of.nodes.map((node) => node.html).join(" ").slice(0, 300)}`);
}

export const answer = (page, word) => page.locator(".answer", { hasText: word }).first();

// Asks the server as no browser would.
export function ask(url, path, headers = {}, method = "GET") {
  return new Promise((resolve, reject) => {
    const asked = request({ host: "127.0.0.1", port: url.port, path, method, headers }, (response) => {
      let text = "";
      response.on("data", (data) => {
        text += data;
        // A stream has no end.
        if (text.includes("event: frame")) response.destroy();
      });
      response.on("close", () => resolve({ status: response.statusCode, headers: response.headers, text }));
    });
    asked.on("error", reject);
    asked.end();
  });
}
