import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { openApiHarness, type ApiHarness } from '../../http/api_harness.ts';
import { exportd } from '../command_line.ts';

let api: ApiHarness;
let environment: Record<string, string>;
const folder = mkdtempSync(join(tmpdir(), 'apply-'));
const file = join(folder, 'exports.yaml');
const secret = 'secret/of+an=export';

beforeAll(async () => {
  api = await openApiHarness();
  environment = {
    EXPORTD_BASE_URL: await api.listen(),
    EXPORTD_API_KEY: api.key,
    KEY_ID: 'AKIAEXAMPLE',
    SECRET: secret,
  };
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await api.close();
});

const declaration = (name: string, more = '', config = '') => `  - name: ${name}
    interval: hour
    end_at: 2026-01-01T00:00:00Z
${more}    destination:
      type: S3
      config:
        bucket_name: my-bucket
        region: us-east-1
        prefix: ${name.toLowerCase()}
        aws_access_key_id: !env KEY_ID
        aws_secret_access_key: !env SECRET
${config}`;

/** Writes the file and applies it. */
async function apply(declarations: string, ...options: string[]) {
  writeFileSync(file, declarations === '' ? 'exports: []\n' : `exports:\n${declarations}`);
  return exportd(environment, 'apply', '-f', file, ...options);
}

/** What the project has, by name. */
async function exportsByName(): Promise<Record<string, Record<string, unknown>>> {
  const { body } = await api.call('GET', 'batch_exports/');
  const found = body.results as Record<string, unknown>[];
  return Object.fromEntries(found.map((one) => [String(one.name), one]));
}

describe('exportd apply', () => {
  it('creates, updates, keeps and deletes exports, and the second time changes nothing', async () => {
    const both = declaration('Clicks') + declaration('Orders', '    timezone: Europe/Berlin\n');
    const dryRun = await apply(both, '--dry-run');
    expect([dryRun.code, dryRun.stderr]).toEqual([0, '']);
    expect(dryRun.stdout).toContain('+ create Clicks\n');
    expect(dryRun.stdout).toContain('    destination.config.aws_secret_access_key: set (secret)\n');
    expect(dryRun.stdout).toContain('\n2 to create, 0 to update, 0 to delete, 0 unchanged.\n');
    expect(dryRun.stdout).not.toContain(secret);
    expect(await exportsByName()).toEqual({});

    const first = await apply(both);
    expect([first.code, first.stderr]).toEqual([0, '']);
    expect(first.stdout).toMatch(/\nApplied\.\n$/);
    const created = await exportsByName();
    expect(Object.keys(created).sort()).toEqual(['Clicks', 'Orders']);
    expect(created.Orders).toMatchObject({ timezone: 'Europe/Berlin', interval: 'hour', paused: false });

    const again = await apply(both);
    expect([again.code, again.stdout]).toEqual([
      0,
      '  unchanged: Clicks\n  unchanged: Orders\n0 to create, 0 to update, 0 to delete, 2 unchanged.\n',
    ]);
    expect(await exportsByName()).toEqual(created);

    const changed = await apply(declaration('Orders', '', '        compression: gzip\n'), '--prune');
    expect([changed.code, changed.stderr]).toEqual([0, '']);
    expect(changed.stdout).toBe(
      [
        '~ update Orders',
        '    timezone: "Europe/Berlin" → default',
        '    destination.config.compression: null → "gzip"',
        '    note: Exported files stay as they are; intervals have the new rows, columns or format from the next run on. A backfill exports earlier ones again.',
        '- delete Clicks; its objects stay in the bucket',
        '0 to create, 1 to update, 1 to delete, 0 unchanged.',
        'Applied.',
        '',
      ].join('\n'),
    );
    expect(await exportsByName()).toMatchObject({ Orders: { timezone: 'UTC' } });
    expect(Object.keys(await exportsByName())).toEqual(['Orders']);
  });

  it('notices a secret that was replaced, and shows neither', async () => {
    await apply(declaration('Rotated'));
    environment.SECRET = 'another secret';
    const { code, stdout } = await apply(declaration('Rotated'));
    expect([code, stdout]).toEqual([0, expect.stringContaining('aws_secret_access_key: changed (secret)\n')]);
    expect(stdout).not.toContain('another secret');
    const again = await apply(declaration('Rotated'));
    expect(again.stdout).toContain('  unchanged: Rotated\n');
    environment.SECRET = secret;
  });

  it('applies what "export get" writes, which changes nothing', async () => {
    await apply(declaration('Written', '    dialect_query: |\n      select uuid\n      from events\n'));
    const before = await exportsByName();
    const { code, stdout } = await exportd(
      environment,
      'export',
      'get',
      String(before.Written?.id),
      '-o',
      'yaml',
    );
    expect(code).toBe(0);
    writeFileSync(file, stdout);
    const applied = await exportd(environment, 'apply', '-f', file);
    expect([applied.code, applied.stderr]).toEqual([0, '']);
    expect(applied.stdout).toContain('  unchanged: Written\n');
    expect(await exportsByName()).toEqual(before);
  });

  it('changes nothing if the API rejects one of the exports, and names each', async () => {
    const before = await exportsByName();
    const { code, stderr } = await apply(
      declaration('Fine') +
        declaration('Bad', '    timezone: Mars\n') +
        declaration('Worse', '', '        color: red\n'),
    );
    expect(code).toBe(1);
    expect(stderr).toContain('Bad: timezone: Unknown time zone.');
    expect(stderr).toMatch(/Worse: destination__config.*color/);
    expect(await exportsByName()).toEqual(before);
  });

  it('never deletes all exports because a file is empty', async () => {
    const { code, stderr } = await apply('', '--prune');
    expect([code, stderr]).toEqual([1, expect.stringContaining('declares no exports')]);
  });
});
