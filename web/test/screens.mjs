// Takes the pictures of the documents, of the demo and of a Node.js.

import { copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { folder, launch, live, NODE, open, until } from "./support.mjs";

const { SCREENS } = process.env;
const WIDTH = 1280;
const browser = await launch();

// A part of the page with a little around it. The page is held meanwhile, so that nothing above it moves it.
async function shoot(page, name, part) {
  await page.evaluate(() => document.activeElement?.blur());
  await page.mouse.move(0, 0);
  if (!(await page.locator(".pill.paused").count())) await page.keyboard.press("Space");
  await page.locator(".pill.paused").waitFor();
  const path = join(SCREENS, `${name}.png`);
  const box = await part.boundingBox();
  const above = await page.evaluate(() => scrollY);
  const clip = { x: 0, y: box.y + above - 8, width: page.viewportSize().width, height: box.height + 16 };
  await page.screenshot({ path, clip, fullPage: true });
  await page.keyboard.press("Escape");
}

// The page from its beginning to the end of a part, so that no panel is cut.
async function shootUntil(page, name, part) {
  await page.evaluate(() => (document.activeElement?.blur(), scrollTo(0, 0)));
  await page.mouse.move(0, 0);
  const box = await part.boundingBox();
  const clip = { x: 0, y: 0, width: page.viewportSize().width, height: Math.round(box.y + box.height + 16) };
  await page.screenshot({ path: join(SCREENS, `${name}.png`), clip, fullPage: true });
}

// What is pictured is the page, and not what is said to newcomers.
const dismiss = (page) => page.locator(".tour").getByRole("button").click();

// A moment in which the program is to blame for what it does, and not a machine that has other things to do.
const quiet = (page) =>
  until("the machine is quiet", async () => (await page.locator(".answer.fine", { hasText: "Is it the program or the machine?" }).count()) === 1, 600_000);

// Until the charts are full.
const filled = (page) => until("a minute has passed", async () => /last (\d+ min|[6-9]\d s|1\d\d s)/.test(await page.locator("footer").innerText()), 120_000);

const program = join(folder(), "shop", "shop.mjs");
mkdirSync(dirname(program));
copyFileSync(new URL("shop.mjs", import.meta.url), program);
const shop = await live("--", NODE, program);
const page = await open(browser, shop.url, { colorScheme: "dark", viewport: { width: WIDTH, height: 1100 } });
const newest = page.locator(".stall-list > li").first();
await until("the newest stall has the names of its functions", async () => {
  await newest.filter({ hasText: /findPrice|makeInvoice/ }).locator("summary", { hasText: "ago" }).waitFor();
  await page.keyboard.press("Space");
  await page.locator(".pill.paused").waitFor();
  const said = await newest.locator("summary").innerText();
  if (/findPrice|makeInvoice/.test(said) && / ago/.test(said) && (await page.locator(".stall-list > li").count()) > 2) return true;
  await page.keyboard.press("Escape");
  return false;
}, 120_000);
await newest.locator("summary").click();
await newest.locator(".stack li").first().waitFor();
await shoot(page, "live-stall", page.locator("#stalls"));
await page.context().close();
shop.server.kill("SIGTERM");
await shop.ended;

const demo = await live("--demo");
const viewport = { width: WIDTH, height: 900 };
const dark = await open(browser, demo.url, { colorScheme: "dark", viewport, deviceScaleFactor: 2 });
const light = await open(browser, demo.url, { colorScheme: "light", viewport, deviceScaleFactor: 2 });
const phone = await open(browser, demo.url, { colorScheme: "dark", viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 });
await filled(dark);
for (const page of [dark, light, phone]) {
  await dismiss(page);
  for (const words of ["was blocked for", "The thread pool is starved", "may leak"]) await page.locator(".answer", { hasText: words }).waitFor();
}
// Where the window is narrower the pool has all of its width.
const narrow = await open(browser, demo.url, { colorScheme: "dark", viewport: { width: 940, height: 900 } });
await narrow.locator("#pool .lanes canvas").scrollIntoViewIfNeeded();
await until("requests wait", async () => Number(await narrow.locator("#pool strong.waits").innerText()) > 9);
await shoot(narrow, "live-pool", narrow.locator("#pool"));
await dark.locator("#handles").scrollIntoViewIfNeeded();
await shoot(dark, "live-handles", dark.locator("#handles"));
await narrow.context().close();
// Those that show all answers come last, and wait for a good moment.
for (const [page, name] of [[dark, "live"], [light, "live-light"]]) {
  await quiet(page);
  await shootUntil(page, name, page.locator(".columns").first());
}
await quiet(phone);
await shootUntil(phone, "live-phone", phone.locator("#answers"));
demo.server.kill("SIGTERM");
await demo.ended;
await browser.close();
