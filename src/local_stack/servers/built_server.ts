import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cacheFolder } from '../cache_folder.ts';
import { asDiskFull, asLaunchError } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import { LockHeld, takeLock } from '../lock.ts';
import { reportWhile, type Report } from '../report.ts';
import { findOnPath, isExecutable } from './executable.ts';

/** A server that is built once from the Go module proxy where the machine has none. */
export interface BuildableServer {
  /** Name of the program. */
  readonly name: string;
  /** What a person calls it. */
  readonly title: string;
  readonly module: string;
  readonly version: string;
  /** What the build takes on two cores. */
  readonly minutes: number;
  /** The variable that names a running server instead. */
  readonly variable: string;
}

const oldestGo = { major: 1, minor: 24 };

function findGo(server: BuildableServer): string {
  const go = findOnPath('go');
  const remedy = `install Go ${String(oldestGo.major)}.${String(oldestGo.minor)} or newer (https://go.dev/dl), put a "${server.name}" program on PATH, or set ${server.variable} to a running server.`;
  if (go === undefined) throw new LaunchError(`${server.title} is missing and has to be built: ${remedy}`);
  const version = execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' }).trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  if (
    major !== undefined &&
    minor !== undefined &&
    (major < oldestGo.major || (major === oldestGo.major && minor < oldestGo.minor))
  )
    throw new LaunchError(`${server.title} is missing, and ${version} is too old to build it: ${remedy}`);
  return go;
}

/** Runs `go install` into a folder. @throws LaunchError with the end of what it printed. */
async function install(server: BuildableServer, go: string, folder: string): Promise<void> {
  const build = spawn(go, ['install', `${server.module}@${server.version}`], {
    env: { ...process.env, GOBIN: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const endBuild = () => {
    if (build.pid !== undefined && build.exitCode === null) process.kill(-build.pid, 'SIGKILL');
  };
  process.once('exit', endBuild);
  try {
    let output = '';
    build.stderr.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-2_000)));
    const code = await new Promise<number | null>((resolve, reject) => {
      build.once('error', reject);
      build.once('close', resolve);
    });
    if (code === 0) return;
    throw (
      asDiskFull(output, folder) ??
      new LaunchError(
        `${server.title} could not be built by "go install ${server.module}@${server.version}":\n${output.trim()}`,
      )
    );
  } finally {
    process.off('exit', endBuild);
  }
}

/** Builds a server into its folder. Whoever calls this holds the folder's lock. */
async function build(server: BuildableServer, folder: string, report: Report): Promise<void> {
  const go = findGo(server);
  // What a build that was killed has left, or a folder without its program.
  for (const name of readdirSync(dirname(folder)))
    if (name === basename(folder) || name.startsWith(`${basename(folder)}.build-`))
      rmSync(join(dirname(folder), name), { recursive: true, force: true });
  const draft = mkdtempSync(`${folder}.build-`);
  const title = `Building ${server.title} ${server.version} once, about ${server.minutes} min on two cores`;
  report(title);
  const endReports = reportWhile(report, title, 15);
  try {
    await install(server, go, draft);
    // Only a whole build gets the name that is looked for.
    renameSync(draft, folder);
  } finally {
    endReports();
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Finds a server's program: on PATH, in the cache, or by building it. Starts that run at the same time build it once.
 * @throws LaunchError when there is no way to get it.
 */
export async function findServer(server: BuildableServer, report: Report): Promise<string> {
  const onPath = findOnPath(server.name);
  if (onPath !== undefined) return onPath;
  const folder = join(cacheFolder('servers'), `${server.name}-${server.version}`);
  const program = join(folder, server.name);
  let waiting = false;
  while (!isExecutable(program)) {
    let release: (() => void) | undefined;
    try {
      mkdirSync(cacheFolder('servers'), { recursive: true });
      release = takeLock(`${folder}.lock`);
      if (isExecutable(program)) break;
      await build(server, folder, report);
    } catch (error) {
      if (!(error instanceof LockHeld)) throw asLaunchError(error, cacheFolder('servers')) ?? error;
      if (!waiting) report(`Another start (process ${error.holder.pid}) builds ${server.title}: waiting`);
      waiting = true;
      await delay(500);
    } finally {
      release?.();
    }
  }
  return program;
}
