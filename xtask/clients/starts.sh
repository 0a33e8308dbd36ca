#!/bin/sh
# The ways people start programs: `starts.sh CHECK ROOT [RUN…]`, in an empty directory.
#
# ROOT has Node.js in `node`, npm and vitest in `project`, uvicorn and uvloop in `python`. RUN are the
# words of `blacklight run`, up to the program; without them the programs run on what they carry.
# Ours is told to use poll, so it has no epoll descriptor, and what programs carry has one.
set -eu
check=$1
root=$2
shift 2
run=$*
PATH=$root/node/bin:$root/project/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin
PYTHONPATH=$root/python:$PWD
export PATH PYTHONPATH
whose=${run:+ours}
whose=${whose:-carried}

through() {
  if [ -n "$run" ]; then $run -- "$@"; else "$@"; fi
}

# Fails unless the words of a program are these, one on each line, in any order.
expect() {
  printf '%s\n' "$@" | sort >expected
  grep -E '(ours|carried)$' said | sort | diff expected -
}

cat >whose.js <<'JS'
const { readdirSync, readlinkSync } = require('fs');
const name = (fd) => { try { return readlinkSync(`/proc/self/fd/${fd}`); } catch { return ''; } };
module.exports = () => readdirSync('/proc/self/fd').map(name).includes('anon_inode:[eventpoll]') ? 'carried' : 'ours';
if (require.main === module) console.log(`${process.argv[2] ?? 'script'} ${module.exports()}`);
JS
echo '{ "name": "starts", "version": "1.0.0", "scripts": { "start": "node whose.js started" } }' >package.json

# A server on uvloop that answers with whose loop it has.
serves() {
  cat >app.py <<'PY'
import os


def whose():
    names = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            names.append(os.readlink("/proc/self/fd/" + fd))
        except FileNotFoundError:
            pass
    return "carried" if "anon_inode:[eventpoll]" in names else "ours"


async def app(scope, receive, send):
    assert scope["type"] == "http"
    import asyncio
    loop = type(asyncio.get_running_loop()).__module__
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": f"{loop} {whose()}\n".encode()})
PY
  cat >uvicorn <<'PY'
#!/usr/bin/python3
import sys
from uvicorn.main import main
sys.exit(main())
PY
  chmod +x uvicorn
  cat >ask.py <<'PY'
import sys
import time
import urllib.request
while True:
    try:
        print(urllib.request.urlopen("http://127.0.0.1:8011/").read().decode(), end="")
        break
    except urllib.error.URLError:
        time.sleep(0.05)
PY
  through "$@" app:app --loop uvloop --lifespan off --port 8011 &
  server=$!
  /usr/bin/python3 ask.py >said
  kill -TERM $server
  wait $server || true
  expect "uvloop $whose"
}

case $check in
node)
  through node whose.js >said
  expect "script $whose"
  ;;
env_script)
  { echo '#!/usr/bin/env node'; cat whose.js; } >script
  chmod +x script
  through ./script >said
  expect "script $whose"
  ;;
npm_start)
  through npm start >said
  expect "started $whose"
  ;;
npx_vitest)
  mkdir test
  for pool in forks threads; do
    for name in one two; do
      cat >"test/$name.test.js" <<JS
import { appendFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import whose from '../whose.js';
test('$name', async () => {
  await new Promise((resolve) => setTimeout(resolve, 2));
  expect(whose()).toBe('$whose');
  appendFileSync('said', '$pool $name $whose\n');
});
JS
    done
    ln -sfn "$root/project/node_modules" node_modules
    through npx vitest run --pool=$pool
  done
  expect "forks one $whose" "forks two $whose" "threads one $whose" "threads two $whose"
  ;;
uvicorn)
  serves ./uvicorn
  ;;
python_m)
  serves /usr/bin/python3 -m uvicorn
  ;;
cluster_workers)
  cat >cluster.js <<'JS'
const cluster = require('cluster');
const whose = require('./whose.js');
if (cluster.isPrimary) {
  console.log(`primary ${whose()}`);
  for (let n = 0; n < 2; n++) cluster.fork().on('message', (word) => console.log(`worker ${word}`));
} else {
  process.send(whose(), () => process.disconnect());
}
JS
  through node cluster.js >said
  expect "primary $whose" "worker $whose" "worker $whose"
  ;;
children)
  cat >children.js <<'JS'
const { execFileSync } = require('child_process');
const options = { encoding: 'utf8' };
process.stdout.write(execFileSync('sh', ['-c', 'node whose.js grandchild'], options));
process.stdout.write(execFileSync(process.execPath, ['whose.js', 'child'], options));
// What starts with an empty environment has nothing to inherit.
process.stdout.write(execFileSync(process.execPath, ['whose.js', 'stranger'], { ...options, env: {} }));
JS
  through node children.js >said
  expect "grandchild $whose" "child $whose" "stranger carried"
  ;;
only_this)
  cat >parent.js <<'JS'
const { spawnSync } = require('child_process');
console.log(`parent ${require('./whose.js')()}`);
spawnSync('node', ['whose.js', 'child'], { stdio: 'inherit' });
JS
  run=${run:+$run --only-this}
  through node parent.js >said
  expect "parent $whose" "child carried"
  ;;
worker_thread)
  cat >thread.js <<'JS'
const { Worker } = require('worker_threads');
const code = `setTimeout(() => require('worker_threads').parentPort.postMessage(require('./whose.js')()), 2)`;
new Worker(code, { eval: true }).on('message', (word) => console.log(`thread ${word}`));
JS
  through node thread.js >said
  expect "thread $whose"
  ;;
snapshot)
  cat >entry.js <<'JS'
require('v8').startupSnapshot.setDeserializeMainFunction(() => {
  setTimeout(() => console.log(`snapshot ${process.getBuiltinModule('module').createRequire(`${process.cwd()}/`)('./whose.js')()}`), 2);
});
JS
  through node --snapshot-blob blob --build-snapshot entry.js
  through node --snapshot-blob blob >said
  expect "snapshot $whose"
  ;;
single_executable)
  # A copy of Node.js with the program in it has the build ID of Node.js, and is another file.
  cat >alone.js <<'JS'
const { execFileSync } = require('child_process');
const name = (fd) => { try { return require('fs').readlinkSync(`/proc/self/fd/${fd}`); } catch { return ''; } };
const whose = require('fs').readdirSync('/proc/self/fd').map(name).includes('anon_inode:[eventpoll]') ? 'carried' : 'ours';
console.log(`alone ${whose}`);
if (process.argv[2]) process.stdout.write(execFileSync(process.argv[2], ['whose.js', 'child'], { encoding: 'utf8' }));
JS
  echo '{ "main": "alone.js", "output": "alone", "disableExperimentalSEAWarning": true }' >sea.json
  node --build-sea sea.json
  through ./alone "$root/node/bin/node" >said
  expect "alone $whose" "child $whose"
  through node -e "process.stdout.write(require('child_process').execFileSync('./alone'))" >said
  expect "alone $whose"
  ;;
*)
  echo "there is no check $check"
  exit 2
  ;;
esac
