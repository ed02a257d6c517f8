import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A platform that exportd's servers have releases for: `process.platform` and `process.arch`. */
export type Platform = 'linux-x64' | 'linux-arm64' | 'darwin-x64' | 'darwin-arm64';

/** An archive with a program for one platform, as its makers released it. */
export interface Release {
  /** URL of the `.tar.gz` archive. */
  readonly url: string;
  /** SHA-256 of the archive, in hexadecimal. */
  readonly sha256: string;
  /** Path of the executable in the archive. */
  readonly executable: string;
}

/** Bounds of a download. After any of them a build is the better way. */
export interface DownloadTimeouts {
  /** Until the host responds. */
  readonly connectMs: number;
  /** Without a byte. */
  readonly stallMs: number;
  /** The whole download. */
  readonly totalMs: number;
}

const usualTimeouts: DownloadTimeouts = { connectMs: 5_000, stallMs: 15_000, totalMs: 5 * 60_000 };

/** An archive has less than half of this. A host that sends without end must not fill the disk. */
const maxArchiveBytes = 512 * 1024 * 1024;
/** The program only prints its version. A slow disk reads 250 MB for that. */
const versionTimeoutMs = 60_000;

/** A release cannot be had. The message completes "Could not download …:". */
export class ReleaseUnavailable extends Error {
  override readonly name = 'ReleaseUnavailable';
}

const seconds = (milliseconds: number): string => `${String(milliseconds / 1_000)} s`;

/** The reason of a failed request, which fetch hides in the cause. */
const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
};

/**
 * Downloads an archive.
 * @returns its SHA-256.
 * @throws ReleaseUnavailable
 */
async function download(url: string, file: string, timeouts: DownloadTimeouts): Promise<string> {
  const { host } = new URL(url);
  // Opened here, because a stream that fails can still create its file after the file was removed.
  const output = await open(file, 'w');
  const abort = new AbortController();
  const fail = (message: string) => () => abort.abort(new ReleaseUnavailable(message));
  const total = setTimeout(
    fail(`${host} did not send it within ${seconds(timeouts.totalMs)}`),
    timeouts.totalMs,
  );
  let idle = setTimeout(
    fail(`${host} did not respond within ${seconds(timeouts.connectMs)}`),
    timeouts.connectMs,
  );
  const stalled = fail(`${host} sent nothing for ${seconds(timeouts.stallMs)}`);
  try {
    const response = await fetch(url, { signal: abort.signal });
    if (!response.ok || response.body === null)
      throw new ReleaseUnavailable(`${url} responded with status ${String(response.status)}`);
    const hash = createHash('sha256');
    let bytes = 0;
    const restartIdle = () => {
      clearTimeout(idle);
      idle = setTimeout(stalled, timeouts.stallMs);
    };
    restartIdle();
    await pipeline(
      response.body,
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          restartIdle();
          bytes += chunk.byteLength;
          if (bytes > maxArchiveBytes) throw new ReleaseUnavailable(`${url} is larger than any release`);
          hash.update(chunk);
          yield chunk;
        }
      },
      output.createWriteStream(),
      { signal: abort.signal },
    );
    return hash.digest('hex');
  } catch (error) {
    const cause: unknown = abort.signal.aborted ? abort.signal.reason : error;
    if (cause instanceof ReleaseUnavailable) throw cause;
    // A disk that is full fails a build too.
    if ((cause as NodeJS.ErrnoException).syscall === 'write') throw cause;
    throw new ReleaseUnavailable(`${host}: ${reasonOf(cause)}`, { cause });
  } finally {
    clearTimeout(total);
    clearTimeout(idle);
    await output.close();
  }
}

/**
 * Downloads a release, checks its SHA-256 and puts its executable into a folder. Nothing of an archive with another
 * checksum is unpacked.
 * @param name File name of the executable in the folder.
 * @throws ReleaseUnavailable when it cannot be downloaded, is another archive, or does not run here.
 */
export async function installRelease(
  release: Release,
  folder: string,
  name: string,
  timeouts: DownloadTimeouts = usualTimeouts,
): Promise<void> {
  const archive = join(folder, 'release.tar.gz');
  const unpacked = join(folder, 'unpacked');
  const program = join(folder, name);
  try {
    const sha256 = await download(release.url, archive, timeouts);
    if (sha256 !== release.sha256)
      throw new ReleaseUnavailable(`${release.url} has SHA-256 ${sha256} instead of ${release.sha256}`);
    mkdirSync(unpacked);
    try {
      await run('tar', ['-xzf', archive, '-C', unpacked]);
      renameSync(join(unpacked, release.executable), program);
    } catch (error) {
      throw new ReleaseUnavailable(`${release.url} cannot be unpacked: ${reasonOf(error)}`, { cause: error });
    }
    chmodSync(program, 0o755);
    await run(program, ['--version'], { timeout: versionTimeoutMs }).catch((error: unknown) => {
      rmSync(program, { force: true });
      throw new ReleaseUnavailable(`${release.url} does not run here: ${reasonOf(error)}`, { cause: error });
    });
  } finally {
    for (const path of [archive, unpacked]) rmSync(path, { recursive: true, force: true });
  }
}
