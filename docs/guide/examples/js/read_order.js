// Three ways to read a file. The first waits for the disk, and everything with it. The others ask the
// thread pool, and the loop tells of the answer in its poll phase. Which of two reads that are under way
// at once ends first is not said, nor whether an immediate of the main program comes before: what must
// come later is asked for later, in the callback or after the await.
const fs = require('fs');

const lines = (text) => text.split('\n').length;

fs.readFile(__filename, 'utf8', async (error, text) => {
  console.log(`readFile: ${lines(text)} lines`);
  const again = await fs.promises.readFile(__filename, 'utf8');
  console.log(`fs.promises.readFile: the same: ${again === text}`);
});
process.nextTick(() => console.log('tick'));
console.log(`readFileSync: ${lines(fs.readFileSync(__filename, 'utf8'))} lines`);
