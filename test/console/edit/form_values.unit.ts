import { beforeAll, describe, expect, it } from '@jest/globals';
import {
  createBodyOf,
  fieldOfError,
  fields,
  filterOperators,
  filterTypes,
  inputsOf,
  inWords,
  labelOf,
  publicPartOf,
  updateBodyOf,
  valueInWords,
  withoutSecrets,
  type FilterRow,
  type FormField,
  type Inputs,
} from '../../../src/console/pages/edit/form_fields.ts';
import { parseS3Config } from '../../../src/destination/config.ts';
import { filterOperators as operators } from '../../../src/filters/schema.ts';
import { createBody, updateBody } from '../../../src/http/batch_exports/schema.ts';
import { describeApi } from '../../http/describe_api.ts';

const entered: Inputs = {
  ...inputsOf(null),
  name: 'Clicks',
  destination__config__bucket_name: 'bucket',
  destination__config__region: 'eu-central-1',
  destination__config__prefix: 'clicks/{year}',
  destination__config__aws_access_key_id: 'AKIA',
  destination__config__aws_secret_access_key: 'secret',
};

const stored = {
  id: '6b1f',
  name: 'Clicks',
  model: 'events',
  interval: 'hour',
  destination: {
    type: 'S3',
    config: {
      bucket_name: 'bucket',
      region: 'eu-central-1',
      prefix: 'clicks',
      file_format: 'Parquet',
      compression: 'zstd',
      include_events: ['$pageview'],
      filters: [{ type: 'event', key: '$browser', operator: 'exact', value: ['Firefox'] }],
    },
  },
  timezone: 'UTC',
  start_at: '2026-11-01T00:00:00.000Z',
  lag: null,
};

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly items?: Schema;
  readonly type?: unknown;
  readonly title?: string;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly default?: unknown;
  readonly writeOnly?: boolean;
}

/** A schema of what a value has to be when there is one. */
const valueSchema = ({ anyOf, ...outer }: Schema): Schema => {
  const inner = anyOf?.find(({ type }) => type !== 'null');
  return inner ? valueSchema({ ...outer, ...inner }) : outer;
};

/** A bound, unless it is that of any integer. */
const bound = (value: number | undefined): number | undefined =>
  value === undefined || Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : value;

const fieldOf = (attr: string) => fields.find((field) => field.attr === attr);

describe('the fields of the form', () => {
  it('are those of the body of a new export, in its order', () => {
    expect(fields.slice(0, 7).map(({ attr }) => attr)).toEqual([
      'name',
      'model',
      'interval',
      'destination__type',
      'destination__config__bucket_name',
      'destination__config__region',
      'destination__config__prefix',
    ]);
    const shown = new Set(fields.map(({ attr }) => attr.split('__')[0]));
    expect(Object.keys(updateBody.in.shape).filter((name) => !shown.has(name))).toEqual([
      'last_paused_at',
      'id',
      'team_id',
      'created_at',
      'last_updated_at',
      'latest_runs',
      'schema',
      'lag',
      'condition',
      // PostHog's, which are elsewhere in the body of the form.
      'filters',
      'hogql_query',
      'hogql_modifiers',
      'primary_key',
      'version_key',
      'incremental_mode',
    ]);
  });

  it('agree with the schema of a new export', async () => {
    const { components } = (await describeApi()) as { components: { schemas: Record<string, Schema> } };
    const schema = components.schemas.BatchExportCreateInput ?? {};
    const config = valueSchema(schema.properties?.destination?.properties?.config ?? {});
    const configFields = fields.filter(({ attr }) => attr.startsWith('destination__config__'));
    const nameOf = ({ attr }: FormField): string => attr.replace('destination__config__', '');
    // exportd sets the external id, and the field of PostHog has one value.
    expect(configFields.map(nameOf).sort()).toEqual(
      Object.keys(config.properties ?? {})
        .filter((name) => name !== 'external_id' && name !== 'legacy_parquet_extension')
        .sort(),
    );
    const own = fields.filter(({ attr }) => !attr.startsWith('destination__'));
    for (const [members, { properties = {}, required = [] }] of [
      [own, schema],
      [configFields, config],
    ] as const)
      for (const field of members) {
        const property = valueSchema(properties[nameOf(field)] ?? {});
        const accepted = (field.choices ?? []).filter((choice) =>
          new RegExp(property.pattern ?? '').test(choice),
        );
        const { attr, label, control, minimum, maximum } = field;
        expect({
          attr,
          label,
          minimum,
          maximum,
          required: field.required ?? false,
          default: field.default ?? false,
          choices: field.choices ?? [],
          isSecret: control === 'secret',
        }).toEqual({
          attr,
          label: property.title ?? label,
          minimum: bound(property.minimum),
          maximum: bound(property.maximum),
          required: required.includes(nameOf(field)),
          default: ['select', 'checkbox'].includes(control) ? (property.default ?? false) : false,
          choices: property.enum?.filter((choice) => choice !== null) ?? accepted,
          isSecret: property.writeOnly ?? false,
        });
      }
    const { type, operator } = valueSchema(config.properties?.filters ?? {}).items?.properties ?? {};
    expect(type?.enum).toEqual(expect.arrayContaining(Object.keys(filterTypes)));
    expect(valueSchema(operator ?? {}).enum).toEqual(expect.arrayContaining(Object.keys(filterOperators)));
  });

  it('have the control of their values', () => {
    const controls = Object.fromEntries(fields.map(({ attr, control }) => [attr, control]));
    expect(controls).toMatchObject({
      name: 'text',
      model: 'select',
      interval: 'select',
      destination__type: 'select',
      destination__config__aws_secret_access_key: 'secret',
      destination__config__file_format: 'select',
      destination__config__compression: 'select',
      destination__config__max_file_size_mb: 'number',
      destination__config__include_events: 'lines',
      destination__config__filters: 'filters',
      destination__config__use_virtual_style_addressing: 'checkbox',
      offset_hour: 'number',
      start_at: 'time',
      dialect_query: 'dialect',
      paused: 'checkbox',
    });
  });

  it('have choices, bounds, hints and sections', () => {
    expect(fieldOf('interval')).toMatchObject({
      default: 'hour',
      choices: expect.arrayContaining(['day', 'every 5 minutes']),
    });
    expect(fieldOf('offset_hour')).toMatchObject({ minimum: 0, maximum: 23, section: 'Schedule' });
    expect(
      fields
        .filter(({ attr, hint }) => attr.startsWith('destination__config__') && hint === undefined)
        .map(({ label }) => label),
    ).toEqual(['Bucket', 'Secret access key', 'File format']);
  });
});

describe('the body of a new export', () => {
  it('suggests Parquet with Zstandard, has what was entered and no defaults, and is valid', () => {
    const body = createBodyOf(entered);
    expect(body).toEqual({
      name: 'Clicks',
      destination: {
        type: 'S3',
        config: {
          bucket_name: 'bucket',
          region: 'eu-central-1',
          prefix: 'clicks/{year}',
          aws_access_key_id: 'AKIA',
          aws_secret_access_key: 'secret',
          file_format: 'Parquet',
          compression: 'zstd',
        },
      },
    });
    expect(
      createBodyOf({
        ...entered,
        destination__config__file_format: 'JSONLines',
        destination__config__compression: '',
      }),
    ).not.toMatchObject({ destination: { config: { file_format: expect.anything() } } });
    const { destination } = createBody.parse(body);
    const settings = {
      EXPORTD_ALLOW_PRIVATE_ENDPOINTS: false,
      EXPORTD_ALLOW_AWS_CREDENTIAL_CHAIN: false,
    } as const;
    expect(parseS3Config(destination.config, settings)).toMatchObject({
      file_format: 'Parquet',
      prefix: 'clicks/{year}',
    });
  });

  it('has numbers, times, lists and objects', () => {
    const body = createBodyOf({
      ...entered,
      offset_hour: '3',
      start_at: '2026-11-01T10:30',
      paused: true,
      destination__config__include_events: ' $pageview \n\nsigned up',
      destination__config__filters: [{ type: 'person', key: 'plan', operator: 'exact', value: '["a", 4]' }],
    });
    expect(body).toMatchObject({
      offset_hour: 3,
      start_at: '2026-11-01T10:30:00.000Z',
      paused: true,
      destination: {
        config: {
          include_events: ['$pageview', 'signed up'],
          filters: [{ type: 'person', key: 'plan', operator: 'exact', value: ['a', 4] }],
        },
      },
    });
    expect(createBody.safeParse(body).success).toBe(true);
  });

  it('is shown without secrets', () => {
    const shown = JSON.stringify(withoutSecrets(createBodyOf(entered)));
    expect(shown).not.toMatch(/AKIA|"secret"/);
    expect(shown).toContain('"aws_secret_access_key":"…"');
    // The command line asks for what is not there, and would send a sign.
    expect(JSON.stringify(publicPartOf(createBodyOf(entered)))).not.toMatch(/aws_|…/);
  });
});

describe('the body of a change', () => {
  let before: Inputs;
  beforeAll(() => {
    before = inputsOf(stored);
  });

  it('is empty when nothing was changed', () => {
    expect(updateBodyOf(before, before)).toEqual({});
  });

  it('has what differs, resets what was emptied and keeps secrets that were not entered', () => {
    const inputs = {
      ...before,
      name: 'Other',
      start_at: '',
      destination__config__prefix: 'new',
      destination__config__include_events: '',
      destination__config__filters: [],
    };
    expect(updateBodyOf(inputs, before)).toEqual({
      name: 'Other',
      start_at: null,
      destination: { config: { prefix: 'new', include_events: null, filters: null } },
    });
  });

  it('shows and returns stored values unchanged', () => {
    expect(before).toMatchObject({
      destination__config__include_events: '$pageview',
      destination__config__filters: [
        { type: 'event', key: '$browser', operator: 'exact', value: '["Firefox"]' },
      ],
      destination__config__aws_secret_access_key: '',
      start_at: '2026-11-01T00:00',
    });
    const touched = {
      ...before,
      destination__config__filters: [
        ...(before.destination__config__filters as []),
        { type: 'event', key: 'n', operator: 'gt', value: '4' },
      ],
    };
    expect(updateBodyOf(touched, before)).toMatchObject({
      destination: { config: { filters: [{ value: ['Firefox'] }, { key: 'n', value: 4 }] } },
    });
  });
});

describe('a stored filter', () => {
  const types = ['event', 'person', 'event_metadata', 'hogql', 'dialect', 'a newer type'];
  const values = ['Firefox', '', '42', '"quoted"', 'null', null, 42, true, ['Firefox', '42', 42, null], []];
  const filters = types.flatMap((type) =>
    [...operators, 'a newer operator'].flatMap((operator) =>
      values.map((value) => ({ type, key: '42', operator, value })),
    ),
  );

  it('of any type, operator and value survives the change of another filter', () => {
    const config = { ...stored.destination.config, filters };
    const before = inputsOf({ ...stored, destination: { type: 'S3', config } });
    const rows = before.destination__config__filters as readonly FilterRow[];
    const added = { type: 'event', key: 'n', operator: 'gt', value: '4' };
    const touched = { ...before, destination__config__filters: [...rows, added] };
    expect(updateBodyOf(touched, before)).toEqual({
      destination: { config: { filters: [...filters, { ...added, value: 4 }] } },
    });
  });
});

describe('an error of the API', () => {
  it('belongs to its field, or to the one that contains it', () => {
    expect(fieldOfError('destination__config__prefix')?.label).toBe('Prefix');
    expect(fieldOfError('destination__config__filters__0__key')?.label).toBe('Filters');
    expect(fieldOfError('nothing')).toBeUndefined();
    expect(fieldOfError(null)).toBeUndefined();
  });
});

describe('the words of the form', () => {
  it('stand for the names of the API in settings, history and messages', () => {
    expect(['interval', 'prefix', 'destination.config.on_bad_row', 'unknown_field'].map(labelOf)).toEqual([
      'Interval',
      'Prefix',
      'On bad row',
      'unknown_field',
    ]);
    expect(inWords("Configuration missing required field: 'bucket_name'. Check a_b and `role_arn`.")).toBe(
      'Configuration missing required field: Bucket. Check a_b and Role ARN.',
    );
    expect(inWords('Decide whether to keep or to remove them (exportd export difference).')).toBe(
      'Decide whether to keep or to remove them.',
    );
  });

  it.each([
    ['interval', 'every 1 minutes', 'every minute'],
    ['on_bad_row', 'fail', 'fail the run'],
    ['name', 'fail', 'fail'],
    ['bloom_filters', true, 'yes'],
    ['include_events', ['a', 'b'], 'a, b'],
    ['exclude_events', [], 'none'],
    [
      'filters',
      [{ type: 'event', key: '$browser', operator: 'is_not', value: ['A'] }],
      'Event property $browser does not equal ["A"]',
    ],
    [
      'filters',
      [{ type: 'event', key: 'path', operator: 'is_cleaned_path_exact', value: '/a' }],
      'Event property path is cleaned path exact /a',
    ],
    ['filters', [{ type: 'hogql', key: 'a = 1' }], 'a = 1'],
    ['max_file_size_mb', 5, '5'],
  ])('show %s %j as %s', (name, value, text) => {
    expect(valueInWords(name, value)).toBe(text);
  });
});
