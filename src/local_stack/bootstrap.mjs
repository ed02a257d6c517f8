// Entry point in a fresh clone: plain JavaScript without dependencies, for the Node of the machine. It installs the
// packages if they are missing, brings the servers meanwhile, and runs the actual command on the Node that is among the
// packages.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const minNode = 20;
const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(root, 'node_modules');
const node = join(packages, '.bin', 'node');
const stampFile = join(packages, '.exportd-installed-from');
const lockFile = join(root, 'package-lock.json');

/** When the user called the command. All lines of progress count from here. */
const startedAt = Date.now();
/** The running child process, which receives the signals. */
let current;
/** The process that brings the servers while npm runs. */
let prefetch;
/** Time of the last signal; 0 for none. */
let lastSignal = 0;

function fail(message) {
  process.stderr.write(`exportd: ${message}\n`);
  process.exit(1);
}

/** Prints one line of progress. */
function report(line) {
  process.stdout.write(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Whether npm's record of installed packages matches the lock file: then the user has run npm. */
function matchesLockFile(lockText) {
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

/** Installs the packages unless those of the current lock file are installed. */
async function ensurePackages(needsServers) {
  const lockText = readText(lockFile);
  if (lockText === undefined) fail(`${lockFile} is missing: clone the repository again.`);
  const stamp = createHash('sha256').update(lockText).digest('hex');
  if (existsSync(node) && readText(stampFile) === stamp) return;
  if (!existsSync(node) || !matchesLockFile(lockText)) {
    if (needsServers) prefetchServers();
    await install();
  }
  writeFileSync(stampFile, stamp);
}

/** How to run npm or npx: npm passes the path of its program, which may not be on PATH. */
function npmCommand(name) {
  const npm = process.env.npm_execpath;
  const isScript = npm?.endsWith('npm-cli.js');
  return isScript ? [process.execPath, npm.replace('npm-cli.js', `${name}-cli.js`)] : [name];
}

/** How to run TypeScript before the packages are there: on this Node if it can, else on the pinned one. */
function typescriptRunner() {
  if (process.features.typescript === 'strip') return [process.execPath];
  const version = JSON.parse(readText(lockFile)).packages['node_modules/node'].version;
  const prefix = process.platform === 'darwin' && process.arch === 'arm64' ? 'node-bin' : 'node';
  const name = [prefix, process.platform, process.arch].join('-');
  return [...npmCommand('npx'), '--yes', '--loglevel=error', `--package=${name}@${version}`, '--', 'node'];
}

/** Starts to bring the servers. What fails here is tried again by the actual command, which then reports it. */
function prefetchServers() {
  const [command, ...args] = [...typescriptRunner(), join(root, 'src/local_stack/servers/prefetch.ts')];
  // Not in the clone, where npm is replacing the packages.
  prefetch = spawn(command, args, { cwd: tmpdir(), stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  let unfinished = '';
  prefetch.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop();
    lines.forEach(report);
  });
  prefetch.once('error', () => (prefetch = undefined));
  prefetch.once('close', () => (prefetch = undefined));
}

/** Runs npm ci. Prints its output only when it fails. */
async function install() {
  const installing = Date.now();
  const seconds = () => ((Date.now() - installing) / 1_000).toFixed(1);
  report('Installing packages (npm ci), once per clone');
  const progress = setInterval(() => report(`Still installing packages, ${seconds()} s so far`), 10_000);
  const options = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  const [command, ...args] = [...npmCommand('npm'), ...options];
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
    fail(`the disk of ${root} is full: free about 1 GB and start again.`);
  if (code !== 0) fail(`npm ci failed:\n${output.trim()}`);
  if (!existsSync(node))
    fail(
      'npm ran no install scripts, which install Node 24: run "npm ci --ignore-scripts=false" and start again.',
    );
  report(`Packages installed in ${seconds()} s`);
}

/** Runs the actual command and exits with its exit code. */
function run(script, args) {
  const environment = {
    ...process.env,
    PATH: [join(packages, '.bin'), process.env.PATH].join(delimiter),
    EXPORTD_STARTED_AT: String(startedAt),
  };
  // In a separate session, Ctrl-C in a terminal reaches it only through this process, not twice. The IPC channel closes
  // when this process is killed.
  current = spawn(node, [join(root, script), ...args], {
    env: environment,
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  current.once('error', (error) => fail(`cannot run ${node}: ${error.message}`));
  current.once('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  // A signal to npm may kill only the shell between npm and this process, without reaching this process.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 1_000).unref();
}

process.once('exit', () => {
  // Its group: npx does not pass signals on.
  if (prefetch?.pid !== undefined) process.kill(-prefetch.pid, 'SIGTERM');
});
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    // npm repeats a signal that the terminal has sent to all. Only a later signal is a second Ctrl-C.
    if (Date.now() - lastSignal < 500) return;
    lastSignal = Date.now();
    if (current === undefined) process.exit(128 + constants.signals[signal]);
    current.kill(signal);
  });

if (Number(process.versions.node.split('.')[0]) < minNode)
  fail(`Node ${minNode} or newer is required, found ${process.version}: see https://nodejs.org.`);
const [command = 'up', ...args] = process.argv.slice(2);
await ensurePackages(['up', 'test', 'bench'].includes(command) && args[0] !== '--quick');
if (command === 'test') run('src/local_stack/test_command/main.ts', args);
else if (command === 'bench') run('test/bench/main.ts', args);
else run('src/cli/main.ts', [command, ...args]);
