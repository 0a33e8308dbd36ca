// Random programs of timers, ticks and microtasks; one begins when the last has ended.
const SEEDS = 40;
const TASKS = 60;
let seed = 0;
let count = 0;
let timers = [];

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
    const which = timers[random(task, n + 10, timers.length + 1)];
    switch (random(task, n, 8)) {
      case 0:
        start((id) => process.nextTick(() => run('tick', id)));
        break;
      case 1:
        start((id) => queueMicrotask(() => run('microtask', id)));
        break;
      case 2:
      case 3:
        start((id) => timers.push(setTimeout(() => run('timeout', id), 2)));
        break;
      case 4:
        start(repeat);
        break;
      case 5:
        clearTimeout(which);
        break;
      default:
        // From a tick, it would depend on the clock whether this comes too late.
        if (which && name !== 'tick' && name !== 'microtask' && start(() => {})) which.refresh();
        break;
    }
  }
}

// An interval that runs three times.
function repeat(id) {
  let left = 3;
  timers.push(setInterval(function() {
    left -= 1;
    if (left === 0) clearInterval(this);
    run('interval', id);
  }, 2));
}

function start(how) {
  if (count === TASKS) return false;
  how(++count);
  return true;
}

process.on('beforeExit', () => {
  if (seed === SEEDS) return;
  seed += 1;
  count = 0;
  timers = [];
  console.log('seed', seed);
  for (let n = 0; n < 4; n++) start((id) => timers.push(setTimeout(() => run('timeout', id), 2)));
  run('main', 0);
});
