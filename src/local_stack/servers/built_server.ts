import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { cacheFolder } from '../cache_folder.ts';
import { asDiskFull, asLaunchError } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import { LockHeld, acquireLock } from '../lock.ts';
import { reportWhile, type Report } from '../report.ts';
import { findOnPath, isExecutable } from './executable.ts';

/** A server that is built from its Go module unless it is on PATH. */
export interface BuildableServer {
  /** Name of its executable. */
  readonly name: string;
  /** Name in messages. */
  readonly title: string;
  readonly module: string;
  readonly version: string;
  /** Approximate duration of the build on two cores. */
  readonly buildMinutes: number;
  /** Environment variable with the address of a running server, which is used instead. */
  readonly addressVariable: string;
}

const minGoVersion = { major: 1, minor: 24 };

function findGo(server: BuildableServer): string {
  const go = findOnPath('go');
  const fix = `install Go ${String(minGoVersion.major)}.${String(minGoVersion.minor)} or newer (https://go.dev/dl), put a "${server.name}" program on PATH, or set ${server.addressVariable} to a running server.`;
  if (go === undefined) throw new LaunchError(`${server.title} is missing and must be built: ${fix}`);
  const version = execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' }).trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  if (
    major !== undefined &&
    minor !== undefined &&
    (major < minGoVersion.major || (major === minGoVersion.major && minor < minGoVersion.minor))
  )
    throw new LaunchError(`${server.title} is missing, and ${version} is too old to build it: ${fix}`);
  return go;
}

/** Runs `go install` into a folder. @throws LaunchError with the last lines of its output. */
async function install(server: BuildableServer, go: string, folder: string): Promise<void> {
  const build = spawn(go, ['install', `${server.module}@${server.version}`], {
    env: { ...process.env, GOBIN: folder },
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true,
  });
  const killBuild = () => {
    if (build.pid !== undefined && build.exitCode === null) process.kill(-build.pid, 'SIGKILL');
  };
  process.once('exit', killBuild);
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
        `Building ${server.title} with "go install ${server.module}@${server.version}" failed:\n${output.trim()}`,
      )
    );
  } finally {
    process.off('exit', killBuild);
  }
}

/** Builds a server into its folder. The caller holds the lock of the folder. */
async function build(server: BuildableServer, folder: string, report: Report): Promise<void> {
  const go = findGo(server);
  // Files of a killed build, or a folder without its executable.
  for (const name of readdirSync(dirname(folder)))
    if (name === basename(folder) || name.startsWith(`${basename(folder)}.build-`))
      rmSync(join(dirname(folder), name), { recursive: true, force: true });
  const draft = mkdtempSync(`${folder}.build-`);
  const title = `Building ${server.title} ${server.version} (once per machine, about ${server.buildMinutes} min on two cores)`;
  report(title);
  const stopReports = reportWhile(report, title, 15);
  try {
    await install(server, go, draft);
    // Only a complete build gets the final name.
    renameSync(draft, folder);
  } finally {
    stopReports();
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Finds the executable of a server on PATH or in the cache, or builds it. Concurrent starts build it once.
 * @throws LaunchError when it cannot be built.
 */
export async function findServer(server: BuildableServer, report: Report): Promise<string> {
  const onPath = findOnPath(server.name);
  if (onPath !== undefined) return onPath;
  const folder = join(cacheFolder('servers'), `${server.name}-${server.version}`);
  const program = join(folder, server.name);
  let isWaiting = false;
  while (!isExecutable(program)) {
    let release: (() => void) | undefined;
    try {
      mkdirSync(cacheFolder('servers'), { recursive: true });
      release = acquireLock(`${folder}.lock`);
      if (isExecutable(program)) break;
      await build(server, folder, report);
    } catch (error) {
      if (!(error instanceof LockHeld)) throw asLaunchError(error, cacheFolder('servers')) ?? error;
      if (!isWaiting) report(`Waiting for process ${error.holder.pid}, which is building ${server.title}`);
      isWaiting = true;
      await delay(500);
    } finally {
      release?.();
    }
  }
  return program;
}
