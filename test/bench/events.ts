import { availableParallelism } from 'node:os';
import pg from 'pg';
import {
  createSeededRandom,
  json,
  jsonFields,
  jsonNumber,
  jsonObject,
  jsonString,
} from '../../src/local_stack/demo/seeded_random.ts';
import type { Report } from '../../src/local_stack/report.ts';
import { benchApplicationName } from './scratch.ts';

/** With the same seed, count and interval the rows are the same on any machine. */
const random = createSeededRandom(4_711);

/** Consecutive rows come from a group of concurrent sessions. */
const rowsPerGroup = 384;
const sessionsPerGroup = 48;
const persons = 200_000;

const browsers = ['Chrome', 'Chrome', 'Chrome', 'Safari', 'Firefox', 'Edge'];
const systems = ['Windows', 'Windows', 'Mac OS X', 'iOS', 'Android', 'Linux'];
const countries = ['US', 'DE', 'GB', 'FR', 'IN', 'BR', 'JP', 'AU', 'CA', 'NL', 'ES', 'PL'];
const paths = ['/', '/pricing', '/docs', '/docs/getting-started', '/app', '/app/reports', '/checkout'];
const names = ['$pageview', '$pageview', '$autocapture', '$autocapture', '$pageleave', 'report_viewed'];
const elements = [
  '',
  '',
  '',
  'button.btn:text="Start now";div.hero;body',
  'a.link:href="/pricing"text="Prices";nav;body',
];

const properties = jsonObject({
  $session_id: jsonString('session_id'),
  $lib: json('web'),
  $lib_version: random.oneOfJson('session', 'library', ['1.20.0', '1.20.1', '1.21.0', '1.22.3']),
  $current_url: jsonString(`'https://example.com' || path`),
  $browser: random.oneOfJson('session', 'browser', browsers),
  $browser_version: jsonNumber(`100 + ${random.integerBelow('session', 'browser version', 40)}`),
  $os: random.oneOfJson('session', 'os', systems),
  $screen_width: random.oneOfJson('session', 'screen', [1920, 1440, 390]),
  $device_type: random.oneOfJson('session', 'device type', ['Desktop', 'Desktop', 'Mobile']),
  load_ms: jsonNumber(random.integerBelow('number', 'load', 3_000)),
});

/** SQL: the properties of the person with the number `person`, as text. */
export const personProperties = `'{' || ${jsonFields({
  plan: random.oneOfJson('person', 'plan', ['free', 'free', 'team', 'enterprise']),
  country: random.oneOfJson('person', 'country', countries),
})} || '}'`;

/** The rows that a statement inserts. */
interface EventRows {
  readonly first: number;
  /** The first row after them. */
  readonly end: number;
  /** Total number of rows. */
  readonly count: number;
  /** Number of hours that the rows cover; 1 by default. */
  readonly hours?: number;
  /** Whether events have the properties of their person; they have by default. */
  readonly carryPersons?: boolean;
  /** Number of projects that take turns, with consecutive ids; 1 by default. */
  readonly projects?: number;
  /** A part of the hour in which nine tenths of the rows arrive, instead of evenly. */
  readonly crowded?: CrowdedTime;
}

const crowdedSeconds = { second: 1, minute: 60 };

/** A time in the middle of the hour in which most rows arrive. */
export type CrowdedTime = keyof typeof crowdedSeconds;

/** SQL: microseconds from the start to the arrival of row `number`, and their distance to those of the next row. */
function arrivals({ count, hours = 1, crowded }: EventRows): {
  readonly micros: string;
  readonly spacing: number;
} {
  const hour = 3_600_000_000;
  if (crowded === undefined) {
    const spacing = (hour * hours) / count;
    return { micros: `number * ${String(spacing)}`, spacing };
  }
  // The others arrive in the half hours before and after it.
  const duration = crowdedSeconds[crowded] * 1_000_000;
  const [most, before] = [Math.floor(count * 0.9), Math.floor(count * 0.05)];
  const [spacing, wide] = [duration / most, (hour - duration) / (count - most)];
  const micros = `case when number < ${String(before)} then number * ${String(wide)}
      when number < ${String(before + most)} then ${String(before * wide)} + (number - ${String(before)}) * ${String(spacing)}
      else ${String(before * wide + duration)} + (number - ${String(before + most)}) * ${String(wide)} end`;
  return { micros, spacing };
}

/**
 * A statement that inserts the rows `[first, end)` of `count` rows, about 445 bytes each as binary COPY. The rows are
 * spread evenly over the hours from `start`, unless a part of the hour is crowded, in the order of their arrival.
 */
export function insertEventRows(teamId: number, start: Date, rows: EventRows): string {
  const { projects = 1, carryPersons = true } = rows;
  const { micros: regular, spacing } = arrivals(rows);
  const team = `${String(teamId)} + (number % ${String(projects)})::int`;
  const micros = `(${regular} + ${String(Math.floor(spacing))} * ${random.fraction('number', 'arrival')})::bigint`;
  const arrived = `timestamptz '${start.toISOString()}' + interval '1 microsecond' * ${micros}`;
  return `insert into public.events (team_id, uuid, event, distinct_id, person_id, properties, person_properties,
      elements_chain, timestamp, created_at, inserted_at)
    select ${team}, ${random.uuid('number', 'event id')}, ${random.oneOf('number', 'event', names)},
      'user-' || person, ${random.uuid('person', 'person id')}, (${properties})::jsonb, ${carryPersons ? `(${personProperties})::jsonb` : 'null'},
      ${random.oneOf('number', 'elements', elements)},
      arrived - interval '1 millisecond' * (200 + ${random.integerBelow('number', 'delay', 4_000)}),
      arrived - interval '1 microsecond' * ${random.integerBelow('number', 'queue', 50_000)}, arrived
    from (
      select *, ${random.oneOf('number', 'path', paths)} as path, ${random.integerBelow('session', 'person', persons)} as person,
        (${random.uuid('session', 'session id')})::text as session_id, ${arrived} as arrived
      from (
        select number, number / ${rowsPerGroup} * ${sessionsPerGroup}
          + ${random.integerBelow('number', 'session', sessionsPerGroup)} as session
        from generate_series(${String(rows.first)}::bigint, ${String(rows.end - 1)}) as number
        -- "offset 0" stops the planner from inlining each expression wherever it is used.
        offset 0
      ) as numbered
      offset 0
    ) as described`;
}

/** Rows per statement. Each statement is followed by a line of progress. */
const rowsPerStatement = 100_000;
const maxConnections = 4;

/** The options of exportd's connections, for the same query plans. */
export const sessionOptions = '-c timezone=UTC -c jit=off';

/** A connection to a scratch database with exportd's session options. */
export async function connectToScratch(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    application_name: benchApplicationName,
    options: sessionOptions,
  });
  await client.connect();
  return client;
}

/**
 * Inserts events over several connections, because an insert uses only one core. Then vacuums and analyzes the table, which
 * saves the first reader from setting hint bits.
 */
export async function insertEvents(
  databaseUrl: string,
  rows: Omit<EventRows, 'first' | 'end'> & { readonly teamId: number; readonly start: Date },
  report: Report,
  signal: AbortSignal,
): Promise<void> {
  const { count, teamId, start } = rows;
  let next = 0;
  let inserted = 0;
  const insert = async () => {
    const client = await connectToScratch(databaseUrl);
    try {
      while (next < count) {
        signal.throwIfAborted();
        const range = { ...rows, first: next, end: Math.min(next + rowsPerStatement, count) };
        next = range.end;
        await client.query(insertEventRows(teamId, start, range));
        inserted += range.end - range.first;
        report(`Inserted ${inserted.toLocaleString('en')} of ${count.toLocaleString('en')} events`);
      }
    } finally {
      await client.end();
    }
  };
  const client = await connectToScratch(databaseUrl);
  try {
    // The data is temporary: no write-ahead log is needed.
    await client.query(`do $$
      declare partition regclass;
      begin
        for partition in select relid from pg_partition_tree('public.events') where isleaf loop
          execute format('alter table %s set unlogged', partition);
        end loop;
      end $$`);
    const sessions = Math.min(maxConnections, availableParallelism());
    await Promise.all(Array.from({ length: sessions }, insert));
    await client.query('vacuum (analyze) public.events');
  } finally {
    await client.end();
  }
}

const hourMs = 3_600_000;

/** The start of the current hour (UTC): whole hours before it have ended. */
export const startOfHour = (): Date => new Date(Math.floor(Date.now() / hourMs) * hourMs);
