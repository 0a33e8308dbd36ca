// A process that appears while the page is open.
setInterval(() => {}, 20);
process.on("disconnect", () => process.exit(0));
