// Random programs of immediates, ticks and microtasks; one begins when the last has ended.
const SEEDS = 40;
const TASKS = 60;
let seed = 0;
let count = 0;
let immediates = [];

// The nth random number of a task. No task's numbers depend on what ran before it.
function random(task, n, below) {
  let x = (seed * 0x10001 + task * 0x101 + n + 1) >>> 0;
  for (const factor of [0x7feb352d, 0x846ca68b]) {
    x = Math.imul(x ^ (x >>> 16), factor) >>> 0;
    x = (x ^ (x >>> 15)) >>> 0;
  }
  return x % below;
}

function run(name, task) {
  console.log(name, task);
  const actions = random(task, 0, 4);
  for (let n = 1; n <= actions; n++) {
    const which = immediates[random(task, n + 10, immediates.length + 1)];
    switch (random(task, n, 8)) {
      case 0:
      case 1:
        start((id) => process.nextTick(() => run('tick', id)));
        break;
      case 2:
      case 3:
        start((id) => queueMicrotask(() => run('microtask', id)));
        break;
      case 4:
      case 5:
        start((id) => immediates.push(setImmediate(() => run('immediate', id))));
        break;
      case 6:
        clearImmediate(which);
        break;
      case 7:
        if (which) console.log('reference', which.hasRef() ? which.unref().hasRef() : which.ref().hasRef());
        break;
    }
  }
}

function start(how) {
  if (count < TASKS) how(++count);
}

process.on('beforeExit', () => {
  if (seed === SEEDS) return;
  seed += 1;
  count = 0;
  immediates = [];
  console.log('seed', seed);
  for (let n = 0; n < 4; n++) start((id) => immediates.push(setImmediate(() => run('immediate', id))));
  run('main', 0);
});
