import { join } from 'node:path';
import { cacheFolder } from '../cache_folder.ts';
import { installOnce } from '../install_once.ts';
import { LaunchError } from '../launch_error.ts';
import { reportWhile, type Report } from '../report.ts';
import { findOnPath } from './executable.ts';
import { findGo, goAdvice, goInstall, type GoProgram } from './go_build.ts';
import {
  ReleaseUnavailable,
  installRelease,
  type DownloadTimeouts,
  type Platform,
  type Release,
} from './release.ts';

/** A server that is downloaded or built unless it is on PATH. */
export interface ServerProgram extends GoProgram {
  /** Name of its executable. */
  readonly name: string;
  /** Its releases; a platform without one builds it. */
  readonly releases: Readonly<Partial<Record<Platform, Release>>>;
  /** Approximate duration of the build on two cores. */
  readonly buildMinutes: number;
  /** Environment variable with the address of a running server, which is used instead. */
  readonly addressVariable: string;
}

/** How a download is bounded, for tests. */
export interface FindServerOptions {
  readonly timeouts?: DownloadTimeouts;
}

const releaseFor = ({ releases }: ServerProgram): Release | undefined =>
  (releases as Readonly<Record<string, Release | undefined>>)[`${process.platform}-${process.arch}`];

/** Downloads the release. @returns why it could not be had, or undefined when it is in the folder. */
async function tryRelease(
  server: ServerProgram,
  folder: string,
  report: Report,
  timeouts?: DownloadTimeouts,
): Promise<string | undefined> {
  const release = releaseFor(server);
  if (release === undefined) return `There is no known release for ${process.platform}-${process.arch}`;
  const title = `Downloading ${server.title} ${server.version} (once per machine, usually less than a minute)`;
  report(title);
  const stopReports = reportWhile(report, title, 15);
  try {
    await installRelease(release, folder, server.name, timeouts);
    return undefined;
  } catch (error) {
    if (error instanceof ReleaseUnavailable) return `It could not be downloaded: ${error.message}`;
    throw error;
  } finally {
    stopReports();
  }
}

/** Builds a server. @param because why it is not downloaded. */
async function build(server: ServerProgram, because: string, folder: string, report: Report): Promise<void> {
  let go: string;
  try {
    go = findGo();
  } catch (error) {
    if (!(error instanceof LaunchError)) throw error;
    const advice = `${goAdvice}, put a "${server.name}" program on PATH, or set ${server.addressVariable} to a running server.`;
    throw new LaunchError(
      `${server.title} is missing. ${because}. ${error.message} Do one of these: ${advice}`,
    );
  }
  report(`${because}.`);
  const title = `Building ${server.title} ${server.version} (once per machine, about ${server.buildMinutes} min on two cores)`;
  report(title);
  const stopReports = reportWhile(report, title, 15);
  try {
    await goInstall(server, go, folder);
  } finally {
    stopReports();
  }
}

/**
 * Finds the executable of a server on PATH or in the cache. Else downloads its release, and builds it where that fails.
 * Concurrent starts do so once.
 * @throws LaunchError when it can be neither downloaded nor built.
 */
export async function findServer(
  server: ServerProgram,
  report: Report,
  { timeouts }: FindServerOptions = {},
): Promise<string> {
  const onPath = findOnPath(server.name);
  if (onPath !== undefined) return onPath;
  const folder = join(cacheFolder('servers'), `${server.name}-${server.version}`);
  const install = async (draft: string) => {
    const because = await tryRelease(server, draft, report, timeouts);
    if (because !== undefined) await build(server, because, draft, report);
  };
  return installOnce({ folder, program: join(folder, server.name), title: server.title, install }, report);
}
