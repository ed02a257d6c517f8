import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSettings, settingGroups, SettingsError, settingsSchema } from '../../src/config/settings.ts';
import { settingsTable, withSettingsTable } from '../../src/config/settings_table.ts';

const read = (environment: Record<string, string>) =>
  readSettings({ DATABASE_URL: 'unused', ...environment });

describe('settings', () => {
  it.each([
    ['500ms', 500],
    ['0s', 0],
    ['1.5s', 1_500],
    ['30s', 30_000],
    ['10m', 600_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
  ])('read the duration %s as %i ms', (text, expected) => {
    expect(read({ EXPORTD_SETTLE_DELAY: text }).EXPORTD_SETTLE_DELAY).toBe(expected);
  });

  it.each([
    ['1048576B', 1_048_576],
    ['2048KiB', 2_097_152],
    ['64MiB', 67_108_864],
    ['1.5GiB', 1_610_612_736],
  ])('read the size %s as %i bytes', (text, expected) => {
    expect(read({ EXPORTD_MEMORY_BUDGET: text }).EXPORTD_MEMORY_BUDGET).toBe(expected);
  });

  const duration = 'write a duration with its unit, such as 30s.';
  const size = 'write a size with its unit, such as 64MiB.';
  it.each([
    ['EXPORTD_SETTLE_DELAY', '30000', `is 30000: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '0', `is 0: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '-1s', `is -1s: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '30 s', `is 30 s: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '0.5ms', `is 0.5ms: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '2w', `is 2w: ${duration}`],
    ['EXPORTD_SETTLE_DELAY', '25d', 'is 25d: it must be at most 24d.'],
    ['EXPORTD_HEARTBEAT_TIMEOUT', '0s', 'is 0s: it must be at least 500ms.'],
    ['EXPORTD_MEMORY_BUDGET', '67108864', `is 67108864: ${size}`],
    ['EXPORTD_MEMORY_BUDGET', '64MB', `is 64MB: ${size}`],
    ['EXPORTD_S3_PART_SIZE', '1MiB', 'is 1MiB: it must be at least 5MiB.'],
    ['EXPORTD_PORT', 'http', 'is http: write a whole number from 0 to 65535.'],
    ['EXPORTD_PORT', '99999', 'is 99999: it must be at most 65535.'],
    ['EXPORTD_EXPORT_SLOTS', '1e3', 'is 1e3: write a whole number, at least 1.'],
    ['EXPORTD_EXPORT_SLOTS', '0', 'is 0: it must be at least 1.'],
    ['EXPORTD_JITTER_SHORT_FRACTION', '2', 'is 2: it must be at most 1.'],
    ['EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN', 'yes', 'is yes: write one of true, false, 1, 0.'],
    ['EXPORTD_BASE_URL', 'localhost', 'is not a URL: write one such as https://host.'],
  ])('reject %s=%s', (name, value, message) => {
    expect(() => read({ [name]: value })).toThrow(new SettingsError(`${name} ${message}`));
  });

  it('reject a missing DATABASE_URL and unknown names', () => {
    expect(() => readSettings({})).toThrow(new SettingsError('DATABASE_URL is missing.'));
    expect(() => read({ EXPORTD_COLOUR: '1' })).toThrow('Unknown setting EXPORTD_COLOUR.');
  });

  it('ignore empty variables', () => {
    expect(read({ EXPORTD_SETTLE_DELAY: '' }).EXPORTD_SETTLE_DELAY).toBe(30_000);
  });

  it.each([
    ['loopback', 'loopback'],
    ['1', true],
    ['true', true],
    ['0', false],
    ['', false],
  ])('read EXPORTD_ALLOW_PRIVATE_ENDPOINTS=%s', (value, expected) => {
    const settings = read({ EXPORTD_ALLOW_PRIVATE_ENDPOINTS: value });
    expect(settings.EXPORTD_ALLOW_PRIVATE_ENDPOINTS).toBe(expected);
  });
});

describe('the README of the settings', () => {
  const settings = Object.values(settingGroups).flatMap((group) => Object.entries(group));

  it('describes every setting', () => {
    expect(settings.map(([name]) => name)).toEqual(Object.keys(settingsSchema.shape));
    expect(settings.filter(([, schema]) => !schema.description).map(([name]) => name)).toEqual([]);
  });

  it('lists each setting once, with a reason to change it or as tuning', () => {
    const listed = [...settingsTable().matchAll(/^\| `([A-Z0-9_]+)`/gm)].map(([, name]) => name);
    expect(listed.toSorted()).toEqual(settings.map(([name]) => name).toSorted());
    const [operator = '', tuning = ''] = settingsTable().split('## Tuning');
    expect(operator).toContain('`DATABASE_URL`');
    expect(tuning).toContain('`EXPORTD_HEARTBEAT_TIMEOUT`');
  });

  it('is up to date: run node src/config/write_settings_table.ts', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../src/config/README.md'), 'utf8');
    const cells = (text: string) => text.replace(/ +/g, ' ').replace(/-+/g, '-');
    expect(cells(withSettingsTable(readme))).toBe(cells(readme));
  });
});
