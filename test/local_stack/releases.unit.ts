import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { findOnPath } from '../../src/local_stack/servers/executable.ts';
import { findServer, type ServerProgram } from '../../src/local_stack/servers/find_server.ts';
import { objectStoreServer } from '../../src/local_stack/servers/object_store.ts';
import { temporalServer } from '../../src/local_stack/servers/temporal.ts';
import { temporaryFolder } from './data_folder.ts';

const name = 'exportd-test-server';

/** A shell script that prints where it comes from. */
const script = (output: string, exitCode = 0) => `#!/bin/sh\necho ${output}\nexit ${String(exitCode)}\n`;

const fakeGo = `#!/bin/sh
case "$1" in
  env) echo go1.26.0 ;;
  install) printf '${script('built').replaceAll('\n', '\\n')}' > "$GOBIN/${name}"; chmod +x "$GOBIN/${name}" ;;
esac
`;

describe('a server that is missing', () => {
  const folder = temporaryFolder();
  const tools = folder.inside('tools');
  const toolsWithGo = folder.inside('go');
  const reports: string[] = [];
  const requests: string[] = [];
  let caches = 0;
  let good: Buffer;
  let broken: Buffer;

  /** An archive with an executable script in a folder, as versitygw's. */
  function pack(folderName: string, content: string): Buffer {
    const source = folder.inside(folderName);
    mkdirSync(join(source, 'release'), { recursive: true });
    writeFileSync(join(source, 'release', 'server'), content, { mode: 0o755 });
    const archive = folder.inside(`${folderName}.tar.gz`);
    execFileSync('tar', ['-czf', archive, '-C', source, 'release']);
    return readFileSync(archive);
  }

  /** How the host responds, by path. */
  const responses: Record<string, (response: ServerResponse) => void> = {
    '/serves': (response) => response.end(good),
    '/redirects': (response) => response.writeHead(302, { location: '/serves' }).end(),
    '/lies': (response) => response.end(broken),
    '/truncates': (response) => {
      response.writeHead(200, { 'content-length': good.byteLength });
      response.write(good.subarray(0, 20), () => response.destroy());
    },
    '/is-silent': () => undefined,
    '/stalls': (response) => {
      response.writeHead(200, { 'content-length': good.byteLength });
      response.write(good.subarray(0, 20));
    },
    '/has-none': (response) => response.writeHead(404).end('Not Found'),
    '/serves-broken': (response) => response.end(broken),
  };
  const host = createServer((request: IncomingMessage, response) => {
    requests.push(request.url ?? '');
    responses[request.url ?? '']?.(response);
  });
  const hostUrl = () => `http://127.0.0.1:${String((host.address() as AddressInfo).port)}`;

  const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

  const serverAt = (url: string, archive = good): ServerProgram => ({
    name,
    title: 'the test server',
    module: 'example.com/server',
    version: 'v1.0.0',
    releases: {
      [`${process.platform}-${process.arch}`]: {
        url,
        sha256: sha256(archive),
        executable: 'release/server',
      },
    },
    buildMinutes: 1,
    addressVariable: 'TEST_SERVER_ADDRESS',
  });

  const find = (server: ServerProgram) => findServer(server, (line) => reports.push(line));
  /** Like `find`, with bounds that a test can wait for. */
  const findImpatiently = (server: ServerProgram) =>
    findServer(server, (line) => reports.push(line), {
      timeouts: { connectMs: 500, stallMs: 500, totalMs: 60_000 },
    });
  const outputOf = (program: string) => execFileSync(program, { encoding: 'utf8' }).trim();

  beforeAll(async () => {
    good = pack('good', script('downloaded'));
    broken = pack('broken', script('broken', 1));
    for (const path of [tools, toolsWithGo]) mkdirSync(path);
    for (const tool of ['sh', 'tar', 'gzip', 'chmod'])
      symlinkSync(findOnPath(tool) ?? tool, join(tools, tool));
    writeFileSync(join(toolsWithGo, 'go'), fakeGo, { mode: 0o755 });
    await new Promise<void>((resolve) => host.listen(0, '127.0.0.1', resolve));
  });

  afterAll(() => {
    host.closeAllConnections();
    host.close();
  });

  beforeEach(() => {
    caches += 1;
    process.env.EXPORTD_CACHE_DIR = folder.inside(`cache-${String(caches)}`);
    process.env.PATH = `${tools}:${toolsWithGo}`;
    reports.length = 0;
    requests.length = 0;
  });

  it.each(['/serves', '/redirects'])('is downloaded from a host that %s', async (path) => {
    const program = await find(serverAt(hostUrl() + path));
    expect(outputOf(program)).toBe('downloaded');
    expect(reports).toEqual([
      'Downloading the test server v1.0.0 (once per machine, usually less than a minute)',
    ]);
    expect(readdirSync(join(program, '..'))).toEqual([name]);
  });

  it('is downloaded once, also without Go', async () => {
    process.env.PATH = tools;
    const server = serverAt(`${hostUrl()}/serves`);
    const programs = await Promise.all([find(server), find(server)]);
    await expect(find(server)).resolves.toBe(programs[0]);
    expect(programs[0]).toBe(programs[1]);
    expect(requests).toEqual(['/serves']);
  });

  it.each([
    ['sends another archive', '/lies', 'has SHA-256'],
    ['closes the connection', '/truncates', '127.0.0.1'],
    ['does not respond', '/is-silent', 'did not respond within 0.5 s'],
    ['stops sending', '/stalls', 'sent nothing for 0.5 s'],
    ['has no release', '/has-none', 'responded with status 404'],
  ])('is built when the host %s', async (_case, path, reason) => {
    const program = await findImpatiently(serverAt(hostUrl() + path));
    expect(outputOf(program)).toBe('built');
    expect(reports).toEqual([
      expect.stringContaining('Downloading the test server'),
      expect.stringContaining(reason),
      'Building the test server v1.0.0 (once per machine, about 1 min on two cores)',
    ]);
    expect(readdirSync(join(program, '..'))).toEqual([name]);
  });

  it('is built when the host refuses connections', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const program = await find(serverAt(`http://127.0.0.1:${String(port)}/`));
    expect(outputOf(program)).toBe('built');
    expect(reports[1]).toContain('ECONNREFUSED');
  });

  it('is built when its release does not run here', async () => {
    const program = await find(serverAt(`${hostUrl()}/serves-broken`, broken));
    expect(outputOf(program)).toBe('built');
    expect(reports[1]).toContain('does not run here');
  });

  it('is built on a platform without a release', async () => {
    const program = await find({ ...serverAt(hostUrl()), releases: {} });
    expect(outputOf(program)).toBe('built');
    expect(requests).toEqual([]);
    expect(reports[0]).toBe(`There is no known release for ${process.platform}-${process.arch}.`);
  });

  it('is reported with both reasons when it can be neither downloaded nor built', async () => {
    process.env.PATH = tools;
    const finding = find(serverAt(`${hostUrl()}/has-none`));
    await expect(finding).rejects.toThrow(
      /^the test server is missing\. It could not be downloaded: .* status 404\. Go is not installed\. .*install Go 1\.24 or newer .*, put a "exportd-test-server" program on PATH, or set TEST_SERVER_ADDRESS/,
    );
    // The next start tries again.
    await expect(find(serverAt(`${hostUrl()}/serves`))).resolves.toContain(name);
  });
});

describe('the releases of the servers', () => {
  it.each([temporalServer, objectStoreServer])('have one pinned archive a platform: $title', (server) => {
    const releases = Object.values(server.releases);
    expect(Object.keys(server.releases).sort()).toEqual([
      'darwin-arm64',
      'darwin-x64',
      'linux-arm64',
      'linux-x64',
    ]);
    for (const { url, sha256 } of releases) {
      expect(url).toContain(server.version.replace('v', ''));
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
    expect(new Set(releases.flatMap(({ url, sha256 }) => [url, sha256])).size).toBe(2 * releases.length);
  });
});
