import { execFileSync, spawn } from 'node:child_process';
import { cpSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asDiskFull } from '../data_folder.ts';
import { SourceUnavailable } from './archive.ts';
import { findOnPath } from './executable.ts';

/** A program that can be built from its Go module. */
export interface GoProgram {
  readonly module: string;
  /** Folder of its main package in the module. */
  readonly folder: string;
  readonly version: string;
  /** Approximate duration of the build on two cores. */
  readonly minutes: number;
  /** Source files to replace, by path: parts of the program that exportd does not use and that take long to compile. */
  readonly replacements?: Readonly<Record<string, string>>;
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

/** Runs Go, which ends with this process. @returns its output. @throws SourceUnavailable, LaunchError */
async function runGo(go: string, args: readonly string[], folder: string): Promise<string> {
  const child = spawn(go, args, {
    cwd: folder,
    // Without C, a compiler for it is not needed either.
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const kill = () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  process.once('exit', kill);
  try {
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (errors = (errors + text).slice(-2_000)));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    if (code === 0) return output;
    throw (
      asDiskFull(errors, folder) ??
      new SourceUnavailable(`"go ${args.join(' ')}" failed:\n${errors.trim() || output.trim()}`)
    );
  } finally {
    process.off('exit', kill);
  }
}

/**
 * Builds a program from its module, of which Go checks the checksum.
 * @param folder gets the executable.
 * @param name File name of the executable.
 * @throws SourceUnavailable when there is no Go, or with the last lines of the output of a build that fails.
 * @throws LaunchError when the disk is full.
 */
export async function buildWithGo(program: GoProgram, folder: string, name: string): Promise<void> {
  const go = findGo();
  const { module, version, replacements = {} } = program;
  const source = join(folder, 'source');
  const downloaded = await runGo(go, ['mod', 'download', '-json', `${module}@${version}`], folder);
  cpSync((JSON.parse(downloaded) as { Dir: string }).Dir, source, { recursive: true });
  try {
    // Go's copy of the module is read-only.
    execFileSync('chmod', ['-R', 'u+w', source]);
    for (const [path, content] of Object.entries(replacements)) writeFileSync(join(source, path), content);
    const options = ['-buildvcs=false', '-o', join(folder, name)];
    await runGo(go, ['build', ...options, `./${program.folder}`], source);
  } finally {
    rmSync(source, { recursive: true, force: true });
  }
}
