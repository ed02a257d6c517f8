// The way in on a fresh clone: plain JavaScript for whatever Node the machine has, without any dependency. It installs
// the packages where they are missing and hands over to the real command on the Node that came with them.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const oldestNode = 20;
const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(root, 'node_modules');
const node = join(packages, '.bin', 'node');
const stampFile = join(packages, '.exportd-installed-from');
const lockFile = join(root, 'package-lock.json');

/** The process that works at the moment: signals go to it. */
let current;
/** When the last signal came; 0 for never. */
let lastSignal = 0;

function fail(message) {
  process.stderr.write(`exportd: ${message}\n`);
  process.exit(1);
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Whether npm's own record of what it installed says the same as the lock file: then somebody ran npm by hand. */
function installedByHand(lockText) {
  const record = readText(join(packages, '.package-lock.json'));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  return Object.entries(JSON.parse(lockText).packages).every(
    ([path, { version, optional, devOptional }]) =>
      path === '' ||
      installed[path]?.version === version ||
      (!(path in installed) && (optional || devOptional)),
  );
}

/** Installs the packages unless those of the current lock file are there. */
async function ensurePackages() {
  const lockText = readText(lockFile);
  if (lockText === undefined) fail(`${lockFile} is missing: clone the repository again.`);
  const stamp = createHash('sha256').update(lockText).digest('hex');
  if (existsSync(node) && readText(stampFile) === stamp) return;
  if (!existsSync(node) || !installedByHand(lockText)) await install();
  writeFileSync(stampFile, stamp);
}

/** Runs npm ci; what npm prints is shown only when it fails. */
async function install() {
  const begin = Date.now();
  const seconds = () => ((Date.now() - begin) / 1_000).toFixed(1);
  process.stdout.write('Installing packages (npm ci), once for this clone\n');
  const progress = setInterval(
    () => process.stdout.write(`  still installing, ${seconds()} s so far\n`),
    10_000,
  );
  // Under npm its program is known; it may not be on PATH.
  const npm = process.env.npm_execpath?.endsWith('.js')
    ? [process.execPath, process.env.npm_execpath]
    : ['npm'];
  const [command, ...args] = [...npm, 'ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  const { code, output } = await new Promise((resolve) => {
    let output = '';
    current = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [current.stdout, current.stderr])
      stream.setEncoding('utf8').on('data', (text) => (output += text));
    current.once('error', (error) => resolve({ code: 1, output: String(error) }));
    current.once('close', (code) => resolve({ code, output }));
  });
  current = undefined;
  clearInterval(progress);
  if (lastSignal > 0) process.exit(130);
  if (/ENOSPC|no space left/i.test(output))
    fail(`the disk that holds ${root} is full: free about 1 GB and start again.`);
  if (code !== 0) fail(`the packages could not be installed (npm ci):\n${output.trim()}`);
  if (!existsSync(node))
    fail(
      'npm ran no install scripts, which bring Node 24: run "npm ci --ignore-scripts=false" and start again.',
    );
  process.stdout.write(`Packages installed in ${seconds()} s\n`);
}

/** Runs the real command and ends as it ends. */
function handOver(script, args) {
  const environment = { ...process.env, PATH: [join(packages, '.bin'), process.env.PATH].join(delimiter) };
  // In a session of its own, Ctrl-C in a terminal reaches it once, from here, and not once more from the terminal.
  // The channel tells it when this process has gone without a word.
  current = spawn(node, [join(root, script), ...args], {
    env: environment,
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  current.once('error', (error) => fail(`${node} cannot be run: ${error.message}`));
  current.once('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  // A signal to npm alone may end the shell between npm and this process, which hears nothing of it.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 1_000).unref();
}

for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    // npm repeats the signal that a terminal has sent to all: only a later one is a second Ctrl-C.
    if (Date.now() - lastSignal < 500) return;
    lastSignal = Date.now();
    if (current === undefined) process.exit(128 + constants.signals[signal]);
    current.kill(signal);
  });

if (Number(process.versions.node.split('.')[0]) < oldestNode)
  fail(`Node ${oldestNode} or newer is needed, and this is ${process.version}: see https://nodejs.org.`);
const [command = 'up', ...args] = process.argv.slice(2);
await ensurePackages();
if (command === 'test') handOver('src/local_stack/test_command/main.ts', args);
else handOver('src/cli/main.ts', [command, ...args]);
