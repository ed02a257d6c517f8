import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from '@jest/globals';
import {
  exportsDocument,
  parseExports,
  planLines,
  readExportsFile,
  updateBodyOf,
} from '../../../src/cli/apply/plan.ts';
import { bounds } from '../../../src/config/bounds.ts';
import { anExport } from '../api_objects.ts';

const destinationOf = (config: Readonly<Record<string, unknown>>) => ({
  type: 'S3',
  config: { ...config },
  access_key_id_end: null,
});

describe('a file of exports', () => {
  const folder = mkdtempSync(join(tmpdir(), 'exports-file-'));
  writeFileSync(join(folder, 'secret'), 'from a file\n');
  afterAll(() => rmSync(folder, { recursive: true }));

  const parse = (text: string) =>
    parseExports(text, { name: 'exports.yaml', folder, environment: { KEY_ID: 'AKIA' } });

  const clicks = `exports:
  - name: Clicks
    interval: every 5 minutes
    destination:
      type: S3
      config:
        bucket_name: my-bucket
        prefix: clicks/{year}
        aws_access_key_id: !env KEY_ID
        aws_secret_access_key: !file secret
`;

  it('has a size that the parser bears', () => {
    const path = join(folder, 'endless.yaml');
    writeFileSync(path, `${clicks}#${'x'.repeat(bounds.exportsFile.max)}`);
    expect(() => readExportsFile(path, { environment: {} })).toThrow('at most 4 MiB');
  });

  it('declares exports with secrets from the environment and from files', () => {
    expect(parse(clicks)).toEqual([
      {
        name: 'Clicks',
        fields: {
          name: 'Clicks',
          interval: 'every 5 minutes',
          destination: {
            type: 'S3',
            config: {
              bucket_name: 'my-bucket',
              prefix: 'clicks/{year}',
              aws_access_key_id: 'AKIA',
              aws_secret_access_key: 'from a file',
            },
          },
        },
      },
    ]);
  });

  it.each([
    ['exports: [', 'exports.yaml:1: '],
    ['export:\n  - name: Clicks', 'exports.yaml:1: Write `exports:` and a list of exports.'],
    [`${clicks}more: 1\n`, 'exports.yaml:11: Unknown field more. A file has the field exports only.'],
    ['exports:\n  - model: events\n', 'exports.yaml:2: An export needs a name.'],
    ['exports:\n  - name: Clicks\n', 'exports.yaml:2: Clicks needs a destination.'],
    [
      clicks.replace('interval', 'intervall'),
      'exports.yaml:3: Unknown field intervall. Known fields: name, model,',
    ],
    [
      clicks.replace('type: S3', 'kind: S3'),
      'exports.yaml:5: Unknown field kind. Known fields: type, config.',
    ],
    [clicks + clicks.replace('exports:\n', ''), 'exports.yaml:11: Two exports have the name Clicks.'],
    [clicks.replace('KEY_ID', 'OTHER'), 'exports.yaml:9: The environment variable OTHER is not set.'],
    [clicks.replace('!file secret', '!file nothing'), 'exports.yaml:10: The file nothing cannot be read.'],
    [clicks.replace('!env', '!environment'), 'exports.yaml:9: '],
    ['exports: &all\n  - name: Clicks\n    destination: *all\n', 'exports.yaml:3: Write it out: aliases'],
  ])('says what is wrong, and where: %j', (text, message) => {
    expect(() => parse(text)).toThrow(message);
  });

  it('quotes no line of a broken file, which can hold a secret', () => {
    const broken = clicks
      .replace('!env KEY_ID', '"a secret')
      .replace('!file secret', 'another: secret: here');
    const thrown = (): string => {
      try {
        parse(broken);
      } catch (error) {
        return String(error);
      }
      return '';
    };
    expect(thrown()).toContain('exports.yaml:');
    for (const secret of ['a secret', 'another: secret']) expect(thrown()).not.toContain(secret);
  });

  it.each(['>hunter2', '] hunter2', '!hunter2 x'])(
    'quotes nothing of the value %s, which cannot be read',
    (value) => {
      expect(() => parse(clicks.replace('!file secret', value))).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
      );
    },
  );

  describe('with a tag', () => {
    const secretOf = (text: string, allowedVariables?: readonly string[]) =>
      parseExports(text, { name: 'exports.yaml', folder, environment, allowedVariables });
    const environment = { KEY_ID: 'AKIA', DATABASE_URL: 'postgres://u:hunter2@h/db' };
    writeFileSync(join(folder, '..', `${basename(folder)}-outside`), 'outside hunter2');
    symlinkSync(join(folder, '..', `${basename(folder)}-outside`), join(folder, 'link'));
    symlinkSync(folder, join(folder, 'loop'));
    mkdirSync(join(folder, 'secrets'));
    writeFileSync(join(folder, 'secrets', 'inside'), 'inside');
    writeFileSync(join(folder, 'large'), 'hunter2'.repeat(20_000));
    afterAll(() => rmSync(`${folder}-outside`));

    it.each([
      ['a name', clicks.replace('name: Clicks', 'name: !env DATABASE_URL'), 2],
      ['another field', clicks.replace('every 5 minutes', '!env DATABASE_URL'), 3],
      ['a field of the config', clicks.replace('clicks/{year}', '!file secret'), 8],
      ['the whole config', clicks.replace('type: S3', 'type: !env DATABASE_URL'), 5],
      [
        'an item of a list',
        clicks.replace('prefix:', 'include_events: [!env DATABASE_URL]\n        prefix:'),
        8,
      ],
      ['a key', clicks.replace('prefix:', '!env DATABASE_URL : x\n        prefix:'), 8],
      [
        'a secret of something else',
        clicks.replace('type: S3', 'type: S3\n      aws_secret_access_key: !file secret'),
        6,
      ],
    ])('accepts none in %s, and shows no value', (_, text, line) => {
      expect(() => secretOf(text)).toThrow(`exports.yaml:${line}: `);
      expect(() => secretOf(text)).toThrow(/is for secrets only: aws_access_key_id, aws_secret_access_key/);
      expect(() => secretOf(text)).toThrow(
        expect.objectContaining({ message: expect.not.stringMatching(/hunter2|from a file/) }),
      );
    });

    it.each(['secrets/inside', './secrets/../secrets/inside', 'loop/secrets/inside'])(
      'reads the file %s',
      (file) => {
        expect(JSON.stringify(secretOf(clicks.replace('!file secret', `!file ${file}`)))).toContain(
          '"inside"',
        );
      },
    );

    it.each([
      ['../' + basename(folder) + '-outside', 'is not below the folder'],
      ['/etc/hostname', 'is not below the folder'],
      ['link', 'is not below the folder'],
      ['secrets/../../../etc/hostname', 'is not below the folder'],
      ['/dev/zero', 'is not below the folder'],
      ['secrets', 'is no file'],
      ['large', 'has more than'],
    ])('reads no file like %s', (file, message) => {
      const text = clicks.replace('!file secret', `!file ${file}`);
      expect(() => secretOf(text)).toThrow(message);
      expect(() => secretOf(text)).toThrow(
        expect.objectContaining({ message: expect.not.stringContaining('hunter2') }),
      );
    });

    it('reads the listed variables only, if there is a list', () => {
      expect(secretOf(clicks, ['KEY_ID'])).toHaveLength(1);
      expect(() => secretOf(clicks, ['OTHER'])).toThrow(
        'exports.yaml:9: The environment variable KEY_ID is not allowed: add --env KEY_ID.',
      );
      expect(() => secretOf(clicks, [])).toThrow('KEY_ID is not allowed');
    });
  });

  it('is what an export is written as, without what has its default', () => {
    const text = exportsDocument([
      anExport({
        end_at: '2027-01-01T00:00:00.000Z',
        dialect_query: 'select uuid\nfrom events',
        destination: destinationOf({ bucket_name: 'my-bucket', endpoint_url: null }),
      }),
    ]);
    expect(text).toContain('dialect_query: |-\n      select uuid\n      from events\n');
    expect(parse(text)).toEqual([
      {
        name: 'Clicks',
        fields: {
          name: 'Clicks',
          model: 'events',
          interval: 'hour',
          end_at: '2027-01-01T00:00:00.000Z',
          dialect_query: 'select uuid\nfrom events',
          destination: { type: 'S3', config: { bucket_name: 'my-bucket' } },
        },
      },
    ]);
  });
});

describe('a plan', () => {
  it('is a diff without secrets', () => {
    const secret = 'destination.config.aws_secret_access_key';
    expect(
      planLines([
        {
          action: 'create',
          consequences: [],
          name: 'Clicks',
          id: null,
          fields: [
            { field: 'interval', secret: false, from: null, to: 'hour' },
            { field: secret, secret: true, from: null, to: null },
          ],
        },
        {
          action: 'update',
          name: 'Persons',
          id: '1',
          fields: [
            { field: 'timezone', secret: false, from: 'Europe/Berlin', to: null },
            { field: 'destination.config.prefix', secret: false, from: 'old', to: 'new' },
            { field: secret, secret: true, from: null, to: null },
          ],
          consequences: ['Files stay.'],
        },
        { action: 'unchanged', name: 'Orders', id: '2', fields: [], consequences: [] },
        { action: 'delete', name: 'Old', id: '3', fields: [], consequences: [] },
        { action: 'undeclared', name: 'Other', id: '4', fields: [], consequences: [] },
      ]),
    ).toEqual([
      '+ create Clicks',
      '    interval: "hour"',
      '    destination.config.aws_secret_access_key: set (secret)',
      '~ update Persons',
      '    timezone: "Europe/Berlin" → default',
      '    destination.config.prefix: "old" → "new"',
      '    destination.config.aws_secret_access_key: changed (secret)',
      '    note: Files stay.',
      '  unchanged: Orders',
      '- delete Old; its objects stay in the bucket',
      '  not in the file: Other; --prune deletes it',
      '1 to create, 1 to update, 1 to delete, 1 unchanged.',
    ]);
  });

  it('resets what the file leaves out, and keeps pauses and secrets', () => {
    const current = anExport({ destination: destinationOf({ prefix: 'old', compression: 'gzip' }) });
    const declared = { name: 'Clicks', destination: { type: 'S3', config: { prefix: 'new' } } };
    const body = updateBodyOf(declared, current);
    expect(body).toMatchObject({
      name: 'Clicks',
      interval: 'hour',
      model: null,
      timezone: null,
      retention_days: null,
      destination: { type: 'S3', config: { prefix: 'new', compression: null } },
    });
    expect(body).not.toHaveProperty('paused');
  });
});
