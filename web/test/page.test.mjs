// The page in Chromium, of a Node.js with known mistakes.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, describe, test } from "node:test";
import { answer, ask, launch, LIMIT, NODE, open, serve, until, violations } from "./support.mjs";

const PROGRAM = new URL("program.mjs", import.meta.url).pathname;
const MARKUP = "<img src=x onerror=alert(1)>";

let browser;
before(async () => (browser = await launch()));
after(() => browser.close());

// The newest stall that names a function, with a stack that has it and what Node.js and V8 do around it. Where processors are busy, a stall
// may be over before its stack is taken, or be in the middle of what cannot be unwound, so that not every stall has one.
function stallOf(page, name) {
  const has = (part, hasText) => ({ has: page.locator(part, { hasText }) });
  return page
    .locator("#stalls .stall-list > li")
    .filter(has("summary .symbol", name))
    .filter(has(".stack li.script", name))
    .filter(has(".stack li:not(.script)", "node:internal"))
    .filter(has(".fold button", "inside of V8"))
    .first();
}

// What it finds in each state that the page of a program can be in.
async function violationsInAll(page) {
  const found = [];
  await stallOf(page, "crunchReport").waitFor();
  const look = async (state) => found.push(...(await violations(page)).map((of) => `${state}: ${of}`));
  await look("live");
  for (const answer of await page.locator(".answer summary").all()) await answer.click();
  await page.locator(".answer[open] .evidence").first().waitFor();
  await look("evidence");
  await page.keyboard.press("Space");
  await page.evaluate(() => document.activeElement?.blur());
  if (!(await page.locator(".pill.paused").count())) await page.keyboard.press("Space");
  await page.locator(".pill.paused").waitFor();
  await look("paused");
  const stall = stallOf(page, "crunchReport");
  await stall.locator("summary").click();
  await stall.locator(".stack li").first().waitFor();
  for (const fold of await stall.locator(".fold button").all()) await fold.click();
  await look("a stack");
  await stall.getByRole("button", { name: "Select its time" }).click();
  await page.locator(".moments button", { hasText: "clear" }).waitFor();
  await look("a range");
  const tables = page.getByRole("button", { name: /^Table of / });
  for (const table of await tables.all()) await table.click();
  // In so short a time none may have ended.
  await page.getByRole("button", { name: "since it was made" }).click();
  await page.locator("#callbacks tbody button").first().click();
  await look("tables");
  await page.locator("#search").fill("udp");
  await page.locator("#handles tbody button").first().click();
  await page.locator("#handles .detail").waitFor();
  await look("a handle");
  await page.getByRole("button", { name: "Help: keys" }).click();
  await page.locator("dialog[open]").waitFor();
  await look("help");
  return found;
}

// The colours of the ring that can hardly be seen on its panel.
function pale(page) {
  return page.evaluate(() => {
    const style = getComputedStyle(document.documentElement);
    const light = (name) => {
      // The build writes #fff for #ffffff.
      const hex = style.getPropertyValue(name).trim().replace(/^#(.)(.)(.)$/, "#$1$1$2$2$3$3");
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
    };
    const names = ["working", "spinning", "asleep-dot", "outside", "running", "job-share", ...Array.from({ length: 7 }, (_, at) => `phase-${at}`)];
    const contrast = (name) => Math.max(light(name), light("--panel")) / Math.min(light(name), light("--panel"));
    return names.filter((name) => !(contrast(`--${name}`) >= 3));
  });
}

// Holds the page while its lists are looked at, since what comes next would move them.
async function held(page, look) {
  await page.locator("#time").focus();
  await page.keyboard.press("Space");
  await page.locator(".pill.paused").waitFor();
  await look();
  await page.keyboard.press("Escape");
  await page.locator(".pill.live").waitFor();
}

describe("a Node.js with mistakes", () => {
  let live_;
  let page;
  before(async () => {
    // One thread is starved as well as four, and leaves a processor to the browser.
    live_ = await serve({ UV_THREADPOOL_SIZE: "1" }, "--no-open", "--", NODE, PROGRAM);
    page = await open(browser, live_.url, { acceptDownloads: true });
    await page.locator(".answer").first().waitFor();
  });
  after(async () => {
    live_.server.kill("SIGTERM");
    await live_.ended;
  });

  test("the stall is told in words, and its stack names the script", async () => {
    await answer(page, "crunchReport").waitFor();
    assert.match(await answer(page, "What blocks").innerText(), /bad/);
    const stall = stallOf(page, "crunchReport");
    await stall.waitFor();
    await held(page, async () => {
      await stall.locator("summary").click();
      const script = stall.locator(".stack li.script").first();
      assert.match(await script.innerText(), /JS\s*crunchReport/);
      // What V8 does for it is out of the way, and what Node.js has in JavaScript is said to be that.
      assert.match(await stall.locator(".stack li:not(.script)", { hasText: "node:internal" }).first().innerText(), /^JS\s*\w/);
      const fold = stall.locator(".fold button", { hasText: "inside of V8" }).first();
      assert.equal(await stall.locator(".stack li", { hasText: "Builtins_" }).count(), 0);
      const frames = await stall.locator(".stack li").count();
      await fold.click();
      await until("its frames are there", async () => (await stall.locator(".stack li").count()) > frames);
      await stall.locator("summary").click();
    });
  });

  test("what the loop does now is told beside the ring", async () => {
    const now = page.locator("#turn .ring-now");
    await now.filter({ hasText: "Now asleep" }).waitFor();
    await now.filter({ hasText: /Now timers: a timer callback, for .*node::Environment::RunTimers/s }).waitFor();
  });

  test("the starved pool is told in words, and its queue and threads are shown", async () => {
    await answer(page, "The thread pool is starved").waitFor();
    await page.locator("#pool strong.waits").first().waitFor();
    await page.getByRole("button", { name: "Table of threads" }).first().click();
    const table = page.getByRole("region", { name: "Threads as a table" }).first();
    await table.locator("td", { hasText: "work" }).first().waitFor();
    await table.locator("td", { hasText: /work for .*, .* ago/ }).first().waitFor();
    await table.getByRole("columnheader", { name: "the oldest for" }).waitFor();
    // The one thread that there is never rests.
    const heads = await table.locator("table").first().locator("thead th").allTextContents();
    const busy = table.locator("table").first().locator("tbody tr").first().locator("th, td").nth(heads.indexOf("of the last 6 s"));
    await until("it is busy all the time", async () => parseInt(await busy.textContent()) > 80);
    await page.getByRole("button", { name: "Table of threads" }).first().click();
  });

  test("the leak is told in words, and where it is made", async () => {
    await answer(page, /Handles may leak: \d+ udps more than .* made by forgetSocket/).waitFor();
    const row = page.locator("#handles tbody tr", { hasText: "forgetSocket" });
    await row.locator(".grows").waitFor();
    assert.match(await row.innerText(), /udp/);
  });

  test("the costliest callbacks have a symbol and a histogram", async () => {
    await page.locator("#callbacks tbody tr:first-child", { hasText: "RunTimers" }).waitFor();
    await held(page, async () => {
      const first = page.locator("#callbacks tbody tr").first();
      assert.match(await first.innerText(), /RunTimers/);
      await first.getByRole("button").click();
      assert.match(await page.locator("#callbacks .bars caption").innerText(), /How long .* calls of node::Environment::RunTimers took/);
      await first.getByRole("button").click();
    });
  });

  test("a child appears by itself, and can be chosen alone", async () => {
    const process = page.getByRole("combobox", { name: "Process" });
    await process.locator("option", { hasText: "child.mjs" }).waitFor({ state: "attached" });
    await process.selectOption({ label: await process.locator("option", { hasText: "child.mjs" }).innerText() });
    await until("only the child is shown", async () => !(await page.locator("#handles").innerText()).includes("forgetSocket"));
    const loop = page.locator("#loops tbody tr", { hasText: "loop 3" }).last();
    await loop.getByRole("button").click();
    await page.locator("#turn .note", { hasText: "loop 3" }).waitFor();
    await loop.getByRole("button").click();
    await until("the loop is left", async () => (await page.locator("#loops tr.chosen").count()) === 0);
    assert.match(await process.inputValue(), /^\d+$/, "the process stays chosen");
    await process.selectOption("");
  });

  test("what looks like markup stays text", async () => {
    await page.locator(".whose", { hasText: "page-test <img src=x onerror=alert(1)>" }).first().waitFor();
    await page.locator("#search").fill("bold");
    await page.locator("#handles tr", { hasText: "<b>bold<" }).first().waitFor();
    const stall = stallOf(page, MARKUP);
    await stall.waitFor();
    await held(page, async () => {
      await stall.locator("summary").click();
      await stall.locator(".stack li.script", { hasText: MARKUP }).first().waitFor();
      await stall.locator("summary").click();
    });
    assert.equal(await page.locator("main img, main b:not(.when b), main script").count(), 0);
    await page.locator("#search").fill("");
    assert.deepEqual(page.wrong, []);
  });

  test("handles are searched and sorted", async () => {
    await page.locator("#search").fill("udp forget");
    const rows = page.locator("#handles tbody tr:not(.space)");
    await until("only those rows are left", async () => {
      const texts = await rows.allInnerTexts();
      return texts.length > 3 && texts.every((text) => /udp/.test(text));
    });
    assert.match(await page.locator("#handles [role=status]").innerText(), /^\d+ of \d+ handles and requests$/);
    await page.locator("#search").fill("");
    await page.locator("#handles .panel-head .note", { hasText: /^\d+ handles and \d+ requests?$/ }).waitFor();
    assert.equal(await page.locator("#handles [role=status]").count(), 0);
    const head = page.getByRole("columnheader", { name: "kind" }).last();
    await head.getByRole("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "descending");
    await head.getByRole("button").click();
    assert.equal(await head.getAttribute("aria-sort"), "ascending");
    const kinds = await page.locator("#handles tbody tr:not(.space) th").allInnerTexts();
    assert.deepEqual(kinds, [...kinds].sort((a, b) => a.localeCompare(b)));
    // Only what is seen is drawn.
    const total = Number(await page.locator("#handles table").getAttribute("aria-rowcount"));
    assert.ok(kinds.length < total || total < 30, `${kinds.length} of ${total}`);
    const key = page.locator("#handles tbody button").first();
    await key.click();
    await page.locator("#handles .detail dl").waitFor();
    await page.locator("#handles .detail button", { hasText: "Close" }).click();
    await page.getByRole("button", { name: "by where made" }).click();
  });

  test("the handles are one stop for the Tab key, and arrows lead through all of them", async () => {
    await page.locator("#handles").getByRole("button", { name: "each", exact: true }).click();
    const total = async () => Number(await page.locator("#handles table.fixed").getAttribute("aria-rowcount")) - 1;
    await until("there are more rows than can be seen", async () => (await total()) > 25);
    // So that the rows stay where they are.
    await page.locator("#time").focus();
    await page.keyboard.press("Space");
    await page.locator(".pill.paused").waitFor();
    const at = () => page.evaluate(() => Number(document.activeElement?.closest("#handles tbody tr")?.getAttribute("aria-rowindex")) - 1);
    const inSight = () =>
      page.evaluate(() => {
        const [row, box] = [document.activeElement.getBoundingClientRect(), document.activeElement.closest(".virtual").getBoundingClientRect()];
        return row.top >= box.top && row.bottom <= box.bottom;
      });
    const last = await total();
    await page.locator("#handles thead button").last().focus();
    await page.keyboard.press("Tab");
    assert.equal(await at(), 1);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.closest("#handles tbody")), null, "one Tab leads out");
    await page.keyboard.press("Shift+Tab");
    assert.equal(await at(), 1);
    for (const [key, place] of [["ArrowDown", 2], ["ArrowDown", 3], ["ArrowUp", 2], ["End", last], ["ArrowDown", last], ["Home", 1]]) {
      await page.keyboard.press(key);
      assert.equal(await at(), place, key);
      assert.ok(await inSight(), `${key} leads to where it is seen`);
    }
    await page.keyboard.press("PageDown");
    const page_ = await at();
    assert.ok(page_ > 5 && page_ < 20 && (await inSight()), `${page_}`);
    await page.keyboard.press("PageUp");
    assert.equal(await at(), 1);
    // A row that is scrolled out of sight keeps the focus.
    await page.locator("#handles .virtual").evaluate((box) => (box.scrollTop = box.scrollHeight));
    await page.locator(`#handles tr[aria-rowindex='${last + 1}']`).waitFor();
    assert.equal(await at(), 1);
    await page.keyboard.press("ArrowDown");
    assert.equal(await at(), 2);
    assert.ok(await inSight(), "the next key brings it back");
    await page.keyboard.press("Enter");
    await page.locator("#handles .detail").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.className), "detail");
    await page.keyboard.press("Escape");
    await page.locator("#handles .detail").waitFor({ state: "detached" });
    assert.equal(await at(), 2);
    assert.ok(await page.locator(".pill.paused").isVisible(), "Esc has closed the detail, and nothing else");
    await page.keyboard.press("Escape");
    await page.locator(".pill.live").waitFor();
    await page.locator("#handles").getByRole("button", { name: "by where made" }).click();
  });

  test("growth is since what was seen first, for a page that comes late as well", async () => {
    await page.locator("#handles .note", { hasText: /^Growth is since \d/ }).waitFor();
    const growth = async (of) => {
      const cell = of.locator("#handles tbody tr", { hasText: "forgetSocket" }).locator(".grows");
      await cell.waitFor();
      return Number((await cell.textContent()).replace(/\D/g, ""));
    };
    const known = await until("many were made", async () => (await growth(page)) > 20 && growth(page));
    const late = await open(browser, live_.url);
    assert.ok((await growth(late)) >= known, `it was ${known} before`);
    await late.context().close();
  });

  test("the list of stalls waits while one is read, and says what is new", async () => {
    const list = page.locator("#stalls .stall-list > li");
    await list.first().waitFor();
    await list.first().locator("summary").click();
    await page.locator("#stalls details[open]").waitFor();
    const place = () => list.evaluateAll((items) => items.findIndex((item) => item.querySelector("details[open]")));
    const before = [await list.count(), await place()];
    const show = page.locator("#stalls button", { hasText: /^Show \d+ new$/ });
    await show.waitFor();
    assert.deepEqual([await list.count(), await place()], before, "nothing has moved");
    await show.click();
    // There may be as many as the list keeps, and then an old one goes for each new one.
    await until("new ones stand before it", async () => (await place()) > before[1]);
    await page.locator("#stalls details[open] summary").click();
    await until("none is open", async () => (await page.locator("#stalls details[open]").count()) === 0);
  });

  test("an answer that gets shorter keeps its room for a while", async () => {
    const other = await open(browser, live_.url, { viewport: { width: 700, height: 900 } });
    const room = other.locator(".answer .room").first();
    await room.waitFor();
    await other.locator("#time").focus();
    await other.keyboard.press("Space");
    await other.locator(".pill.paused").waitFor();
    const height = () => room.evaluate((of) => of.offsetHeight);
    // Says something else, and returns the height by the second picture, when the browser has told of the new size. Nothing of the test comes
    // between, so that it is looked at before the room is given up.
    const say = (text) =>
      room.evaluate(async (room, text) => {
        room.querySelector(".sentence").textContent = text;
        await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
        return room.offsetHeight;
      }, text);
    const most = await say("word ".repeat(400));
    assert.ok(most > 30, `it has more lines: ${most} pixels`);
    assert.equal(await say("word"), most);
    await until("the room is given up", async () => (await height()) < most);
    await other.context().close();
  });

  test("keys that are characters can be turned off", async () => {
    await page.keyboard.press("?");
    const works = page.getByRole("checkbox", { name: "Keys that are letters" });
    await works.uncheck();
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "hidden" });
    await page.locator("#time").focus();
    for (const key of ["5", "?", "/", "c", "["]) await page.keyboard.press(key);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "time");
    assert.equal(await page.locator("dialog[open]").count(), 0);
    await page.getByRole("button", { name: "Help: keys" }).click();
    await works.check();
    await page.getByRole("button", { name: "Close" }).click();
    await page.keyboard.press("5");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "pool");
  });

  test("a section in another tab is that of the same program", async () => {
    const href = await page.getByRole("navigation").getByRole("link", { name: "Pool" }).evaluate((link) => link.href);
    const other = await open(browser, href);
    await until("the section has the focus", () => other.evaluate(() => document.activeElement?.id === "pool"));
    assert.deepEqual(other.wrong, []);
    await other.context().close();
  });

  test("a pause holds everything, and the stream goes on behind it", async () => {
    await page.locator("h1").click();
    await page.keyboard.press("Space");
    const pill = page.locator(".pill.paused");
    await pill.waitFor();
    const held = [await pill.innerText(), await page.locator("#turn").innerText()];
    const told = () => page.evaluate(() => window.told);
    const before = await told();
    await until("more is told", async () => (await told()) > before + 2);
    assert.deepEqual([await pill.innerText(), await page.locator("#turn").innerText()], held);
    await page.keyboard.press("ArrowLeft");
    await until("an earlier moment is shown", async () => (await pill.innerText()) !== held[0]);
    await page.keyboard.press("Escape");
    await page.locator(".pill.live").waitFor();
  });

  test("a page that nobody sees takes nothing, and comes back to the newest", async () => {
    const see = (hidden) =>
      page.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await see(true);
    await page.locator(".pill.lost", { hasText: "no connection" }).waitFor();
    await see(false);
    await page.locator(".pill.live").waitFor();
    assert.equal(await page.locator(".banner", { hasText: "lost" }).count(), 0);
  });

  test("dragging selects a range, which is exported as a trace", async () => {
    const chart = page.locator(".chart").first();
    // What is above the chart may grow while the mouse is on its way there.
    await until("a range is selected", async () => {
      await chart.scrollIntoViewIfNeeded();
      const box = await chart.boundingBox();
      const y = box.y + box.height / 2;
      await page.mouse.move(box.x + box.width - 60, y);
      await page.mouse.down();
      await page.mouse.move(box.x + box.width - 8, y, { steps: 5 });
      await page.mouse.up();
      return /\d s until /.test(await page.locator(".pill").innerText());
    });
    const [download] = await Promise.all([page.waitForEvent("download"), page.keyboard.press("e")]);
    const bytes = readFileSync(await download.path());
    // A packet of a trace, with its length.
    assert.ok(bytes.length > 1000 && bytes[0] === 0x0a, `${bytes.length} bytes`);
    await page.keyboard.press("c");
    await until("the link is in the address", () => page.evaluate(() => /from=\d+&to=\d+/.test(location.hash)));
    await page.keyboard.press("Escape");
    await page.locator(".pill.live").waitFor();
  });

  test("the keyboard leads everywhere", async () => {
    await page.evaluate(() => {
      document.body.tabIndex = -1;
      document.body.focus();
      document.body.removeAttribute("tabindex");
    });
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to the answers");
    await page.keyboard.press("Enter");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "answers");
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement?.tagName), "SUMMARY");
    await page.keyboard.press("Enter");
    await page.locator(".answer[open]").first().waitFor();
    for (const [key, id] of [["2", "time"], ["5", "pool"], ["7", "handles"]]) {
      await page.keyboard.press(key);
      assert.equal(await page.evaluate(() => document.activeElement?.id), id);
    }
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "search");
    await page.keyboard.type("a? 7");
    assert.equal(await page.locator("#search").inputValue(), "a? 7");
    await page.locator("#search").fill("");
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "hidden" });
    // A range without a mouse.
    await page.keyboard.press("[");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Escape");
    for (const name of ["Table of utilization", "Table of longest delay", "Table of handles over time"]) {
      const button = page.getByRole("button", { name }).first();
      await button.focus();
      await page.keyboard.press("Enter");
      await page.locator("[role=region][aria-label$='as a table'] td").first().waitFor();
      await page.keyboard.press("Enter");
    }
  });

  for (const colorScheme of ["dark", "light"]) {
    for (const width of [1280, 390]) {
      test(`nobody is shut out in ${colorScheme} colours at ${width} pixels`, async () => {
        const other = await open(browser, live_.url, { colorScheme, reducedMotion: "reduce", viewport: { width, height: 850 } });
        await other.locator(".answer.bad").first().waitFor();
        await other.locator("#stalls li").first().waitFor();
        const wide = await other.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(wide <= width, `${wide} pixels are wider than the window`);
        const ground = await other.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
        const [red] = /\d+/.exec(ground);
        assert.equal(Number(red) < 128, colorScheme === "dark", ground);
        assert.equal(await other.evaluate(() => getComputedStyle(document.querySelector(".arc")).transitionDuration), "0s");
        assert.deepEqual(await pale(other), []);
        // What speaks when it gets words is there before it has some.
        assert.equal(await other.getByRole("status").filter({ hasNotText: /./ }).count(), 1);
        const found = await violationsInAll(other);
        assert.deepEqual(found, []);
        assert.deepEqual(other.wrong, []);
        await other.context().close();
      });
    }
  }

  test("the ring moves for who has not asked for less", async () => {
    assert.match(await page.evaluate(() => getComputedStyle(document.querySelector(".arc")).transitionDuration), /^0\.16s/);
  });

  test("a link leads another tab to its moment, and a reload as well", async () => {
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press("Space");
    await page.locator(".pill.paused").waitFor();
    for (let step = 0; step < 3; step++) await page.keyboard.press("Shift+ArrowLeft");
    // The link to what is shown, made anew.
    const linkOf = async (of) => {
      await of.evaluate(() => history.replaceState(null, "", location.pathname));
      await of.keyboard.press("c");
      return until("the link is in the address", () => of.evaluate(() => /t=\d+/.test(location.hash) && location.href));
    };
    // What is said goes away after a while.
    const said = page.locator(".said", { hasText: "keeps that time" }).waitFor();
    const link = await linkOf(page);
    await said;
    const time = (link) => Number(/[#&]t=(\d+)/.exec(link)[1]);
    // Links count in milliseconds. What was read last by then need not be the same: a page that takes its time misses frames, and another one
    // gets them from what is kept.
    const leadsThere = async (of) => {
      await of.locator(".pill.paused", { hasText: "paused at" }).waitFor();
      const found = await linkOf(of);
      assert.ok(Math.abs(time(found) - time(link)) <= 2, `${link} leads to ${found}`);
    };
    const other = await open(browser, link);
    await leadsThere(other);
    await page.reload();
    await leadsThere(page);
    assert.deepEqual(other.wrong, []);
    // A moment that nobody has seen.
    const gone = await open(browser, link.replace(/t=\d+/, "t=1000"));
    await gone.locator(".banner", { hasText: "not kept any more" }).waitFor();
    await gone.context().close();
    await other.context().close();
    await page.keyboard.press("Escape");
    await page.locator(".pill.live").waitFor();
  });

  test("a name that is bound to this machine anew gets nothing", async () => {
    const rebound = await launch("--host-resolver-rules=MAP rebound.example 127.0.0.1");
    const address = `http://rebound.example:${live_.url.port}${live_.url.pathname}`;
    const evil = await (await rebound.newContext()).newPage();
    evil.setDefaultTimeout(LIMIT);
    const response = await evil.goto(address);
    assert.equal(response.status(), 403);
    assert.doesNotMatch(await evil.content(), /<script|page\.js/);
    // Not even from its own origin, which the browser takes it for.
    const read = await evil.evaluate((address) => fetch(`${address}events`).then(async (got) => [got.status, await got.text()]), address);
    assert.equal(read[0], 403);
    assert.doesNotMatch(read[1], /frame/);
    // The name leads to this machine indeed: by its number the same browser is let in.
    const own = await evil.goto(`http://127.0.0.1:${live_.url.port}${live_.url.pathname}`);
    assert.equal(own.status(), 200);
    await rebound.close();
  });

  test("others get nothing", async () => {
    const { url } = live_;
    const host = `127.0.0.1:${url.port}`;
    const own = `${url.pathname}events?pid=${live_.pid}`;
    assert.equal((await ask(url, own, { host })).status, 200);
    for (const [path, headers, status] of [
      ["/", { host }, 404],
      [`/${"0".repeat(40)}/`, { host }, 404],
      [`/${"0".repeat(40)}/events`, { host }, 404],
      [own, { host: `rebound.example:${url.port}` }, 403],
      [own, { host, origin: "http://evil.example" }, 403],
      [own, { host, origin: "null" }, 403],
    ]) {
      const refused = await ask(url, path, headers);
      assert.equal(refused.status, status, `${path} ${JSON.stringify(headers)}`);
      assert.doesNotMatch(refused.text, /frame|script/);
      assert.equal(refused.headers["access-control-allow-origin"], undefined);
    }
    assert.equal((await ask(url, own, { host }, "POST")).status, 405);
    // A page of another origin that knows even the token.
    const evil = createServer((_, response) => response.setHeader("content-type", "text/html").end("<p>evil"));
    await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
    const other = await open(browser, `http://127.0.0.1:${evil.address().port}/`);
    const address = `${url.origin}${url.pathname}`;
    const read = await other.evaluate(async (address) => {
      const tried = [];
      for (const mode of ["cors", "no-cors"]) {
        tried.push(await fetch(`${address}events`, { mode }).then((got) => got.text(), () => "refused"));
      }
      tried.push(
        await new Promise((resolve) => {
          const source = new EventSource(`${address}events`);
          source.onerror = () => resolve("refused");
          source.addEventListener("frame", () => resolve("read"));
        }),
      );
      const frame = document.createElement("iframe");
      frame.src = address;
      document.body.append(frame);
      await new Promise((resolve) => (frame.onload = resolve));
      // The browser shows a page of its own in place of one that may not be framed.
      tried.push(frame.contentDocument === null ? "refused" : "framed");
      return tried;
    }, address);
    assert.deepEqual(read.map((text) => text || "refused"), ["refused", "refused", "refused", "refused"]);
    await other.context().close();
    evil.close();
  });

  test("a program that dies is told of, and then the server that stops", async () => {
    await page.locator("#stalls li", { hasText: "crunchReport" }).first().waitFor();
    process.kill(live_.pid, "SIGKILL");
    await page.locator(".banner", { hasText: `Process ${live_.pid}` }).filter({ hasText: "signal: 9" }).waitFor();
    await page.locator("#stalls li", { hasText: "crunchReport" }).first().waitFor();
    live_.server.kill("SIGTERM");
    assert.equal((await live_.ended).code, 0);
    await page.locator(".banner", { hasText: "Blacklight live was stopped" }).waitFor();
    await page.locator(".pill.lost", { hasText: "stopped" }).waitFor();
    await assert.rejects(ask(live_.url, "/"));
    assert.equal(existsSync(`/tmp/perf-${live_.pid}.map`), false);
    assert.deepEqual(page.wrong, []);
  });
});
