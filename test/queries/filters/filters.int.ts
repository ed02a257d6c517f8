import { beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { DateTime } from 'luxon';
import { buildSelect } from '@exportd/dialect/ast_builders';
import { printQuery } from '@exportd/dialect/print';
import type { Schema } from '@exportd/dialect/schema';
import { filtersCondition } from '../../../src/queries/property_filters.ts';
import { propertyFiltersSchema, type PropertyFilters } from '../../../src/filters/schema.ts';
import { berlin } from '../../../src/dialect/test/project.ts';
import { rowsOf } from '../../../src/dialect/test/rows_of.ts';
import { useTestDatabase } from '../../setup/use_test_database.ts';
import { startOfInterval } from '../dates/start_of_interval.ts';
import { matchesFilters } from './reference_filters.ts';
import { insertEvents, randomEvents } from './random_events.ts';
import { randomFilters } from './random_filters.ts';
import { randomCases } from '../../setup/effort.ts';

const project = {
  ...berlin,
  schema: { ...berlin.schema, properties: new Map() },
};
const events = randomEvents(new Date('2026-11-21T12:00:00Z'), 60);
const database = useTestDatabase();
beforeAll(async () => {
  await insertEvents(database.pool, project.teamId, events);
});

const select = async (
  filters: PropertyFilters,
  schema: Schema = project.schema,
): Promise<readonly unknown[]> => {
  const condition = filtersCondition(propertyFiltersSchema.parse(filters), {
    scope: 'events',
    attr: 'query__properties',
  });
  const query = buildSelect(
    condition === null
      ? 'select toString(uuid) from events'
      : 'select toString(uuid) from events where {condition}',
    condition === null ? {} : { condition },
  );
  const rows = await rowsOf(database.pool, printQuery(query), { ...project, schema });
  return rows.map(([uuid]) => uuid).sort();
};

describe('random filters', () => {
  it('find the same events as the reference implementation', async () => {
    await fc.assert(
      fc.asyncProperty(randomFilters, async (filters) => {
        const expected = events.filter((event) => matchesFilters(event, filters)).map(({ uuid }) => uuid);
        expect(await select(filters)).toEqual(expected.sort());
      }),
      { numRuns: randomCases(60) },
    );
  });
});

describe('dates of filters', () => {
  const insert = async (uuid: string, joined: unknown): Promise<string> => {
    const id = `70000000-0000-0000-0000-0000000000${uuid}`;
    await database.pool.query(
      `insert into public.events (team_id, uuid, event, distinct_id, properties, timestamp)
       values ($1, $2, 'dated', 'dated', $3, '2026-11-20Z')`,
      [project.teamId, id, { joined }],
    );
    return uuid;
  };
  beforeAll(async () => {
    // In Berlin, the second is on the 20th at half past midnight; the fourth is that time in seconds.
    for (const [uuid, joined] of [
      ['01', '2026-11-19'],
      ['02', '2026-11-19T23:30:00Z'],
      ['03', '2026-11-20 13:00:00'],
      ['04', 1_795_131_000],
      ['05', 'never'],
      ['06', null],
    ] as const)
      await insert(uuid, joined);
  });

  it.each([
    ['is_date_exact', '2026-11-20', ['02', '03', '04']],
    ['is_date_before', '2026-11-20', ['01']],
    ['is_date_after', '2026-11-19', ['02', '03', '04']],
    ['is_date_after', '2026-11-20', []],
    ['is_date_exact', '2026-11-20T13:00:00', ['03']],
    ['is_date_exact', '2026-11-19T23:30:00Z', ['02', '04']],
    ['is_date_before', '2026-11-20 00:30:00', ['01']],
    ['is_date_after', '2026-11-20 00:30:00', ['03']],
    // In Berlin it is 13:00 on the 21st.
    ['is_date_exact', '-1d', ['02', '03', '04']],
    ['is_date_exact', '-1dEnd', ['02', '03', '04']],
    ['is_date_after', '-1d', []],
    ['is_date_after', '-25h', ['03']],
    ['is_date_before', '-1dStart', ['01']],
    ['is_date_before', 'mStart', []],
    ['is_date_after', 'wStart', ['01', '02', '03', '04']],
  ] as const)('%s %s', async (operator, value, expected) => {
    const found = await select([
      { type: 'event_metadata', key: 'event', value: 'dated' },
      { type: 'event', key: 'joined', operator, value },
    ]);
    expect(found.map((uuid) => String(uuid).slice(-2))).toEqual(expected);
  });

  it('apply to columns too', async () => {
    const only = { type: 'event_metadata', key: 'event', value: 'dated' } as const;
    const at = async (operator: 'exact' | 'gt' | 'between', value: string | string[]) =>
      (await select([only, { type: 'event_metadata', key: 'timestamp', operator, value }])).length;
    expect([
      await at('exact', '2026-11-20T01:00:00'),
      await at('gt', '2026-11-20'),
      await at('gt', '2026-11-21'),
      await at('between', ['2026-11-20', '2026-11-20T01:00:00+01:00']),
    ]).toEqual([6, 6, 0, 6]);
  });
});

describe('properties with a known type', () => {
  it('are compared by type', async () => {
    const schema: Schema = {
      ...project.schema,
      properties: new Map([
        [
          'event',
          new Map([
            ['amount', 'numeric'],
            ['plan', 'boolean'],
          ]),
        ],
      ]),
    };
    const isTrue = await select([{ key: 'plan', operator: 'exact', value: ['true'] }], schema);
    const plans = events.filter(({ properties }) =>
      ['true', true].includes(properties.plan as string | boolean),
    );
    expect(isTrue).toEqual(plans.map(({ uuid }) => uuid).sort());
    const tens = await select([{ key: 'amount', operator: 'exact', value: ['10'] }], schema);
    const amounts = events.filter(({ properties }) =>
      [10, '10', '10.0'].includes(properties.amount as string | number),
    );
    expect(tens).toEqual(amounts.map(({ uuid }) => uuid).sort());
  });
});

describe('intervals', () => {
  it('start where those of the dialect start, also at clock changes', async () => {
    const moments = [
      '2026-10-25T00:30Z',
      '2026-10-25T01:30Z',
      '2026-03-29T00:30Z',
      '2026-11-01T04:30Z',
      '2026-11-01T05:30Z',
      '2026-04-04T15:10Z',
      '2026-03-28T22:30Z',
    ];
    for (const timezone of ['Europe/Berlin', 'America/Havana', 'Australia/Lord_Howe', 'Asia/Beirut'])
      for (const weekStartDay of ['sunday', 'monday'] as const) {
        const [row] = await rowsOf(
          database.pool,
          `select ${moments
            .flatMap((moment) => {
              const time = `toDateTime('${moment.replace('Z', ':00Z')}')`;
              return [
                `toStartOfHour(${time})`,
                `toStartOfDay(${time})`,
                `toDateTime(toStartOfWeek(${time}))`,
                `toDateTime(toStartOfMonth(${time}))`,
              ];
            })
            .map((column) => `toUnixTimestamp(${column})`)
            .join(', ')}`,
          { ...project, timezone, weekStartDay },
        );
        const expected = moments.flatMap((moment) =>
          (['hour', 'day', 'week', 'month'] as const).map(
            (interval) =>
              startOfInterval(
                DateTime.fromISO(moment, { zone: timezone }),
                interval,
                weekStartDay,
              ).toMillis() / 1000,
          ),
        );
        expect([timezone, row]).toEqual([timezone, expected]);
      }
  });
});
