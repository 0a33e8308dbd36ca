// A shop that makes its invoices in the loop that serves its customers: the program in the picture of a stall.

import { createServer, get } from "node:http";
import { fileURLToPath } from "node:url";

const prices = Array.from({ length: 20_000 }, (_, at) => ({ name: `article ${at}`, cents: (at * 7919) % 10_000 }));

// Looks for each article among all of them, which takes long.
function findPrice(name) {
  for (const price of prices) if (price.name === name) return price.cents;
}

function makeInvoice(order) {
  let sum = 0;
  for (const name of order) sum += findPrice(name);
  return sum;
}

const order = prices.map(({ name }) => name);
const server = createServer(function answer(request, response) {
  response.end(request.url === "/invoice" ? String(makeInvoice(order)) : "welcome");
});
server.listen(0, "127.0.0.1", () => {
  const { port } = server.address();
  const visit = (path) => get({ host: "127.0.0.1", port, path }, (response) => response.resume()).on("error", () => {});
  setInterval(visit, 40, "/");
  setInterval(visit, 3_000, "/invoice");
});
process.title = `node ${fileURLToPath(import.meta.url).split("/").pop()}`;
