// Entry point in a fresh clone: plain JavaScript without dependencies, for the Node of the machine. It installs the
// packages if they are missing, brings the servers meanwhile, and runs the actual command on the Node that is among the
// packages, or on that of the machine where npm has none, such as macOS.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants as modes,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants, homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const [command = 'up', ...args] = process.argv.slice(2);
/** The programs of npm scripts that are no commands of exportd. */
const programs = {
  test: 'src/local_stack/test_command/main.ts',
  bench: 'test/bench/main.ts',
  histories: 'test/histories/record.ts',
  build: 'src/build/build.ts',
  client: 'src/build/write_client_types.ts',
};
/** Whether the command starts servers at once. */
const startsServers = ['up', 'test', 'bench'].includes(command) && args[0] !== '--quick';

/** The oldest that this file was tried on, with its npm. */
const minNode = 20;
/** The version that runs exportd. */
const exportdNode = 24;
const root = fileURLToPath(new URL('../..', import.meta.url));
const packages = join(root, 'node_modules');
/** The Node of the packages, by the name of its package, and the path where npm links it. */
const nodePackage = `node-${process.platform}-${process.arch}`;
const node = join(packages, '.bin', 'node');
const stampFile = join(packages, '.exportd-installed-from');
const lockFile = join(root, 'package-lock.json');

/** The version of the machine's Node. */
const majorVersion = Number(process.versions.node.split('.')[0]);

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

/** Prints one line of progress. What packs a clone reads stdout. */
function report(line) {
  const stream = command === 'build' ? process.stderr : process.stdout;
  stream.write(`${((Date.now() - startedAt) / 1_000).toFixed(1).padStart(6)} s  ${line}\n`);
}

function readText(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/** Whether the lock file has a Node for this machine. */
const hasNode = () => `node_modules/${nodePackage}` in JSON.parse(readText(lockFile)).packages;

/** Whether npm's record of installed packages matches the lock file: then the user has run npm. */
function matchesLockFile(lockText) {
  const record = readText(join(packages, '.package-lock.json'));
  if (record === undefined) return false;
  const installed = JSON.parse(record).packages;
  return Object.entries(JSON.parse(lockText).packages).every(
    ([path, { version, link, optional, devOptional }]) =>
      link ||
      !path.startsWith('node_modules/') ||
      installed[path]?.version === version ||
      (!(path in installed) && (optional || devOptional)),
  );
}

/** Links the packages that are folders of the clone, as npm does. A new one is no reason to install all others again. */
function linkFolders(lockText) {
  for (const [path, { link, resolved }] of Object.entries(JSON.parse(lockText).packages)) {
    const place = join(root, path);
    if (!link || existsSync(place)) continue;
    mkdirSync(dirname(place), { recursive: true });
    // One that leads nowhere.
    rmSync(place, { force: true });
    symlinkSync(relative(dirname(place), join(root, resolved)), place);
  }
}

/** Installs the packages unless those of the current lock file are installed. */
async function ensurePackages() {
  const lockText = readText(lockFile);
  if (lockText === undefined) fail(`${lockFile} is missing: clone the repository again.`);
  const stamp = createHash('sha256').update(lockText).digest('hex');
  if (!hasNode() && majorVersion < exportdNode)
    fail(
      `exportd runs on Node ${exportdNode}, which npm does not have for ${process.platform} on ${process.arch}: install it from https://nodejs.org and start again.`,
    );
  const isInstalled = existsSync(hasNode() ? node : packages);
  if (isInstalled && readText(stampFile) === stamp) return;
  if (isInstalled && matchesLockFile(lockText)) linkFolders(lockText);
  else {
    if (startsServers) void prefetchServers();
    await install();
  }
  writeFileSync(stampFile, stamp);
}

/** Gives npm a cache among those of exportd where its own cannot be written to, such as in a home that is read-only. */
function ensureNpmCache() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, modes.W_OK);
  } catch {
    const folder = process.env.EXPORTD_CACHE_DIR ?? join(homedir(), '.cache', 'exportd');
    process.env.npm_config_cache = join(folder, 'npm');
  }
}

/** How to run npm, which passes the path of its program: it may not be on PATH. */
function npmCommand() {
  const npm = process.env.npm_execpath;
  return npm?.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'];
}

/** A folder with the pinned Node alone, which runs TypeScript while the packages are being installed. */
let nodeFolder;

/** Starts a program that brings the servers. Not in the clone, where npm is replacing the packages. */
function startPrefetch(command, args) {
  prefetch = spawn(command, args, { cwd: tmpdir(), stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const closed = new Promise((resolve) => {
    prefetch.once('error', () => resolve(1));
    prefetch.once('close', resolve);
  });
  void closed.then(() => (prefetch = undefined));
  return { output: prefetch.stdout, closed };
}

/** Installs the pinned Node by the checksum of the lock file. Returns its path, or undefined where there is none. */
async function installNode() {
  const path = `node_modules/${nodePackage}`;
  const entry = JSON.parse(readText(lockFile)).packages[path];
  if (entry === undefined) return undefined;
  const manifest = { name: 'exportd-node', version: '0.0.0', dependencies: { [nodePackage]: entry.version } };
  const lock = { lockfileVersion: 3, packages: { '': manifest, [path]: { ...entry, dev: undefined } } };
  nodeFolder = mkdtempSync(join(tmpdir(), 'exportd-node-'));
  writeFileSync(join(nodeFolder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(nodeFolder, 'package-lock.json'), JSON.stringify(lock));
  const [npm, ...npmArguments] = npmCommand();
  const options = ['ci', `--prefix=${nodeFolder}`, '--ignore-scripts', '--no-audit', '--no-fund'];
  const { output, closed } = startPrefetch(npm, [...npmArguments, ...options]);
  output.resume();
  return (await closed) === 0 ? join(nodeFolder, 'node_modules', '.bin', 'node') : undefined;
}

/** Starts to bring the servers. What fails here is tried again by the actual command, which then reports it. */
async function prefetchServers() {
  const runner = majorVersion >= exportdNode ? process.execPath : await installNode();
  if (runner === undefined) return;
  let unfinished = '';
  const { output } = startPrefetch(runner, [join(root, 'src/local_stack/servers/prefetch.ts')]);
  output.setEncoding('utf8').on('data', (text) => {
    const lines = (unfinished + text).split('\n');
    unfinished = lines.pop();
    lines.forEach(report);
  });
}

/** Runs npm ci. Prints its output only when it fails. */
async function install() {
  const installing = Date.now();
  const seconds = () => ((Date.now() - installing) / 1_000).toFixed(1);
  report('Installing packages (npm ci), once per clone');
  const progress = setInterval(() => report(`Still installing packages, ${seconds()} s so far`), 10_000);
  // Not as `npm pack --dry-run` runs scripts.
  const options = ['ci', '--include=dev', '--dry-run=false', '--no-audit', '--no-fund', '--loglevel=error'];
  const [npm, ...npmArguments] = [...npmCommand(), ...options];
  const { code, output } = await new Promise((resolve) => {
    let output = '';
    current = spawn(npm, npmArguments, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
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
  if (hasNode() && !existsSync(node))
    fail(
      'npm installed no Node 24, which is an optional package: run "npm ci --include=optional" and start again.',
    );
  report(`Packages installed in ${seconds()} s`);
  // The lint of tests writes them too.
  const isLinted = command === 'test' && [undefined, '--quick'].includes(args[0]);
  if (!['build', 'client'].includes(command) && !isLinted) writeTypes();
}

/** Writes the types of the client, which are not in git, for editors. Nothing waits: what runs does not need them. */
function writeTypes() {
  const program = hasNode() ? node : process.execPath;
  spawn(program, [join(root, 'src/build/write_client_types.ts')], { cwd: root, stdio: 'ignore' });
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
  const program = hasNode() ? node : process.execPath;
  current = spawn(program, [join(root, script), ...args], {
    env: environment,
    detached: true,
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  current.once('error', (error) => fail(`cannot run ${program}: ${error.message}`));
  current.once('exit', (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
  // A signal to npm may kill only the shell between npm and this process, without reaching this process.
  const parent = process.ppid;
  if (process.env.npm_lifecycle_event !== undefined)
    setInterval(() => process.ppid !== parent && process.kill(process.pid, 'SIGTERM'), 1_000).unref();
}

process.once('exit', () => {
  // Its group: npm does not pass signals on.
  if (prefetch?.pid !== undefined) process.kill(-prefetch.pid, 'SIGTERM');
  if (nodeFolder !== undefined) rmSync(nodeFolder, { recursive: true, force: true });
});
for (const signal of ['SIGINT', 'SIGTERM'])
  process.on(signal, () => {
    // npm repeats a signal that the terminal has sent to all. Only a later signal is a second Ctrl-C.
    if (Date.now() - lastSignal < 500) return;
    lastSignal = Date.now();
    if (current === undefined) process.exit(128 + constants.signals[signal]);
    current.kill(signal);
  });

if (majorVersion < minNode)
  fail(
    `a clone needs Node ${minNode} or newer to install the Node ${exportdNode} that runs it, found ${process.version}: see https://nodejs.org.`,
  );
ensureNpmCache();
await ensurePackages();
if (command in programs) run(programs[command], args);
else run('src/cli/main.ts', [command, ...args]);
