// The ways that lead to the page, in Chromium: of programs of several processes, of a browser that is opened, of the demo, of a recording, and
// of nothing yet.

import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { answer, ask, folder, isThere, launch, live, NODE, open, serve, until, violations } from "./support.mjs";

const CROWD = new URL("crowd.mjs", import.meta.url).pathname;

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

describe("a Node.js with workers", () => {
  test("threads and the workers of a cluster appear, and what is left out is told", async (t) => {
    const shown = await serve({ UV_THREADPOOL_SIZE: "18" }, "--no-open", "--", NODE, CROWD, folder());
    t.after(() => shown.server.kill("SIGKILL"));
    const page = await open(browser, shown.url);
    const processes = page.getByRole("combobox", { name: "Process" }).locator("option", { hasText: "crowd.mjs" });
    await until("the primary and its workers are there", async () => (await processes.count()) === 3);
    const loops = page.locator("#loops tbody").filter({ has: page.getByRole("button", { name: `process ${shown.pid}` }) });
    await loops.locator("tr", { hasText: /sums|WorkerThread/ }).waitFor();
    await until("the loops are in three groups", async () => (await page.locator("#loops tr.group").count()) === 3);
    await page.locator("#pool .left", { hasText: "and 2 more threads" }).waitFor();
    await page.locator("#pool").getByRole("button", { name: "Table of threads" }).first().click();
    await until("the table has all threads", async () => (await page.locator("#pool [role=region] table").first().locator("tbody tr").count()) === 18);
    assert.deepEqual(page.wrong, []);
    await page.context().close();
    shown.server.kill("SIGTERM");
    await shown.ended;
  });
});

describe("a program that is started by a shell", () => {
  test("a trace is of the process that has a loop, and one is made at a time", async () => {
    const shown = await live("--", "sh", "-c", '"$0" "$1"; true', NODE, new URL("child.mjs", import.meta.url).pathname);
    const page = await open(browser, shown.url, { acceptDownloads: true });
    await page.locator(".answer").first().waitFor();
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("e")]);
    assert.doesNotMatch(download.suggestedFilename(), new RegExp(`-${shown.pid}\\.`));
    let asked = 0;
    await page.route("**/trace?*", async (route) => {
      asked += 1;
      await route.fulfill({ status: 404, body: "as the test says" });
    });
    // What is said goes away after a while.
    const told = page.locator(".said", { hasText: "as the test says" }).waitFor();
    // A key that is held down is pressed again and again.
    await page.keyboard.down("e");
    for (let repeat = 0; repeat < 5; repeat++) await page.keyboard.down("e");
    await page.keyboard.up("e");
    await told;
    assert.equal(asked, 1);
    assert.deepEqual(page.wrong, []);
    await page.context().close();
    shown.server.kill("SIGTERM");
    await shown.ended;
  });
});

describe("a browser that is opened", () => {
  test("it gets an address that leads to the page once", async (t) => {
    const dir = folder();
    const [fake, said] = [join(dir, "xdg-open"), join(dir, "said")];
    writeFileSync(fake, `#!/bin/sh\nprintf %s "$1" > ${said}.new && mv ${said}.new ${said}\n`);
    chmodSync(fake, 0o755);
    const shown = await serve({ PATH: `${dir}${delimiter}${process.env.PATH}` }, "--demo");
    t.after(() => shown.server.kill("SIGKILL"));
    const once = await until("the browser was opened", () => existsSync(said) && readFileSync(said, "utf8"));
    // Others can see the arguments of a program, and the address of the page is not among them.
    assert.match(once, /\/open\/[^/]+#pid=\d+$/);
    assert.ok(!once.includes(shown.url.pathname), once);
    const page = await open(browser, once);
    await page.locator(".answer").first().waitFor();
    assert.equal(new URL(page.url()).pathname, shown.url.pathname);
    const { status, text } = await ask(shown.url, new URL(once).pathname);
    assert.equal(status, 404);
    assert.doesNotMatch(text, /http|script/);
    await page.context().close();
    shown.server.kill("SIGTERM");
    await shown.ended;
  });
});

describe("the demo, its recording, and nothing yet", () => {
  const path = join(folder(), "demo.recording");

  test("the demo is saved, and ends with a server that is killed", async () => {
    const demo = await live("--demo", "--save", path);
    const page = await open(browser, demo.url);
    await answer(page, "The thread pool is starved").waitFor();
    await answer(page, "Loop 1 (web) was blocked for").waitFor();
    await answer(page, "Handles may leak").waitFor();
    const alone = await live();
    const choosing = await open(browser, alone.url);
    await choosing.locator(".processes a").first().waitFor();
    assert.deepEqual(await violations(choosing), []);
    await choosing.getByRole("link", { name: new RegExp(`process ${demo.pid}\\b`) }).click();
    await choosing.locator(".answer").first().waitFor();
    alone.server.kill("SIGINT");
    assert.equal((await alone.ended).code, 0);
    demo.server.kill("SIGKILL");
    await page.locator(".pill.lost", { hasText: "no connection" }).waitFor();
    await page.locator(".banner", { hasText: "is lost" }).waitFor();
    await until("the demo has ended", () => !isThere(demo.pid));
    assert.deepEqual([...page.wrong, ...choosing.wrong], []);
    await page.context().close();
    await choosing.context().close();
  });

  test("a server that was started anew is told from one that does not answer", async () => {
    const demo = await live("--demo");
    const page = await open(browser, demo.url);
    await page.locator(".tour", { hasText: "Three things are wrong" }).waitFor();
    await page.locator(".tour").getByRole("button").click();
    await page.locator(".tour").waitFor({ state: "detached" });
    demo.server.kill("SIGKILL");
    await page.locator(".banner", { hasText: "the page tries again" }).waitFor();
    await demo.ended;
    const next = await live("--port", demo.url.port);
    await page.locator(".banner", { hasText: "does not know this page" }).waitFor();
    assert.equal(await page.locator(".banner", { hasText: "tries again" }).count(), 0);
    assert.deepEqual(page.wrong, []);
    await page.context().close();
    next.server.kill("SIGTERM");
    await next.ended;
  });

  test("a recording shows any moment, and a link leads back to it", async () => {
    const shown = await live(path);
    const page = await open(browser, shown.url);
    await page.locator(".pill.recording").waitFor();
    await answer(page, "Handles may leak").waitFor();
    assert.deepEqual(await violations(page), []);
    const slider = page.getByRole("slider", { name: "Moment" });
    await slider.focus();
    const end = await page.locator("output").innerText();
    await page.keyboard.press("Home");
    await page.locator(".pill.paused", { hasText: "recording at" }).waitFor();
    const begin = await page.locator("output").innerText();
    assert.notEqual(begin, end);
    await until("there was no leak yet", async () => /do not leak/.test(await page.locator("#answers").innerText()));
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("c");
    const link = await until("the link is in the address", () => page.evaluate(() => /t=\d+/.test(location.hash) && location.href));
    const other = await open(browser, link);
    await other.locator(".pill.paused").waitFor();
    assert.equal(await other.locator("output").innerText(), begin);
    await other.keyboard.press("e");
    await other.locator(".said", { hasText: "no single events" }).waitFor();
    assert.deepEqual([...page.wrong, ...other.wrong], []);
    shown.server.kill("SIGHUP");
    assert.equal((await shown.ended).code, 0);
  });

  test("a recording that was tampered with is not shown", async () => {
    const text = readFileSync(path, "utf8");
    const [heading] = text.split("\n");
    const bad = `${path}.bad`;
    const tampered = text.replace('"sentence":', '"sentence":"<b>","html":');
    assert.notEqual(tampered, text);
    for (const text of ["", "{}\n", `${heading}\n`, tampered]) {
      writeFileSync(bad, text);
      await assert.rejects(live(bad), /cannot be shown/);
    }
  });
});
