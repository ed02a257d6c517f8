import { execFileSync, spawn } from 'node:child_process';
import { asDiskFull } from '../data_folder.ts';
import { LaunchError } from '../launch_error.ts';
import { findOnPath } from './executable.ts';

/** A program that can be built from its Go module. */
export interface GoProgram {
  /** Name in messages. */
  readonly title: string;
  readonly module: string;
  readonly version: string;
}

const minGoVersion = { major: 1, minor: 24 };

/** How a person brings the Go that a build needs. */
export const goAdvice = `install Go ${String(minGoVersion.major)}.${String(minGoVersion.minor)} or newer (https://go.dev/dl)`;

/**
 * Path of a Go that is new enough.
 * @throws LaunchError that says what is missing.
 */
export function findGo(): string {
  const go = findOnPath('go');
  if (go === undefined) throw new LaunchError('Go is not installed.');
  const version = execFileSync(go, ['env', 'GOVERSION'], { encoding: 'utf8' }).trim();
  const [, major, minor] = /^go(\d+)\.(\d+)/.exec(version)?.map(Number) ?? [];
  if (
    major !== undefined &&
    minor !== undefined &&
    (major < minGoVersion.major || (major === minGoVersion.major && minor < minGoVersion.minor))
  )
    throw new LaunchError(`${version} is too old to build it.`);
  return go;
}

/** Runs `go install` into a folder. @throws LaunchError with the last lines of its output. */
export async function goInstall(program: GoProgram, go: string, folder: string): Promise<void> {
  const build = spawn(go, ['install', `${program.module}@${program.version}`], {
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
        `Building ${program.title} with "go install ${program.module}@${program.version}" failed:\n${output.trim()}`,
      )
    );
  } finally {
    process.off('exit', killBuild);
  }
}
