import { mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { openDataFolder } from '../../src/local_stack/data_folder.ts';
import { startOwnTemporal } from '../disasters/temporal_server.ts';

/** The state of a listening socket in /proc/net/tcp. */
const listening = '0A';

/** The ports that a process listens on, as Linux lists them. */
function portsOf(pid: number): number[] {
  const files = `/proc/${pid}/fd`;
  const opened = new Set(readdirSync(files).map((name) => linkOf(join(files, name))));
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === listening && opened.has(`socket:[${inode}]`))
      .map(([, address = '']) => Number.parseInt(address.split(':')[1] ?? '', 16)),
  );
}

/** Where a link leads; undefined for a file that was closed meanwhile. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

describe('the Temporal server of the local stack', () => {
  it('accepts no request over HTTP that a web page could send', async () => {
    const temporal = await startOwnTemporal();
    try {
      const ports = portsOf(temporal.pid());
      expect(ports.length).toBeGreaterThan(1);
      const statuses = await Promise.all(
        ports.map(async (port) => {
          const response = await fetch(
            `http://127.0.0.1:${port}/api/v1/namespaces/default/workflows/batch-export-x/signal/pause`,
            {
              method: 'POST',
              headers: { origin: 'http://evil.example', 'content-type': 'text/plain' },
              body: '{}',
            },
          ).catch(() => undefined);
          const text = await response?.text();
          return { port, status: response?.status, text };
        }),
      );
      // 404 of the API would be "workflow not found": the signal was accepted. That of another server is plain text.
      const answered = statuses.filter(({ status }) => status !== undefined);
      expect(answered).not.toEqual([]);
      for (const { status, text } of answered) {
        expect(status).toBeGreaterThanOrEqual(400);
        expect(text).not.toMatch(/workflow/i);
      }
    } finally {
      await temporal.close();
    }
  });
});

describe('the data folder', () => {
  it('can be entered by its owner alone, of a root also by the user of PostgreSQL', () => {
    const path = mkdtempSync(join(tmpdir(), 'exportd-doors-'));
    try {
      for (const name of ['new', 'old']) {
        if (name === 'old') mkdirSync(join(path, name, 'logs'), { recursive: true, mode: 0o755 });
        const folder = openDataFolder(join(path, name));
        const modes = ['.', 'logs', 'processes'].map(
          (inside) => statSync(folder.inside(inside)).mode & 0o777,
        );
        expect(modes).toEqual([process.getuid?.() === 0 ? 0o711 : 0o700, 0o700, 0o700]);
      }
    } finally {
      rmSync(path, { recursive: true, force: true });
    }
  });
});
