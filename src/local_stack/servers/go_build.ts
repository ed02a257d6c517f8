import { execFileSync, spawn } from 'node:child_process';
import { asDiskFull } from '../data_folder.ts';
import { SourceUnavailable } from './archive.ts';
import { findOnPath } from './executable.ts';

/** A program that can be built from its Go module. */
export interface GoProgram {
  readonly module: string;
  readonly version: string;
  /** Approximate duration of the build on two cores. */
  readonly minutes: number;
}

const minGoVersion = { major: 1, minor: 24 };

/** How a person brings the Go that a build needs. */
export const goAdvice = `install Go ${String(minGoVersion.major)}.${String(minGoVersion.minor)} or newer (https://go.dev/dl)`;

/** Path of a Go that is new enough. @throws SourceUnavailable */
function findGo(): string {
  const go = findOnPath('go');
  if (go === undefined) throw new SourceUnavailable('Go is not installed');
  const version = execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' }).trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  if (
    major !== undefined &&
    minor !== undefined &&
    (major < minGoVersion.major || (major === minGoVersion.major && minor < minGoVersion.minor))
  )
    throw new SourceUnavailable(`${version} is too old to build it`);
  return go;
}

/**
 * Runs `go install` into a folder.
 * @throws SourceUnavailable when there is no Go, or with the last lines of the output of a build that fails.
 * @throws LaunchError when the disk is full.
 */
export async function goInstall({ module, version }: GoProgram, folder: string): Promise<void> {
  const build = spawn(findGo(), ['install', `${module}@${version}`], {
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
      new SourceUnavailable(`"go install ${module}@${version}" failed:\n${output.trim()}`)
    );
  } finally {
    process.off('exit', killBuild);
  }
}
