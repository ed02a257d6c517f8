import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { verifyRun } from '../bench/exports/exports_bench.ts';
import type { VerificationReport } from '../../src/verify/report.ts';
import { exportd } from '../cli/command_line.ts';
import { createVerifyHarness, type Exported, type VerifyHarness } from './verify_harness.ts';

let harness: VerifyHarness;
let exported: Exported;
let environment: Record<string, string>;
beforeAll(async () => {
  harness = await createVerifyHarness(20);
  exported = await harness.exportHours();
  environment = {
    DATABASE_URL: harness.database.url,
    EXPORTD_ENCRYPTION_KEYS: harness.encryptionKeys,
    EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'true',
  };
});
afterAll(() => harness.close());

const verify = (...args: readonly string[]) =>
  exportd(environment, 'verify', exported.batchExportId, ...args);

describe('exportd verify', () => {
  it('prints every interval, findings and a summary, and sets the exit code', async () => {
    const clean = await verify('--deep');
    expect(clean).toMatchObject({ code: 0, stderr: '' });
    const lines = clean.stdout.trimEnd().split('\n');
    expect(lines[1]).toMatch(/^2026-01-01T10:00:00Z +2026-01-01T11:00:00Z +1 +1 +20 +20 +0 +0$/);
    expect(lines.at(-1)).toBe('3 manifests, 3 files, 60 rows: no findings.');

    await exported.rewrite(1, (rows) => rows.slice(1));
    const faulty = await verify();
    expect(faulty).toMatchObject({ code: 1, stderr: '' });
    expect(faulty.stdout).toContain('MISSING  2026-01-01T11:00:00Z to 2026-01-01T12:00:00Z');
    expect(faulty.stdout.trimEnd().split('\n').at(-1)).toBe(
      '3 manifests, 3 files, 59 rows: 1 finding, 1 row missing.',
    );
    const fast = await verify('--fast');
    expect([fast.code, fast.stdout]).toEqual([1, expect.stringContaining('FINGERPRINT')]);

    // Benchmarks verify what they export.
    const benchmarked = (start: string, end: string) =>
      verifyRun(harness.database.pool, environment, exported.batchExportId, { start, end }, 'deep');
    await expect(benchmarked('2026-01-01T10:00:00Z', '2026-01-01T11:00:00Z')).resolves.toBeUndefined();
    await expect(benchmarked('2026-01-01T11:00:00Z', '2026-01-01T12:00:00Z')).rejects.toThrow(
      /^The export does not match its source\. .*missing/i,
    );

    const document = await verify('--json', '--from', '2026-01-01T12:00:00Z');
    expect(document).toMatchObject({ code: 0, stderr: '' });
    expect((JSON.parse(document.stdout) as VerificationReport).totals).toMatchObject({
      manifests: 1,
      rows: 20,
    });
  });

  it('exits with 1 when all manifests are missing, and says so', async () => {
    const empty = await harness.exportHours();
    for (const hour of [0, 1, 2]) await harness.deleteObject(empty.manifestKey(hour));
    const { code, stdout } = await exportd(environment, 'verify', empty.batchExportId);
    expect(code).toBe(1);
    expect(stdout).toContain('GAP  2026-01-01T10:00:00Z to 2026-01-01T13:00:00Z');
    expect(stdout).toContain('No manifest covers these 3 intervals. The source has 60 rows in them.');
    expect(stdout.trimEnd().split('\n').at(-1)).toBe('0 manifests, 0 files, 0 rows: 1 finding, 1 gap.');
  });

  it.each([
    ['of a missing export', ['--json'], { id: 'nothing' }, /Batch export nothing does not exist\./],
    ['of an invalid time', ['--from', 'yesterday'], {}, /"yesterday" is not a valid time\./],
    [
      'without a source',
      [],
      { SOURCE_DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      /The source does not respond/,
    ],
    ['with an unknown option', ['--depp'], {}, /unknown option/],
    [
      'of a range that ends before it starts',
      ['--from', '2026-01-02T00:00:00Z', '--to', '2026-01-01T00:00:00Z'],
      {},
      /The range is empty: --from must be before --to\./,
    ],
    ['with both depths', ['--deep', '--fast'], {}, /either deep or fast/],
    [
      'of an endpoint that is not allowed',
      [],
      { EXPORTD_ALLOW_PRIVATE_ENDPOINTS: 'false' },
      /endpoint_url is not allowed/,
    ],
  ])(
    'exits with 2 when it cannot verify: %s',
    async (_, args, { id = exported.batchExportId, ...more }: Record<string, string>, words) => {
      const { code, stdout, stderr } = await exportd({ ...environment, ...more }, 'verify', id, ...args);
      expect([code, stdout]).toEqual([2, '']);
      expect(stderr).toMatch(words);
    },
  );
});
